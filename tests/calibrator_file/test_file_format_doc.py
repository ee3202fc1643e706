"""docs/file-format.md is enough to read a file, predict, and compute the baseline.

The reader below uses the standard library alone and follows the document, not the package.
"""

import json
import math
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import temperance
from temperance.calibrator_file import KNOWN, OBJECTS
from temperance.data import simulate

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "calibrator_file" / "data" / "v2"
PAGE = (ROOT / "docs" / "file-format.md").read_text(encoding="utf-8")
NAMES = pytest.mark.parametrize("name", ["ts", "hts", "ets", "bts", "mono", "bayes-map"])
NODES = (0.0, 1.355626179974266, -1.355626179974266, 2.856970013872806, -2.856970013872806)


def softmax(z):
    top = max(z)
    exps = [math.exp(x - top) for x in z]
    return [e / math.fsum(exps) for e in exps]


def relative_log_entropy(z):
    top, largest = max(z), z.index(max(z))
    d = [x - top for x in z]
    r = math.fsum(math.exp(x) for i, x in enumerate(d) if i != largest)
    entropy = math.log1p(r) - math.fsum(x * math.exp(x) for x in d) / (1 + r)
    return max(math.log(entropy / math.log(len(z))), -20) if entropy > 0 else -20


def softplus(a):
    return max(a, 0) + math.log1p(math.exp(-abs(a)))


def temperature(method, p, z):
    if method == "ts":
        return p["temperature"]
    if method == "hts":
        low, high = p["temperature_limits"]
        return min(max(softplus(p["intercept"] + p["entropy_weight"] * relative_log_entropy(z)), low), high)
    return p["temperatures"][sum(edge < max(softmax(z)) for edge in p["edges"])]


def predict(content, z):
    """Return the probabilities of a row by a file."""
    p = predict_as_fitted(content, z)
    if "adaptation" not in content:
        return p
    r = content["adaptation"]["log_prior_ratio"]
    shifted = [x * max(math.exp(y - max(r)), 1e-300) for x, y in zip(p, r, strict=True)]
    return [x / math.fsum(shifted) for x in shifted]


def predict_as_fitted(content, z):
    """Return the probabilities of a row without the adaptation to other class frequencies."""
    assert content["format"] == "temperance calibrator"
    assert content["version"] == 2
    assert content["classes"] == len(z)
    method, p = content["method"], content["parameters"]
    if method == "ets":
        parts = zip(softmax([x / p["temperature"] for x in z]), softmax(z), strict=True)
        tempered, raw, uniform = p["weights"]
        return [tempered * a + raw * b + uniform / len(z) for a, b in parts]
    if method == "mono":
        return softmax([-x for x in mapped(p, z)])
    if method == "bayes":
        return predict_bayes(p, z)
    t = temperature(method, p, z)
    return softmax([x / t for x in z])


def mapped(p, z):
    """Return U(e) of each class, e its negative log-probability at the reference temperature."""
    scaled = [x / p["reference"] for x in z]
    top = max(scaled)
    log_sum = top + math.log1p(math.fsum(math.exp(x - top) for x in scaled) - 1)
    knots = [*p["map_knots"], math.inf]
    return [
        math.fsum(
            slope * min(max(log_sum - x - low, 0), high - low)
            for slope, (low, high) in zip(p["map_slopes"], pairwise(knots), strict=True)
        )
        for x in scaled
    ]


def predict_bayes(p, z):
    row = [x / p["reference"] for x in z]
    ordered, top = sorted(row, reverse=True), z.index(max(z))
    h = relative_log_entropy(row)
    gaps = [math.log1p(ordered[0] - ordered[2]), math.log1p(ordered[0] - math.fsum(row) / len(row))]
    features = zip([h, h * h / 10, *gaps], p["centre"], p["spread"], strict=True)
    x = [1.0, *((f - centre) / spread for f, centre, spread in features)]
    m = math.fsum(a * b for a, b in zip(x, p["coefficients"], strict=True)) + p["class_shift"][top]
    *with_class, of_class = p["class_covariance"][top]
    variance = of_class + 2 * math.fsum(a * b for a, b in zip(x, with_class, strict=True))
    variance += math.fsum(
        a * b * c for a, line in zip(x, p["covariance"], strict=True) for b, c in zip(x, line, strict=True)
    )
    variance *= p.get("averaged_variance", 1.0)
    low, high = p["temperature_limits"]
    u, result = mapped(p, z), [0.0] * len(z)
    for node, weight in zip(
        NODES, (8 / 15, *2 * (0.2220759220056126,), *2 * (0.0112574113277207,)), strict=True
    ):
        t = min(max(math.exp(m + math.sqrt(variance) * node), low), high)
        part = softmax([-value * p["reference"] / t for value in u])
        result = [a + weight * b for a, b in zip(result, part, strict=True)]
    uniform = p["uniform_weight"]
    return [(1 - uniform) * x + uniform / len(z) for x in result]


