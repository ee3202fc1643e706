"""Frameworks that the tests of inputs use where they are installed."""

import pytest


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch", reason="PyTorch is an extra")


@pytest.fixture(scope="session")
def da():
    return pytest.importorskip("dask.array", reason="Dask is an extra")


@pytest.fixture
def dtype(request):
    """Return a type of columns; those of pyarrow need the package."""
    if "pyarrow" in str(request.param):
        pytest.importorskip("pyarrow", reason="pyarrow is an extra")
    return request.param
