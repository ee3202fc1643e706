"""The file of a prior: what is shipped, what is written and read back, what is refused."""

import hashlib
import json
import re
from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
from compared import TASKS

from temperance import InputError
from temperance.core.features import SHAPE_FEATURES
from temperance.population import (
    Population,
    read_population,
    shipped_population,
    weak_population,
    write_population,
)

MOST_ROWS = 10_000  # as in benchmarks/learn_prior.py
NUMBERS = ["intercept_scale", "class_scale", "freedom", "class_freedom"]
COVARIANCES = {"covariance": 4, "map_covariance": 8}
PRIORS = {"shipped": shipped_population(), "weak": weak_population()}
EACH = pytest.mark.parametrize("population", PRIORS.values(), ids=PRIORS)


def test_the_shipped_prior_expects_overconfidence_of_confident_rows_and_is_narrower_than_the_weak_one():
    shipped, weak = shipped_population(), weak_population()
    sure, unsure = shipped.intercept @ [1, -8], shipped.intercept @ [1, -1]
    assert sure > unsure
    assert sure > 0
    assert shipped.intercept_scale < weak.intercept_scale
    assert np.trace(shipped.covariance) < np.trace(weak.covariance)


def test_the_shipped_prior_lists_its_50_tasks_with_hashes_and_the_same_weight_for_each_data_set():
    weights = Counter()
    tasks = shipped_population().provenance["tasks"]
    assert (
        len({task["task"] for task in tasks}) == len({task["sha256"] for task in tasks}) == len(tasks) == 50
    )
    for task in tasks:
        weights[task["dataset"]] += task["weight"]
        assert task["task"]
        assert task["rows"] > 0
        assert task["classes"] >= 2
        assert len(task["coefficients"]) == 13  # level, shape, map
        assert re.fullmatch("[0-9a-f]{64}", task["sha256"])
    assert len(weights) >= 15
    np.testing.assert_allclose(list(weights.values()), 1, atol=1e-3)  # 4 digits for each task


@pytest.mark.skipif(not TASKS.is_dir(), reason="the task files are not here")
@pytest.mark.parametrize("task", shipped_population().provenance["tasks"], ids=lambda task: task["task"])
def test_the_shipped_prior_was_learned_from_validation_rows_only(task):
    with np.load(TASKS / f"{task['task']}.npz") as file:
        n_rows = len(file["labels_val"])
        step = -(-n_rows // MOST_ROWS)
        logits, labels = file["logits_val"][::step], file["labels_val"][::step]
    assert len(labels) == task["rows"]
    digest = hashlib.sha256(np.ascontiguousarray(logits, np.float64).tobytes())
    digest.update(np.ascontiguousarray(labels, np.int64).tobytes())
    assert digest.hexdigest() == task["sha256"]


@EACH
def test_a_written_prior_is_read_back_bit_for_bit(population, tmp_path):
    write_population(population, tmp_path / "prior.json")
    again = read_population(str(tmp_path / "prior.json"))
    for item in fields(Population):
        got, want = getattr(again, item.name), getattr(population, item.name)
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)
    write_population(again, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "prior.json").read_bytes()


def test_a_missing_file_raises_the_error_of_the_operating_system_and_the_shipped_one_is_read_once(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_population(tmp_path / "nothing.json")
    assert shipped_population() is shipped_population()


def covariance(size, kind):
    """Return a matrix that is no covariance."""
    return {
        "negative": np.diag([1.0] * (size - 1) + [-1e-3]),
        "zero": np.diag([1.0] * (size - 1) + [0.0]),
        "singular": np.ones((size, size)) - 1e-9 * np.eye(size),  # so that rounding does not decide
        "not symmetric": np.tri(size),
    }[kind].tolist()


KIND = "version 2, the features ('log entropy', 'its square'"
# A field, its value, and what is said.
REFUSED = [
    ("format", "temperance calibrator", KIND),
    *(("version", version, KIND) for version in (1, 3, None)),
    ("features", list(SHAPE_FEATURES)[::-1], KIND),
    ("features", list(SHAPE_FEATURES)[:3], KIND),
    ("features", "log entropy", KIND),
    ("map_knots", [0.0, 1.0], KIND),
    ("intercept", [0.0], "intercept must have the shape (2,); found (1,)"),
    ("intercept", 0.0, "intercept must have the shape (2,); found ()"),
    ("mean", [0.0] * 5, "mean must have the shape (4,); found (5,)"),
    ("covariance", np.eye(3).tolist(), "covariance must have the shape (4, 4); found (3, 3)"),
    ("covariance", [[1.0, 2.0], [3.0]], "covariance must have the shape (4, 4)"),
    ("map_mean", [0.0] * 4, "map_mean must have the shape (8,); found (4,)"),
    ("map_covariance", np.eye(4).tolist(), "map_covariance must have the shape (8, 8); found (4, 4)"),
    ("mean", ["a"] * 4, "mean must hold numbers only"),
    ("mean", [1e7] * 4, "mean must be <= 1e+06; found 1e+07"),
    ("mean", [0.0, float("nan")], "mean must be finite"),
    *(
        (name, value, f"{name} must be a number from 1e-06 to 1e+06; found {value!r}")
        for name in NUMBERS
        for value in (0.0, -1.0, 1e7, None, "wide")
    ),
    *(
        (name, covariance(size, kind), f": {name} must be symmetric and positive definite")
        for name, size in COVARIANCES.items()
        for kind in ("negative", "zero", "singular", "not symmetric")
    ),
]


def texts_and_reasons(path):
    """Yield the text of each file that must be refused, and the reason."""
    yield from ((text, "it must be JSON") for text in ("", "not JSON", "{", '{"format": }'))
    for text in ("{}", '{"format": "temperance population"}'):
        yield text, "it must have format 'temperance population', version 2"
        yield f"[{text}]", "the file must be a JSON object; found list"
    write_population(weak_population(), path)
    content = json.loads(path.read_text())
    for item in fields(Population):
        without = {name: value for name, value in content.items() if name != item.name}
        yield json.dumps(without), f"it lacks {item.name}"
    yield from ((json.dumps(content | {field: value}), reason) for field, value, reason in REFUSED)


def test_a_file_that_is_no_prior_is_refused_with_its_name_a_reason_and_advice(tmp_path):
    path = tmp_path / "spoiled.json"
    for text, reason in texts_and_reasons(tmp_path / "weak.json"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"holds no prior that can be read: ") as caught:
            read_population(path)
        message = str(caught.value)
        assert message.startswith(str(path))
        assert reason in message
        assert message.endswith(". Learn it again.")