def quantile(pairs, q):
    """Return the smallest value with at least q of the weight up to it, and the share up to it."""
    total = sum(w for _, w in pairs)
    for value, _ in sorted(pairs):
        share = sum(w for x, w in pairs if x <= value) / total
        if share >= q * (1 - 1e-12):
            return value, share
    raise AssertionError


@NAMES
def test_the_document_is_enough_to_predict_the_same(name):
    content = json.loads((DATA / f"{name}.json").read_text())
    stored = json.loads((DATA / "predictions.json").read_text())
    got = [predict(content, z) for z in stored["logits"]]
    np.testing.assert_allclose(got, stored["expected"][name]["predict_proba"], rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("ratio", [[1.5, -0.5, 0.0, -3.0], [0.0, -800.0, -800.0, -800.0]])
@NAMES
def test_the_document_is_enough_to_predict_the_same_when_adapted(name, ratio, tmp_path):
    content = json.loads((DATA / f"{name}.json").read_text())
    content["adaptation"] = {"log_prior_ratio": ratio}
    (tmp_path / "cal.json").write_text(json.dumps(content))
    logits = simulate(n_rows=50, n_classes=4, random_state=1).logits
    wanted = temperance.load(tmp_path / "cal.json").predict_proba(logits)
    got = [predict(content, z) for z in logits.tolist()]
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-300)


@NAMES
def test_the_document_is_enough_to_compute_the_baseline(name):
    content = json.loads((DATA / f"{name}.json").read_text())
    task, weights = simulate(n_rows=400, n_classes=4, random_state=7), [i % 3 for i in range(400)]
    rows = [
        (predict(content, z), int(y), w)
        for z, y, w in zip(task.logits.tolist(), task.labels, weights, strict=True)
        if w
    ]
    baseline, total = content["baseline"], sum(w for *_, w in rows)
    assert baseline["rows"] == len(rows)
    assert baseline["effective_rows"] == pytest.approx(total**2 / sum(w * w for *_, w in rows))
    assert baseline["accuracy"] == pytest.approx(sum(w for p, y, w in rows if p.index(max(p)) == y) / total)
    counts = [sum(w for p, _, w in rows if p.index(max(p)) == k) for k in range(4)]
    assert baseline["predicted_counts"] == counts
    entropies = [(-sum(x * math.log(x) for x in p if x), w) for p, _, w in rows]
    confidences = [(max(p), w) for p, _, w in rows]
    for what, pairs in (("confidence", confidences), ("entropy", entropies)):
        assert baseline[f"mean_{what}"] == pytest.approx(sum(x * w for x, w in pairs) / total)
        values, shares = zip(*(quantile(pairs, i / 20) for i in range(21)), strict=True)
        np.testing.assert_allclose(baseline[f"{what}_quantiles"], values, rtol=1e-8)
        np.testing.assert_allclose(baseline[f"{what}_shares"], shares, rtol=1e-12)


def test_the_complete_file_of_the_document_is_valid(tmp_path):
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "cal.json").write_text(text)
    cal = temperance.load(tmp_path / "cal.json")
    logits = [[2.0, 1.0, -3.0]]
    np.testing.assert_allclose(cal.predict_proba(logits)[0], predict(json.loads(text), logits[0]), rtol=1e-12)
    assert cal.class_names_ == ("cat", "dog", "owl")


def test_the_document_names_every_field():
    fields = {field.name for table in OBJECTS.values() for field in table}
    parameters = {
        re.sub(r"layer_\d", "layer_1", name)
        for path in DATA.glob("*.json")
        for name in json.loads(path.read_text()).get("parameters", ())
    }
    assert len(parameters) > 20
    assert {name for name in KNOWN | fields | parameters if f"`{name}`" not in PAGE} == set()
