"""docs/file-format.md is enough to read a file, predict, and compute the baseline.

The formulas follow the document, not the package, and read nothing but the JSON.
"""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from formulas_by_definition import FORMULAS
from mpmath import mpf

import temperance
from temperance.calibrator_file import FILE, OBJECTS
from temperance.data import simulate
from temperance.formulas.bayes import NODE_WEIGHTS, NODES

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "calibrator_file" / "data" / "v3"
PAGE = (ROOT / "docs" / "file-format.md").read_text(encoding="utf-8")
STORED = json.loads((DATA / "predictions.json").read_text())
EACH_FILE = pytest.mark.parametrize("name", STORED["expected"])


def predict(content, z):
    """Return the probabilities of a row by a file."""
    assert (content["format"], content["version"]) == ("temperance calibrator", 3)
    assert content["classes"] == len(z)
    parameters = content["parameters"]
    key = "bayes-bias" if "bias_weights" in parameters else content["method"]
    p = [float(x) for x in FORMULAS[key](parameters, [mpf(x) for x in z])]
    r = content.get("adaptation", {}).get("log_prior_ratio", [0.0] * len(z))
    shifted = [x * max(math.exp(y - max(r)), 1e-300) for x, y in zip(p, r, strict=True)]
    return [x / math.fsum(shifted) for x in shifted]


def quantile(pairs, q):
    """Return the smallest value with at least q of the weight up to it, and the share up to it."""
    total = sum(w for _, w in pairs)
    for value, _ in sorted(pairs):
        share = sum(w for x, w in pairs if x <= value) / total
        if share >= q * (1 - 1e-12):
            return value, share
    raise AssertionError


@EACH_FILE
@pytest.mark.parametrize("ratio", [None, [1.5, -0.5, 0.0, -3.0], [0.0, -800.0, -800.0, -800.0]])
def test_the_document_is_enough_to_predict_the_same(name, ratio, tmp_path):
    content = json.loads((DATA / f"{name}.json").read_text())
    if ratio is not None:
        content["adaptation"] = {"log_prior_ratio": ratio}
    (tmp_path / "cal.json").write_text(json.dumps(content))
    logits = simulate(n_rows=50, n_classes=4, random_state=1).logits
    wanted = temperance.load(tmp_path / "cal.json").predict_proba(logits)
    np.testing.assert_allclose([predict(content, z) for z in logits], wanted, rtol=1e-9, atol=1e-300)


@EACH_FILE
def test_the_document_is_enough_to_compute_the_baseline(name):
    path = DATA / f"{name}.json"
    task, weights = simulate(n_rows=400, n_classes=4, random_state=7), [i % 3 for i in range(400)]
    probs = temperance.load(path).predict_proba(task.logits).tolist()
    rows = [(p, int(y), w) for p, y, w in zip(probs, task.labels, weights, strict=True) if w]
    baseline, total = json.loads(path.read_text())["baseline"], sum(weights)
    assert baseline["rows"] == len(rows)
    assert baseline["effective_rows"] == pytest.approx(total**2 / sum(w * w for w in weights))
    assert baseline["accuracy"] == pytest.approx(sum(w for p, y, w in rows if p.index(max(p)) == y) / total)
    counts = [sum(w for p, _, w in rows if p.index(max(p)) == k) for k in range(4)]
    assert baseline["predicted_counts"] == counts
    entropies = []
    for p, _, w in rows:  # the top's term from the others, as the document says
        others = sorted(p)[:-1]
        rest = math.fsum(others)
        top = -(1 - rest) * math.log1p(-rest)
        entropies.append((top - math.fsum(x * math.log(x) for x in others if x), w))
    confidences = [(max(p), w) for p, _, w in rows]
    for what, pairs in (("confidence", confidences), ("entropy", entropies)):
        assert baseline[f"mean_{what}"] == pytest.approx(sum(x * w for x, w in pairs) / total)
        values, shares = zip(*(quantile(pairs, i / 20) for i in range(21)), strict=True)
        np.testing.assert_allclose(baseline[f"{what}_quantiles"], values, rtol=1e-8)
        np.testing.assert_allclose(baseline[f"{what}_shares"], shares, rtol=1e-12)


def test_the_quadrature_of_the_document_is_gauss_hermite():
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    assert nodes.tolist() == NODES
    np.testing.assert_array_equal(weights / weights.sum(), NODE_WEIGHTS)
    np.testing.assert_allclose(np.square(NODES[:2]), [5 + 10**0.5, 5 - 10**0.5], rtol=1e-15)
    np.testing.assert_allclose(NODE_WEIGHTS[:2], [(7 - 2 * 10**0.5) / 60, (7 + 2 * 10**0.5) / 60], rtol=1e-13)
    assert "| ±√(5 - √10) | (7 + 2√10) / 60 |" in PAGE
    assert "| ±√(5 + √10) | (7 - 2√10) / 60 |" in PAGE
    assert "If H = 0, h = -20" in PAGE


def test_the_complete_file_of_the_document_is_valid(tmp_path):
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "cal.json").write_text(text)
    cal = temperance.load(tmp_path / "cal.json")
    logits = [[2.0, 1.0, -3.0]]
    np.testing.assert_allclose(cal.predict_proba(logits)[0], predict(json.loads(text), logits[0]), rtol=1e-12)
    assert cal.class_names_ == ("cat", "dog", "owl")


def test_the_document_names_every_field():
    fields = {field.name for table in (FILE, *OBJECTS.values()) for field in table}
    parameters = {
        re.sub(r"layer_\d", "layer_1", name)
        for path in DATA.glob("*.json")
        for name in json.loads(path.read_text()).get("parameters", ())
    }
    assert len(parameters) > 20
    assert {name for name in fields | parameters if f"`{name}`" not in PAGE} == set()
