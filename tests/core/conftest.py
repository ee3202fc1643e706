"""Fixtures of the tests of the numerical core."""

from collections.abc import Iterator

import pytest

from temperance.core import backend


@pytest.fixture(params=["numpy", "compiled"])
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test once with each set of kernels."""
    if request.param == "compiled":
        pytest.importorskip("numba")
    with backend.kernel(request.param):
        yield request.param
