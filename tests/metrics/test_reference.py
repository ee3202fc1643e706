"""Numbers of the paper's uncalibrated ResNet-50 on CIFAR-10."""

import numpy as np
import pytest
from compared import TASKS
from scipy.special import softmax

from temperance import metrics

TASK = TASKS / "cifar10__resnet50-psrcal.npz"


@pytest.fixture(scope="module")
def test_rows():
    if not TASK.exists():
        pytest.skip("the paper's logits are not on this machine")
    with np.load(TASK) as task:
        return softmax(task["logits_test"], axis=1), task["labels_test"]


def test_the_uncalibrated_scores_are_those_of_the_paper(test_rows):
    assert 100 * metrics.ece(*test_rows, bins=50) == pytest.approx(10.71, abs=0.005)
    assert metrics.nll(*test_rows) == pytest.approx(0.7897, abs=5e-5)
    assert metrics.brier(*test_rows) == pytest.approx(0.2392, abs=5e-5)
