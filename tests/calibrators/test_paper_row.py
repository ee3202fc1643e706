"""The paper's row for ResNet-50 on CIFAR-10, from the paper's own logits."""

import numpy as np
import pytest
from compared import TASKS
from scipy.special import softmax

from temperance import make_calibrator, metrics

TASK = TASKS / "cifar10__resnet50-psrcal.npz"

pytestmark = pytest.mark.skipif(not TASK.exists(), reason="the paper's logits are not part of the package")


@pytest.fixture(scope="module")
def logits() -> dict[str, np.ndarray]:
    with np.load(TASK) as file:
        return dict(file)


def scores(probs, labels):
    """Return what the tables print: ECE with 50 bins in percent, NLL, Brier."""
    ece = 100 * metrics.ece(probs, labels, bins=50)
    return f"{ece:.2f} {metrics.nll(probs, labels):.4f} {metrics.brier(probs, labels):.4f}"


def fitted_nll(logits, method, **options):
    cal = make_calibrator(method, **options).fit(logits["logits_val"], logits["labels_val"])
    return metrics.nll(cal.predict_proba(logits["logits_test"]), logits["labels_test"])


@pytest.mark.parametrize(
    ("method", "options", "expected"),
    [
        (None, {}, "10.71 0.7897 0.2392"),
        ("ts", {}, "2.54 0.4473 0.2037"),
        ("ets", {"loss": "brier"}, "2.84 0.4515 0.2029"),
    ],
)
def test_methods_with_a_unique_optimum_reach_the_table_to_the_last_digit(logits, method, options, expected):
    probs = softmax(logits["logits_test"].astype(np.float64), axis=1)
    if method:
        cal = make_calibrator(method, **options).fit(logits["logits_val"], logits["labels_val"])
        probs = cal.predict_proba(logits["logits_test"])
    assert scores(probs, logits["labels_test"]) == expected


@pytest.mark.parametrize(
    ("method", "expected", "within"),
    # BTS: a row more or less in each bin moves it by as much.
    [("hts", 0.4448, 3e-4), ("lts", 0.4399, 3e-4), ("hnlts", 0.4386, 3e-4), ("bts", 0.4486, 1.5e-3)],
)
def test_the_adaptive_methods_reach_the_nll_of_the_table(logits, method, expected, within):
    assert fitted_nll(logits, method) == pytest.approx(expected, abs=within)


def test_pts_reaches_the_nll_of_the_table_on_average_over_starts(logits):
    values = [fitted_nll(logits, "pts", random_state=seed) for seed in range(5)]
    assert np.mean(values) <= 0.4450


def test_pts_with_200_rows_is_no_worse_than_a_tenth_above_ts_on_average():
    ratios = []
    for path in sorted(TASK.parent.glob("cifar*.npz"))[::4]:
        data = np.load(path)
        for draw in range(2):
            chosen = np.random.default_rng(draw).permutation(len(data["labels_val"]))[:200]
            losses = [
                metrics.nll(
                    make_calibrator(key)
                    .fit(data["logits_val"][chosen], data["labels_val"][chosen])
                    .predict_proba(data["logits_test"]),
                    data["labels_test"],
                )
                for key in ("pts", "ts")
            ]
            ratios.append(losses[0] / losses[1])
    assert len(ratios) >= 10
    assert np.mean(ratios) <= 1.10
