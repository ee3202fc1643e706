"""The task that comes with the package, and simulated ones."""

from importlib.resources import files

import numpy as np
import pytest

from temperance import InputError
from temperance.data import demo_task, simulate


def test_the_built_in_task_is_large_and_its_file_small():
    task = demo_task()
    of_parts = (task.val_logits, task.val_labels, 5000), (task.test_logits, task.test_labels, 10000)
    for logits, labels, rows in of_parts:
        assert (logits.shape, logits.dtype) == ((rows, 10), np.float32)
        assert (labels.shape, labels.dtype) == ((rows,), np.intp)
        assert 0.7 < (logits.argmax(axis=1) == labels).mean() < 0.95
    assert files("temperance.data").joinpath("demo.npz").stat().st_size < 500_000


@pytest.mark.parametrize("spread", ["wide", None])
def test_the_spread_of_simulated_classes_is_a_number(spread):
    with pytest.raises(InputError, match="class_spread must be a number"):
        simulate(n_rows=10, n_classes=3, class_spread=spread)
