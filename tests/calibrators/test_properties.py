"""What every method of the registry guarantees for any logits."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from compared import CLASS_KEEPING
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from temperance import make_calibrator, metrics
from temperance.data import simulate

phases = (Phase.explicit, Phase.generate, Phase.shrink)
few = settings(deadline=None, max_examples=4, derandomize=True, database=None, phases=phases)

# The ECE loss jumps where a row changes bins, so a rounding error may end its descent elsewhere: PTSe is
# tested for what it guarantees at use, not for the same fit from sums in another order.
SMOOTH = [key for key in CLASS_KEEPING if key != "pts-ece"]
# The network ends where a step gains less than 1e-6, on a loss with kinks: rounding errors decide between
# ends whose losses differ by that much, and whose probabilities differ by some of its square root.
TOLERANCE = {key: {"rtol": 1e-5, "atol": 1e-9} for key in SMOOTH} | {
    "pts": {"rtol": 0, "atol": 5e-3},
    "bayes": {"rtol": 1e-7, "atol": 1e-10},
}
# Those whose prior counts rows: twice the weight is twice the evidence.
WITH_PRIOR = ["pts", "mono", "bayes"]

every_smooth_method = pytest.mark.parametrize("method", SMOOTH)


@dataclass(frozen=True)
class Case:
    """Logits of some scale, labels that are right in some rows and wrong in others, and new logits."""

    n_rows: int
    n_classes: int
    scale: float
    seed: int
    dtype: type = np.float64
    ties: bool = False

    def draw(self):
        rng = np.random.default_rng(self.seed)
        logits, new = 2 * rng.standard_normal((2, self.n_rows, self.n_classes))
        if self.ties:
            logits = logits.round()
        logits[0, 0], logits[1, 0] = 5, 6
        labels = (softmax(logits, axis=1).cumsum(axis=1) < rng.random((self.n_rows, 1))).sum(axis=1)
        labels[:2] = 0, 1  # right, and wrong
        return (self.scale * logits).astype(self.dtype), labels, (self.scale * new).astype(self.dtype)


scales, seeds = st.sampled_from([1e-2, 0.3, 1.0, 5.0, 1e2]), st.integers(0, 10_000)
doubles = st.builds(Case, st.integers(30, 120), st.integers(2, 6), scales, seeds, ties=st.booleans())
cases = st.builds(replace, doubles, dtype=st.sampled_from([np.float32, np.float64]))
# Tied confidences differ by rounding, and then a bin edge falls between them by chance: none where fits
# are compared. With logits of a hundred, most entropies of the fit are at their floor, so that their weight
# is not determined, and rows above the floor would show it.
moderate = st.sampled_from([1e-2, 0.3, 1.0, 5.0])
untied = st.builds(Case, st.integers(60, 120), st.integers(2, 6), moderate, seeds)


@few
@given(cases)
def test_probabilities_are_a_distribution_that_keeps_the_decision(method, fit, case):
    logits, labels, new = case.draw()
    cal = fit(method, logits, labels)
    for z in (logits, new):
        probs = cal.predict_proba(z)
        assert probs.shape == z.shape
        assert probs.dtype == z.dtype
        assert np.isfinite(probs).all()
        assert (probs >= 0).all()
        np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-6 if z.dtype == np.float32 else 1e-12)
        np.testing.assert_array_equal(cal.predict(z), z.argmax(axis=1))
        np.testing.assert_array_equal(probs[np.arange(len(z)), z.argmax(axis=1)], probs.max(axis=1))


@few
@given(cases)
def test_temperatures_are_positive_and_near_the_best_single_one(method, fit, case):
    logits, labels, new = case.draw()
    cal, best = fit(method, logits, labels), fit("ts", logits, labels).temperature_
    if not hasattr(cal, "temperature_quantiles_"):
        own = cal.reference_ if method == "mono" else cal.temperature_
        assert best / 10.001 <= own <= 10.001 * best
        return
    temperature = np.concatenate([cal.temperature(logits), cal.temperature(new)])
    assert temperature.shape == (2 * len(logits),)
    assert np.isfinite(temperature).all()
    assert (temperature > 0).all()
    if method == "bayes":  # its own single temperature, and further from it: the prior holds T as well
        limits = cal.reference_ / 30, cal.reference_ * 30
        np.testing.assert_allclose(cal.temperature_limits_, limits, rtol=1e-9)
        assert (temperature >= limits[0] * (1 - 1e-9)).all()
        assert (temperature <= limits[1] * (1 + 1e-9)).all()
        return
    # An empty bin of BTS has T = 1, whatever the others have.
    limited = temperature[temperature != 1] if method == "bts" else temperature
    assert (limited >= best / 10.001).all()
    assert (limited <= 10.001 * best).all()
    if hasattr(cal, "temperature_limits_"):
        np.testing.assert_allclose(cal.temperature_limits_, [best / 10, 10 * best], rtol=1e-4)


@few
@given(doubles, st.floats(-1e3, 1e3))
def test_a_constant_added_to_each_row_changes_nothing_at_use(method, fit, case, offset):
    logits, labels, new = case.draw()
    cal = fit(method, logits, labels)
    shifted = new + offset * np.cos(np.arange(len(new)))[:, None]
    np.testing.assert_allclose(cal.predict_proba(shifted), cal.predict_proba(new), rtol=1e-6, atol=1e-12)
    if hasattr(cal, "temperature_quantiles_"):
        np.testing.assert_allclose(cal.temperature(shifted), cal.temperature(new), rtol=1e-6)


@few
@given(doubles)
def test_calibrated_logits_have_the_calibrated_probabilities_as_their_softmax(method, fit, case):
    logits, labels, new = case.draw()
    cal = fit(method, logits, labels)
    np.testing.assert_allclose(
        softmax(cal.transform(new), axis=1), cal.predict_proba(new), rtol=1e-9, atol=1e-300
    )


@pytest.mark.parametrize("method", [key for key in SMOOTH if key != "bayes"])  # which its prior holds back
@few
@given(cases)
def test_no_method_fits_the_rows_worse_than_ts_which_each_of_them_contains(method, fit, case):
    logits, labels, _ = case.draw()
    wide = logits.astype(np.float64)
    ours, single = (
        metrics.nll(fit(key, logits, labels).predict_proba(wide), labels) for key in (method, "ts")
    )
    # A network with a prior ends near its optimum only; it contains TS at no cost of the prior.
    assert ours <= single + (1e-4 if method == "pts" else 1e-6)


@pytest.mark.parametrize("method", ["hts", "hnlts"])
def test_the_order_of_the_rows_does_not_matter_to_the_loss_of_an_undetermined_fit(method, fit):
    logits, labels, _ = Case(62, 2, 100.0, 7).draw()
    losses = [fit(method, logits[::step], labels[::step]).solution_.value for step in (1, -1)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-10)


@every_smooth_method
@few
@given(untied)
def test_the_size_of_the_blocks_matters_neither_to_the_fit_nor_to_its_use(method, fit, case):
    logits, labels, new = case.draw()
    whole = fit(method, logits, labels).predict_proba(new)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("temperance.core.blocks.BLOCK_BYTES", 1500)
        in_blocks = fit(method, logits, labels).predict_proba(new)
    np.testing.assert_allclose(in_blocks, whole, **TOLERANCE[method])


@every_smooth_method
@few
@given(untied)
def test_renaming_the_classes_renames_the_result(method, fit, case):
    logits, labels, new = case.draw()
    order = np.random.default_rng(4).permutation(logits.shape[1])
    plain = fit(method, logits, labels).predict_proba(new)
    renamed = fit(method, logits[:, order], np.argsort(order)[labels]).predict_proba(new[:, order])
    np.testing.assert_allclose(renamed, plain[:, order], **TOLERANCE[method])


def test_pts_does_not_depend_on_the_order_of_many_rows():
    task = simulate(9_000, 10, random_state=1)
    order = np.random.default_rng(0).permutation(9_000)
    one = make_calibrator("pts").fit(task.logits, task.labels)
    other = make_calibrator("pts").fit(task.logits[order], task.labels[order])
    np.testing.assert_allclose(one.predict_proba(task.logits), other.predict_proba(task.logits), atol=1e-4)


@pytest.mark.filterwarnings("ignore:rows must be different ones")
def test_quantiles_count_a_weight_as_repetition():
    task = simulate(300, 4)
    weights = np.random.default_rng(0).integers(0, 4, 300)
    one = make_calibrator("hts").fit(task.logits, task.labels, weights)
    other = make_calibrator("hts").fit(*(np.repeat(a, weights, axis=0) for a in (task.logits, task.labels)))
    np.testing.assert_allclose(one.temperature_quantiles_, other.temperature_quantiles_, rtol=1e-6)


def in_another_order(z, y, rng):
    order = rng.permutation(len(z))
    return (z, y), (z[order], y[order])


def a_weight_and_the_row_repeated(z, y, rng):
    times = rng.integers(1, rng.integers(3, 6), len(z))
    return (z, y, times), (z.repeat(times, axis=0), y.repeat(times))


def a_weight_of_0_and_no_row(z, y, rng):
    kept = (rng.random(len(z)) < 0.8) | (np.arange(len(z)) < 2)
    return (z, y, kept.astype(float)), (z[kept], y[kept])


def another_unit_of_the_weights(z, y, rng):
    weights = rng.uniform(0.5, 2, len(z))
    return (z, y, weights), (z, y, 100 * weights)


def a_constant_added_to_each_row(z, y, rng):
    return (z, y), (z + rng.uniform(-1e3, 1e3) * np.cos(np.arange(len(z)))[:, None], y)


SAME = [in_another_order, a_weight_and_the_row_repeated, a_weight_of_0_and_no_row]
SAME += [a_constant_added_to_each_row]


@pytest.mark.filterwarnings("ignore:rows must be different ones")
@pytest.mark.parametrize(
    ("method", "pair"),
    [(key, pair) for key in SMOOTH for pair in SAME]
    + [(key, another_unit_of_the_weights) for key in SMOOTH if key not in WITH_PRIOR],
)
@few
@given(untied, seeds)
def test_rows_that_say_the_same_give_the_same_calibration(method, pair, fit, case, seed):
    logits, labels, new = case.draw()
    one, other = (fit(method, *given) for given in pair(logits, labels, np.random.default_rng(seed)))
    np.testing.assert_allclose(one.predict_proba(new), other.predict_proba(new), **TOLERANCE[method])
