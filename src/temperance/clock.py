"""The time that files and pages are marked with."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from temperance.errors import InputError


def utc_now() -> str:
    """Return the time in UTC; builds that must be the same to the bit set it by SOURCE_DATE_EPOCH.

    Examples
    --------
    >>> from unittest.mock import patch
    >>> with patch.dict("os.environ", SOURCE_DATE_EPOCH="86400"):
    ...     utc_now()
    '1970-01-02T00:00:00Z'
    """
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    try:
        moment = datetime.fromtimestamp(int(given), UTC) if given else datetime.now(UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"the environment variable SOURCE_DATE_EPOCH must be a number of seconds; found {given[:40]!r}. "
            "Correct it or unset it."
        ) from None
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
