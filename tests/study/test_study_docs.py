"""The raw results of the study in docs/study: complete, and the same where two runs made the same fits."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from temperance.calibrators import UNCALIBRATED
from temperance.study.protocol import study_methods

DOCS = Path(__file__).parents[2] / "docs" / "study"
COLUMNS = {"nll": "nll", "ece": "ece50", "ece15": "ece15", "brier": "brier"}

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not beside the tests")


@pytest.fixture(scope="module")
def raw():
    """Return the scores of all draws by task, number of rows and method."""
    groups = {}
    with gzip.open(DOCS / "results.csv.gz", "rt", newline="") as file:
        for line in csv.DictReader(file):
            values = [float(line[column]) for column in COLUMNS.values()]
            groups.setdefault((line["task"], int(line["n"]), line["method"]), []).append(values)
    return {name: dict(zip(COLUMNS, np.array(values).T, strict=True)) for name, values in groups.items()}


def test_every_method_has_fifty_draws_except_with_all_rows(raw):
    tasks = {task for task, *_ in raw}
    assert len(tasks) == 50
    assert {method for *_, method in raw} == {UNCALIBRATED, *study_methods(None)}
    largest = {task: max(n for other, n, _ in raw if other == task) for task in tasks}
    for (task, n, method), scores in raw.items():
        once = n in (0, largest[task]) and not method.startswith("pts")
        assert len(scores["nll"]) in ((1, 50) if once else (50,)), (task, n, method)


def test_the_two_studies_are_bit_identical_where_they_made_the_same_fits():
    studies = []
    for name in ("results.csv.gz", "results-paper.csv.gz"):
        with gzip.open(DOCS / name, "rt", newline="") as file:
            lines = list(csv.DictReader(file))
        studies.append({tuple(line[key] for key in ("task", "n", "draw", "method")): line for line in lines})
    shared = studies[0].keys() & studies[1].keys()
    assert len(shared) == 1307
    for fit in shared:
        one, two = ({column: study[fit][column] for column in COLUMNS.values()} for study in studies)
        assert one == two, fit
