"""Fits to rows that belong together: what groups mean, exactly, and what they change."""

import warnings

import numpy as np
import pytest
from compared import COMPARED
from scipy.special import expit, softmax

import temperance
from temperance import InputError, make_calibrator
from temperance.calibrators.external_methods import fit as fit_any
from temperance.data import simulate

BY_LIKELIHOOD = ["ts", "hts", "lts", "hnlts", "bts", "ets"]


def fit(key, logits, labels, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(did not converge|its temperatures are not)")
        return make_calibrator(key).fit(logits, labels, **options)


def clustered(n_groups, size, seed, n_classes=3, deviation=1.0, bias=0.0):
    """Return logits, labels and groups: each group has its own class frequencies, bias and temperature."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n_groups).repeat(size)
    z = 1.5 * rng.normal(size=(len(groups), n_classes))
    z += 3 * rng.dirichlet(np.full(n_classes, 0.5), n_groups)[groups]
    shifts = deviation * rng.normal(size=(n_groups, n_classes)) + bias * np.linspace(-1, 1, n_classes)
    temperatures = 1.7 * np.exp(0.3 * deviation * rng.normal(size=n_groups))
    p = softmax(z / temperatures[groups, None] + shifts[groups], axis=1)
    return z, (p.cumsum(axis=1) > rng.random((len(z), 1))).argmax(axis=1), groups


@pytest.fixture(scope="module")
def rows():
    return simulate(n_rows=180, n_classes=3, random_state=2)


@pytest.mark.parametrize("key", COMPARED)
def test_groups_of_one_row_each_are_no_groups(key, rows):
    plain = fit(key, rows.logits, rows.labels)
    alone = fit(key, rows.logits, rows.labels, groups=np.arange(180)[::-1])
    np.testing.assert_array_equal(plain.predict_proba(rows.logits), alone.predict_proba(rows.logits))
    for name, error in plain.standard_errors_.items():
        np.testing.assert_array_equal(alone.standard_errors_[name], error)
    assert not hasattr(alone, "n_groups_")


@pytest.mark.filterwarnings("ignore:rows must be different ones")
@pytest.mark.parametrize("n_classes", [2, 5, 30])
@pytest.mark.parametrize("key", ["bayes", "bayes-bias", "mono"])
def test_rows_repeated_in_a_group_are_worth_one_row(key, n_classes):
    task = simulate(n_rows=150, n_classes=n_classes, random_state=1)
    logits, k = task.logits + np.linspace(-1, 1, n_classes), 4
    once = fit(key, logits, task.labels)
    groups = np.arange(150).repeat(k)
    repeated = fit(key, logits.repeat(k, axis=0), task.labels.repeat(k), groups=groups)
    # But for the tolerance of the widths: the sample that they are estimated from is another.
    np.testing.assert_allclose(
        repeated.predict_proba(logits), once.predict_proba(logits), rtol=1e-3, atol=3e-4
    )
    for name, error in once.standard_errors_.items():
        np.testing.assert_allclose(repeated.standard_errors_[name], error, rtol=3e-3)
    if key == "bayes-bias":
        np.testing.assert_allclose(repeated.bias_weights_, once.bias_weights_, atol=1e-3)
    assert repeated.design_effect_ == pytest.approx(k)
    without = fit(key, logits.repeat(k, axis=0), task.labels.repeat(k))
    assert np.abs(without.predict_proba(logits) - once.predict_proba(logits)).max() > 0.003


@pytest.mark.parametrize("key", ["ts", "hts", "bayes-bias"])
def test_names_of_groups_change_nothing(key):
    z, y, groups = clustered(250, 2, seed=0)  # so many that sets of them are left out
    one = fit(key, z, y, groups=groups)
    other = fit(key, z, y, groups=np.random.default_rng(0).permutation(250)[groups].astype(str))
    np.testing.assert_array_equal(one.predict_proba(z), other.predict_proba(z))


@pytest.mark.parametrize("key", BY_LIKELIHOOD)
def test_estimates_by_maximum_likelihood_keep_their_value(key):
    z, y, groups = clustered(20, 30, seed=1)
    plain, grouped = fit(key, z, y), fit(key, z, y, groups=groups)
    np.testing.assert_array_equal(plain.predict_proba(z), grouped.predict_proba(z))
    assert grouped.n_groups_ == 20
    for name, error in plain.standard_errors_.items():
        assert not np.allclose(grouped.standard_errors_[name], error, rtol=0.1)
    if key == "ts":
        assert grouped.standard_errors_["temperature"] > 1.5 * plain.standard_errors_["temperature"]


def losses_on_new_groups(n_groups, size, seed, **shifts):
    """Return the function from a method, and groups or None, to its log loss on 300 new groups."""
    z, y, groups = clustered(n_groups, size, seed, **shifts)
    new, truth, _ = clustered(300, 10, seed + 1, **shifts)

    def loss(key, grouped=True):
        probs = fit(key, z, y, groups=groups if grouped else None).predict_proba(new)
        return -np.log(probs[np.arange(len(truth)), truth]).mean()

    return loss


def test_standard_errors_are_those_of_the_sandwich():
    z, y, groups = clustered(25, 20, seed=3)
    cal = fit("hts", z, y, groups=groups)
    n_rows, K = z.shape
    p = softmax(z, axis=1)
    h = np.log(-(p * np.log(p)).sum(axis=1) / np.log(K))
    features = np.column_stack([np.ones(n_rows), h])
    a = features @ [cal.intercept_, cal.entropy_weight_]
    T = np.log1p(np.exp(a))
    assert ((cal.temperature_limits_[0] < T) & (cal.temperature_limits_[1] > T)).all()
    slope = -expit(a) / T**2  # of 1 / T
    q = softmax(z / T[:, None], axis=1)
    mean = (q * z).sum(axis=1)
    scores = features * ((mean - z[np.arange(n_rows), y]) * slope)[:, None]
    variance = (q * z**2).sum(axis=1) - mean**2
    bread = np.linalg.inv(features.T @ (features * (variance * slope**2)[:, None]))
    sums = np.array([scores[groups == g].sum(axis=0) for g in range(25)])
    covariance = bread @ (sums.T @ sums) @ bread * 25 / 24
    found = [float(cal.standard_errors_[name]) for name in ("intercept", "entropy_weight")]
    np.testing.assert_allclose(found, np.sqrt(covariance.diagonal()), rtol=1e-4)


def test_on_new_groups_a_class_bias_is_safe_with_groups_and_not_without():
    loss = losses_on_new_groups(6, 400, seed=4, deviation=1.8)
    assert loss("bayes-bias", grouped=False) > 1.02 * loss("bayes", grouped=False)
    assert loss("bayes-bias") < 1.01 * loss("bayes")
    assert loss("bayes-bias") < 0.98 * loss("bayes-bias", grouped=False)
    of_all_groups = losses_on_new_groups(60, 20, seed=6, deviation=0.6, bias=1.5)
    assert of_all_groups("bayes-bias") < 0.95 * of_all_groups("bayes")


def test_pixels_and_tokens_have_groups_already():
    z, y, groups = clustered(12, 30, seed=8)
    named = fit("bayes", z, y, groups=groups)
    tokens = fit("bayes", z.reshape(12, 30, 3), y.reshape(12, 30))
    images = np.moveaxis(z.reshape(12, 5, 6, 3), -1, 1)
    pixels = fit("bayes", images, y.reshape(12, 5, 6), dim=1)
    for cal in (tokens, pixels):
        assert cal.n_groups_ == 12
        np.testing.assert_array_equal(cal.predict_proba(z, dim=-1), named.predict_proba(z))
    assert "12 groups; design effect" in tokens.summary()
    labels = y.reshape(12, 30).copy()
    labels[1:] = 255
    assert not hasattr(fit("ts", z.reshape(12, 30, 3), labels, ignore_index=255), "n_groups_")


def test_the_summary_and_the_file_say_what_the_rows_are_worth(tmp_path):
    z, y, groups = clustered(40, 30, seed=9)
    cal = fit("bayes", z, y, groups=groups)
    worth = 1200 / cal.design_effect_
    (line,) = [line for line in cal.summary().splitlines() if "groups" in line]
    assert line.startswith(f"40 groups; design effect {cal.design_effect_:.2g}: worth about ")
    assert float(line.split()[-3].replace(",", "")) == pytest.approx(worth, rel=0.05)
    cal.save(tmp_path / "cal.json")
    loaded = temperance.load(tmp_path / "cal.json")
    assert (loaded.n_groups_, loaded.design_effect_) == (40, cal.design_effect_)
    assert loaded.summary() == cal.summary()
    assert cal.baseline_.effective_rows == pytest.approx(worth)
    assert fit("bayes", z, y).baseline_.effective_rows == 1200


def test_groups_need_arrays_in_memory():
    array = pytest.importorskip("dask.array")
    logits, labels = array.zeros((8, 2), chunks=4), array.zeros(8, int, chunks=4)
    with pytest.raises(InputError, match="groups are for arrays in memory; found a Dask collection"):
        make_calibrator("ts").fit(logits, labels, groups=np.arange(8) // 2)


def test_a_method_of_another_package_gets_groups_only_if_it_takes_them(rows):
    class Plain:
        def fit(self, logits, labels):
            return self

        def predict_proba(self, logits):
            return softmax(logits, axis=1)

    class Grouped(Plain):
        def fit(self, logits, labels, groups=None):
            self.groups_ = groups
            return self

    groups = np.arange(180) // 6
    assert fit_any(Plain(), rows.logits, rows.labels, groups=groups)
    told = fit_any(Grouped(), rows.logits, rows.labels, groups=groups)
    assert told.groups_ is groups
