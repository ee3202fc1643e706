"""The task that comes with the package."""

from importlib.resources import files

import numpy as np

from temperance.data import demo_task
from temperance.data.tasks import Task


def test_the_built_in_task():
    task = demo_task()
    assert isinstance(task, Task)
    for logits, labels, rows in (
        (task.val_logits, task.val_labels, 5000),
        (task.test_logits, task.test_labels, 10000),
    ):
        assert logits.shape == (rows, 10)
        assert logits.dtype == np.float32
        assert labels.shape == (rows,)
        assert labels.dtype == np.intp
        assert 0.7 < (logits.argmax(axis=1) == labels).mean() < 0.95


def test_its_file_is_small():
    assert files("temperance.data").joinpath("demo.npz").stat().st_size < 500_000
