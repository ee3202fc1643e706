"""Rows, plain and weighted, that the tests of Dask share; schedulers that need no cluster."""

import dask
import numpy as np
import pytest

from temperance.data import simulate


@pytest.fixture(scope="session")
def task():
    return simulate(3000, 5, temperature=2.0, random_state=3)


@pytest.fixture(scope="session")
def weights(task):
    """Return weights of which a whole part of the rows has none."""
    weights = np.random.default_rng(4).uniform(0.1, 2, len(task.labels))
    weights[:40] = 0
    return weights


@pytest.fixture
def in_this_thread():
    """Let Dask compute here, one task after the other, where a test asks for nothing else."""
    with dask.config.set(scheduler="synchronous"):
        yield
