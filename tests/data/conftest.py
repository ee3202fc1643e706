"""Fixtures of the tests of files."""

import pytest


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """Run in a new folder, so that messages have short names."""
    monkeypatch.chdir(tmp_path)
