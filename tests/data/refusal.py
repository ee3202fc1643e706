"""What tests of refused files share."""

from pathlib import Path

import pytest

from temperance import InputError
from temperance.data import open_rows


def refused(*words, path, read=False, **options):
    """Assert that the file is refused, in a message that has all these words."""
    with pytest.raises(InputError) as caught:
        open_rows(path, **options).array() if read else open_rows(path, **options)
    message = str(caught.value)
    assert str(path) in message or "labels" in options
    for word in words:
        assert word in message, message
    assert "\n" not in message


def write(path, content):
    Path(path).write_bytes(content)
