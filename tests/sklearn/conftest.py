"""Small data sets with noise."""

import numpy as np
import pytest
from sklearn.datasets import make_classification


@pytest.fixture(scope="session")
def data() -> tuple[np.ndarray, np.ndarray]:
    """Return 400 rows of three classes."""
    return make_classification(400, 8, n_informative=5, n_classes=3, flip_y=0.1, random_state=1)


@pytest.fixture(scope="session")
def binary_data() -> tuple[np.ndarray, np.ndarray]:
    """Return 200 rows of two classes."""
    return make_classification(200, 6, flip_y=0.1, random_state=2)
