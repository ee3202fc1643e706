"""Fixtures of the tests of the numerical core."""

from collections.abc import Iterator

import pytest

from temperance.core import row_block


@pytest.fixture(params=["numpy", "compiled"])
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test once with each set of kernels."""
    if request.param == "compiled":
        pytest.importorskip("numba")
    with row_block.kernel(request.param):
        yield request.param
