"""The study in docs/study: its tables follow from its raw results, and its links lead to existing files."""

import csv
import gzip
import re
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


@pytest.mark.parametrize("n", [200, 500, 1000, 5000])
@pytest.mark.parametrize("metric", COLUMNS)
def test_a_table_is_that_of_the_raw_results(raw, metric, n):
    with (DOCS / "tables" / f"{metric}-{n}.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 50
    for line in lines:
        name = f"{line['dataset']}__{line['model']}"
        for method in (UNCALIBRATED, *study_methods(None)):
            rows = 0 if method == UNCALIBRATED else int(line["rows"])
            values = raw[name, rows, method][metric]
            assert float(line[method]) == pytest.approx(values.mean(), rel=1e-12)
            if not np.isfinite(values).all():
                assert line[f"{method}_se"] == ""
            elif len(values) > 1:
                error = values.std(ddof=1) / np.sqrt(len(values))
                assert float(line[f"{method}_se"]) == pytest.approx(error, rel=1e-9)


def test_the_links_of_the_page_lead_to_existing_files():
    page = (DOCS / "README.md").read_text(encoding="utf-8")
    paths = [path for path in re.findall(r"\]\(([^)#]+)\)", page) if "://" not in path]
    assert len(paths) > 10
    for path in paths:
        assert (DOCS / path).exists(), path


def test_the_two_studies_are_bit_identical_where_they_made_the_same_fits():
    studies = []
    for name in ("results.csv.gz", "results-paper.csv.gz"):
        with gzip.open(DOCS / name, "rt", newline="") as file:
            lines = list(csv.DictReader(file))
        studies.append({tuple(line[key] for key in ("task", "n", "draw", "method")): line for line in lines})
    shared = studies[0].keys() & studies[1].keys()
    assert len(shared) == 1307, "as the page says"
    for fit in shared:
        one, two = ({column: study[fit][column] for column in COLUMNS.values()} for study in studies)
        assert one == two, fit
