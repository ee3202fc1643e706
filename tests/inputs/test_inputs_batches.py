"""A list of (n, K) arrays is the batches of a loader: joined, and never groups."""

import ml_dtypes
import numpy as np
import pandas
import pytest

import temperance
from temperance import InputError, logits_from_probs, metrics, monitoring, probability_floor
from temperance.data import simulate
from temperance.inputs.probabilities import check_probabilities

TASK = simulate(n_rows=300, n_classes=3, random_state=1)
PROBS, LABELS = TASK.probabilities, TASK.labels
SPLITS = {"equal": [100, 200], "a shorter last one": [120, 240], "one": [], "rows": list(range(1, 300))}


@pytest.fixture(params=SPLITS.values(), ids=SPLITS.keys())
def cut(request):
    """Return a function that cuts an array into batches."""
    return lambda array: np.split(array, request.param)


def test_batches_are_the_rows_of_one_array(cut):
    whole = temperance.TemperatureScaling().fit(TASK.logits, LABELS)
    cal = temperance.TemperatureScaling().fit(cut(TASK.logits), cut(LABELS))
    assert cal.temperature_ == whole.temperature_
    assert cal.model_.n_groups is None
    assert temperance.TemperatureScaling().fit(cut(TASK.logits), LABELS).temperature_ == whole.temperature_
    for name in ("predict_proba", "transform", "predict", "temperature"):
        np.testing.assert_array_equal(getattr(cal, name)(cut(TASK.logits)), getattr(cal, name)(TASK.logits))
    groups, weights = np.arange(300) // 7, np.linspace(1, 2, 300)
    cal.fit(cut(TASK.logits), cut(LABELS), cut(weights), groups=cut(groups))
    assert cal.n_groups_ == 43
    assert cal.temperature_ == whole.fit(TASK.logits, LABELS, weights, groups=groups).temperature_


def test_batches_of_probabilities(cut):
    np.testing.assert_array_equal(logits_from_probs(cut(PROBS)), logits_from_probs(PROBS))
    assert probability_floor(cut(PROBS)) == probability_floor(PROBS)
    assert metrics.nll(cut(PROBS), cut(LABELS)) == metrics.nll(PROBS, LABELS)
    cal = temperance.TemperatureScaling().fit(cut(PROBS), cut(LABELS), from_probs=True)
    wanted = cal.predict_proba(PROBS, from_probs=True)
    np.testing.assert_array_equal(cal.predict_proba(cut(PROBS), from_probs=True), wanted)


def test_batches_in_compare_and_check_have_no_groups(cut):
    one = temperance.compare(TASK.logits, LABELS, methods=["ts"], draws=5)
    found = temperance.compare(cut(TASK.logits), cut(LABELS), methods=["ts"], draws=5)
    assert found.results["ts"].scores["nll"] == one.results["ts"].scores["nll"]
    assert found.fitted.n_groups is None
    cal = one.results["ts"].calibrator
    other = simulate(n_rows=300, n_classes=3, random_state=7)
    checked = monitoring.check(cal, cut(other.logits), cut(other.labels))
    assert checked.to_dict() == monitoring.check(cal, other.logits, other.labels).to_dict()


def test_batches_of_tensors_give_a_tensor(torch, cut):
    cal = temperance.TemperatureScaling().fit(TASK.logits, LABELS)
    logits = [torch.from_numpy(part).float().requires_grad_() for part in cut(TASK.logits)]
    found = cal.predict_proba(logits)
    assert isinstance(found, torch.Tensor)
    assert found.shape == (300, 3)
    found[:, 0].sum().backward()
    assert all(part.grad is not None for part in logits)
    labels = [torch.from_numpy(part) for part in cut(LABELS)]
    with torch.no_grad():
        again = temperance.TemperatureScaling().fit([part.detach().double() for part in logits], labels)
    assert again.temperature_ == pytest.approx(cal.temperature_, rel=1e-5)


def test_rows_and_images_in_a_list_are_what_they_were():
    cal = temperance.TemperatureScaling().fit(list(TASK.logits), list(LABELS))
    assert cal.n_rows_ == 300
    pixels = TASK.logits.reshape(2, 15, 10, 3).transpose(0, 3, 1, 2)
    images = temperance.TemperatureScaling().fit(list(pixels), list(LABELS.reshape(2, 15, 10)), dim=1)
    assert (images.n_groups_, images.n_rows_) == (2, 300)
    tokens = TASK.logits.reshape(3, 100, 3)
    texts = temperance.TemperatureScaling().fit(tokens, list(LABELS.reshape(3, 100)))
    assert texts.n_groups_ == 3


def test_batches_that_cannot_be_joined_say_why():
    cal = temperance.TemperatureScaling().fit(TASK.logits, LABELS)
    with pytest.raises(InputError, match="same columns; found 2, 3 columns"):
        cal.predict_proba([TASK.logits, TASK.logits[:, :2]])
    with pytest.raises(InputError, match=r"found data frames\. Join them first"):
        cal.predict_proba([pandas.DataFrame(TASK.logits, columns=["a", "b", "c"])] * 2)
    with pytest.raises(InputError, match="lists of different lengths"):
        cal.fit(TASK.logits, [[0, 1], [2]])


@pytest.mark.parametrize("n_classes", [3, 1000])
def test_a_softmax_in_bfloat16_sums_to_1_as_well_as_it_can(n_classes, torch):
    task = simulate(n_rows=200, n_classes=n_classes, random_state=1)
    logits, labels = torch.from_numpy(task.logits), task.labels
    for probs in (
        torch.softmax(logits.bfloat16(), -1),
        torch.softmax(logits, -1).bfloat16(),
        torch.softmax(logits, -1).numpy().astype(ml_dtypes.bfloat16),
    ):
        assert check_probabilities(probs).dtype == np.float32
        assert np.isfinite(metrics.brier(probs, labels))
        cal = temperance.TemperatureScaling().fit(probs, labels, from_probs=True)
        found = cal.predict_proba(probs, from_probs=True)
        assert bool((found == found).all())
    with pytest.raises(InputError, match="rows sum to 1"):
        check_probabilities(probs.astype(np.float32) * 1.01)
