"""A small share of the fuzz tests, from a fixed seed; `make fuzz` runs many from a new one."""

import numpy as np
import pytest
from damaged_files import DamagedFiles
from fuzz_cases import METHODS, SLOW_METHODS, generated, outcome


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return DamagedFiles(tmp_path_factory.mktemp("damaged"))


def test_a_sound_file_of_every_reader_works(files):
    for name, (file, content, use) in files.files.items():
        path = files.copies / file
        path.write_bytes(content)
        assert outcome(lambda use=use, path=path: use(path)) == "works", name


def test_a_damaged_file_is_refused_or_works(files):
    rng, ended = np.random.default_rng(11), set()
    for _ in range(400):
        name, case = files.case(rng)
        found = outcome(case)
        assert found in ("works", "refused"), name
        ended.add(found)
    assert ended == {"works", "refused"}


def test_rows_of_any_kind_are_fitted_or_refused(tmp_path):
    rng = np.random.default_rng(12)
    methods = [key for key in METHODS if key not in SLOW_METHODS]
    for _ in range(25):
        name, case = generated(rng, tmp_path, methods, most_classes=50)
        assert outcome(case) in ("works", "refused"), name


def test_the_fuzzer_reports_warnings_errors_and_bare_exceptions():
    assert outcome(lambda: np.float64(1e308) * 10).startswith("RuntimeWarning: overflow")
    assert outcome(lambda: {}["key"]).startswith("KeyError")
    assert outcome(lambda: None) == "works"
