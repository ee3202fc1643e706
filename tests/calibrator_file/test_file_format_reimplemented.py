"""Two methods of docs/file-format.md, written from the page in plain NumPy, predict what the library does.

This is what someone does who serves a calibrator in another language: read the JSON, follow the formulas.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import temperance
from temperance.data import simulate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "file-format.md"
ROOT10 = np.sqrt(10)
NODES = np.array([0, 1, -1, 1, -1]) * np.sqrt([0, 5 - ROOT10, 5 - ROOT10, 5 + ROOT10, 5 + ROOT10])
WEIGHTS = np.array([32, 7 + 2 * ROOT10, 7 + 2 * ROOT10, 7 - 2 * ROOT10, 7 - 2 * ROOT10]) / 60


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def h(z):
    d = z - z.max(axis=1, keepdims=True)
    r = np.where(np.arange(z.shape[1]) == z.argmax(axis=1)[:, None], 0, np.exp(d)).sum(axis=1)
    entropy = np.log1p(r) - np.sum(np.where(np.exp(d) > 0, d, 0) * np.exp(d), axis=1) / (1 + r)
    result = np.full(len(z), -20.0)
    result[entropy > 0] = np.maximum(np.log(entropy[entropy > 0] / np.log(z.shape[1])), -20)
    return result


def hts(p, z):
    a = p["intercept"] + p["entropy_weight"] * h(z)
    return softmax(z / np.clip(np.log(1 + np.exp(a)), *p["temperature_limits"])[:, None])


def mapped(p, z):
    e = np.maximum(-np.log(softmax(z / p["reference"])), 0)
    knots = np.array(p["map_knots"])
    lengths = np.clip(e[..., None] - knots, 0, np.append(np.diff(knots), np.inf))
    return lengths @ np.array(p["map_slopes"])


def bayes(p, z):
    row = z / p["reference"]
    ordered = np.sort(row, axis=1)[:, ::-1]
    gaps = ordered[:, 0] - ordered[:, min(2, z.shape[1] - 1)], ordered[:, 0] - row.mean(axis=1)
    f = np.column_stack([h(row), h(row) ** 2 / 10, np.log(1 + gaps[0]), np.log(1 + gaps[1])])
    x = np.column_stack([np.ones(len(z)), (f - p["centre"]) / p["spread"]])
    top = z.argmax(axis=1)
    shared = np.array(p["class_covariance"])[top]
    m = x @ p["coefficients"] + np.array(p["class_shift"])[top]
    variance = np.einsum("ni,ij,nj->n", x, p["covariance"], x) + 2 * np.sum(x * shared[:, :5], axis=1)
    s = np.sqrt((variance + shared[:, 5]) * p.get("averaged_variance", 1))
    u, result = mapped(p, z) * p["reference"], np.zeros(z.shape)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        result += weight * softmax(-u / np.clip(np.exp(m + s * node), *p["temperature_limits"])[:, None])
    return (1 - p["uniform_weight"]) * result + p["uniform_weight"] / z.shape[1]


@pytest.mark.parametrize("method", [hts, bayes])
@pytest.mark.parametrize("n_classes", [2, 7])
def test_the_page_is_enough_to_predict(method, n_classes, tmp_path):
    task = simulate(n_rows=500, n_classes=n_classes, random_state=3)
    cal = temperance.make_calibrator(method.__name__).fit(task.logits[:200], task.labels[:200])
    cal.save(tmp_path / "cal.json")
    parameters = json.loads((tmp_path / "cal.json").read_text())["parameters"]
    new = task.logits[200:]
    probs = method(parameters, new)
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=0, atol=1e-14)
    expected = temperance.load(tmp_path / "cal.json").predict_proba(new)
    np.testing.assert_allclose(probs, expected, rtol=1e-9, atol=1e-15)


def test_a_row_without_entropy_has_the_lowest_h(tmp_path):
    task = simulate(n_rows=500, n_classes=3, random_state=3)
    cal = temperance.make_calibrator("hts").fit(task.logits, task.labels)
    cal.save(tmp_path / "cal.json")
    z = np.array([[2000.0, 0.0, 0.0], [2000.0, 0.0, -3.0]])
    np.testing.assert_array_equal(h(z), -20)
    parameters = json.loads((tmp_path / "cal.json").read_text())["parameters"]
    a = parameters["intercept"] - 20 * parameters["entropy_weight"]
    T = np.clip(np.log1p(np.exp(a)), *parameters["temperature_limits"])
    np.testing.assert_allclose(cal.temperature(z), T, rtol=1e-12)


@pytest.mark.skipif(not PAGE.exists(), reason="the pages are not beside the tests")
def test_the_nodes_and_weights_are_those_of_the_page():
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    np.testing.assert_allclose(np.sort(NODES), nodes, atol=1e-14)
    np.testing.assert_allclose(WEIGHTS[np.argsort(NODES)], weights / weights.sum(), rtol=1e-13)
    page = PAGE.read_text(encoding="utf-8")
    assert re.search(r"\| ±√\(5 - √10\) \| \(7 \+ 2√10\) / 60 \|", page)
    assert re.search(r"\| ±√\(5 \+ √10\) \| \(7 - 2√10\) / 60 \|", page)
    assert "If H = 0, h = -20" in page
