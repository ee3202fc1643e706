"""Fixtures of the tests of the numerical core."""

import pytest


@pytest.fixture(params=["numpy", "compiled"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test once with each set of kernels."""
    if request.param == "compiled":
        pytest.importorskip("numba")
    monkeypatch.setenv("TEMPERANCE_KERNEL", request.param)
    return request.param
