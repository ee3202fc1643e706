"""On a cluster of two workers: the same parameters, logits that are never sent, a worker killed midway."""

import os
import signal

import dask.array as da
import numpy as np
import pytest

from temperance import EntropyTemperatureScaling, make_calibrator

distributed = pytest.importorskip("distributed")

# Warnings about Dask's internals are not tested here.
pytestmark = pytest.mark.filterwarnings("ignore")

N_ROWS, N_CLASSES, ROWS = 16_000, 12, 2_000


class Rooted(np.ndarray):
    """Logits that cannot be sent to another process."""

    def __reduce__(self):
        raise RuntimeError("logits travelled")


def block_of(start, folder=None, when=None):
    """Return the logits and labels of some rows; kill the worker when so many blocks have been made."""
    if folder is not None:
        (folder / f"{os.getpid()}-{start}-{os.urandom(4).hex()}").touch()
        if len(list(folder.iterdir())) >= when:
            try:
                (folder.parent / "killed").touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
    rng = np.random.default_rng(start)
    logits = rng.normal(scale=2.5, size=(ROWS, N_CLASSES)).astype(np.float32)
    noise = rng.gumbel(size=logits.shape)
    return logits, np.argmax(logits / 1.7 + noise, axis=1)


def lazily(folder=None, when=None):
    """Return logits that are made on the workers whenever a pass reads them."""

    def make(block_info):
        logits, _ = block_of(block_info[None]["array-location"][0][0], folder, when)
        return logits.view(Rooted)

    chunks = ((ROWS,) * (N_ROWS // ROWS), (N_CLASSES,))
    return da.map_blocks(make, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), np.float32))


@pytest.fixture(scope="module")
def held():
    blocks = [block_of(start) for start in range(0, N_ROWS, ROWS)]
    return tuple(np.concatenate(arrays) for arrays in zip(*blocks, strict=True))


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def assert_same(one, other):
    for name, value in one.parameters().items():
        np.testing.assert_allclose(other.parameters()[name], value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "key", ["hts", *(pytest.param(key, marks=pytest.mark.slow) for key in ("bts", "ets"))]
)
def test_two_workers_give_the_parameters_of_one_array_and_send_no_logits(key, client, held):
    assert_same(make_calibrator(key).fit(*held), make_calibrator(key).fit(lazily(), held[1]))


def test_probabilities_are_computed_on_the_workers(client, held):
    cal = EntropyTemperatureScaling().fit(*held)
    mean = cal.predict_proba(lazily()).max(axis=1).mean()
    assert mean.compute() == pytest.approx(cal.predict_proba(held[0]).max(axis=1).mean(), rel=1e-6)


@pytest.mark.slow
def test_a_worker_killed_midway_changes_nothing(client, held, tmp_path):
    made = tmp_path / "made"
    made.mkdir()
    before = set(client.scheduler_info()["workers"])
    cal = EntropyTemperatureScaling().fit(lazily(made, when=20), held[1])  # in the third pass
    assert (tmp_path / "killed").exists()
    assert set(client.scheduler_info()["workers"]) != before
    assert_same(EntropyTemperatureScaling().fit(*held), cal)
