"""The page of promises: the tests it names exist, and its table is made from the stored figures."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the pages are not beside the tests")


def test_every_promise_names_tests_that_exist():
    promises = [line for line in PAGE.read_text().splitlines() if line.startswith("| **")]
    assert len(promises) > 8
    for promise in promises:
        files = re.findall(r"`(tests/[^`]+)`|\]\(([^)]+)\)", promise)
        assert files, promise
        found = [ROOT / test if test else PAGE.parent / page for test, page in files]
        assert not [file for file in found if not file.is_file()]


def test_the_table_is_that_of_the_stored_figures(benchmark_script):
    reliability, page = benchmark_script("reliability"), PAGE.read_text()
    assert reliability.fill_blocks(page, reliability.tables()) == page
