"""Logits of any finite size: every method works, or refuses with a sentence; none warns about overflow."""

import warnings

import numpy as np
import pytest

from temperance import CALIBRATORS, InputError, make_calibrator
from temperance.data import simulate

METHODS = [key for key in CALIBRATORS if not key.endswith("sgd")]
LARGEST = float(np.finfo(np.float64).max)
OFTEN, SELDOM = [1e-300, 1e160, LARGEST], [5e-320, 1e30, 1e100, 1e140, 1e300, 1e308]
SCALES = [*OFTEN, *(pytest.param(scale, marks=pytest.mark.slow) for scale in SELDOM)]
SLOW = dict.fromkeys(("pts-plain", "bayes-bias"), pytest.mark.slow)
WEIGHS_ALL = ("lts", "hnlts", "pts", "pts-ece", "pts-plain")


@pytest.fixture(autouse=True)
def _only_our_warnings():
    """Let the warnings in sentences pass; those of NumPy stay errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@pytest.fixture(scope="module")
def rows(task):
    return task.logits[:60] / np.abs(task.logits[:60]).max(), task.labels[:60]


@pytest.fixture(params=[pytest.param(key, marks=SLOW.get(key, ())) for key in METHODS])
def key(request):
    return request.param


def predicts(calibrator, logits):
    """Assert that predictions are probabilities; methods that weigh all logits may refuse an overflow."""
    if calibrator.key in WEIGHS_ALL and np.abs(logits).max() > 1e307:
        with pytest.raises(InputError, match=r"have a finite sum .* rows"):
            calibrator.predict_proba(logits * 1)
        return
    probs = calibrator.predict_proba(logits)
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("scale", SCALES)
def test_any_scale_is_fitted_or_refused_with_the_rows(scale, key, rows, fit, fitted):
    logits, labels = rows[0] * scale, rows[1]
    predicts(fitted(key), logits)
    if scale <= 1e100:
        predicts(fit(key, logits, labels), logits)
        return
    with pytest.raises(InputError, match=r"between -1e\+100 and 1e\+100 to be fitted; found .* in 60 rows"):
        fit(key, logits, labels)
    assert fit(key, logits / scale, labels).n_rows_ == 60  # the remedy


@pytest.mark.parametrize(
    "mask", [-LARGEST, pytest.param(-1e200, marks=pytest.mark.slow), float(np.finfo(np.float32).min)]
)
def test_a_large_negative_logit_may_mark_an_impossible_class(mask, key, rows, fit, task):
    logits, labels = task.logits[:60].astype(np.float64), rows[1]
    logits[np.arange(60), (labels + 1) % 4] = mask
    if key in WEIGHS_ALL and mask < -1e100:
        with pytest.raises(
            InputError, match=r"(?s)weighs every one of them.*in 60 rows.*such as ts or bayes"
        ):
            fit(key, logits, labels)
        return
    calibrator = fit(key, logits, labels)
    predicts(calibrator, logits)
    if key not in WEIGHS_ALL:
        assert (calibrator.predict_proba(logits)[np.arange(60), (labels + 1) % 4] < 1e-3).all()


def test_a_label_of_an_impossible_class_is_named(rows, fit, task):
    logits = task.logits[:60].astype(np.float64)
    logits[[7, 9], rows[1][[7, 9]]] = -LARGEST
    with pytest.raises(InputError, match=r"own label must not be .*in 2 rows \(first: row 7\)"):
        fit("ts", logits, rows[1])


def test_a_class_bias_accepts_weights_of_any_ratio(fit):
    rng = np.random.default_rng(0)
    logits, labels = rng.standard_normal((53, 13)), rng.integers(0, 13, 53)
    for _ in range(3):
        calibrator = fit("bayes-bias", logits, labels, rng.choice([0.0, 1e-9, 1.0, 1e9], 53))
        predicts(calibrator, logits)


def test_probabilities_sum_to_one_with_any_class_bias(fit):
    rng = np.random.default_rng(1)
    logits = rng.standard_normal((49, 210)) * 5e-158
    labels = np.where(rng.random(49) < 0.6, logits.argmax(axis=1), rng.integers(0, 210, 49))
    predicts(fit("bayes-bias", logits, labels, rng.choice([0.0, 1e-9, 1.0, 1e9], 49)), logits)


@pytest.mark.parametrize("seed", range(3))
def test_steps_that_correct_the_curvature_do_not_overflow(seed):
    task = simulate(67, 107, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        fitted = make_calibrator("hnlts").fit(9e80 * task.logits, task.labels)
    assert np.isfinite(fitted.class_weights_).all()
