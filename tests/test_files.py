"""Files appear complete or not at all, and large arrays use scratch space."""

import gc
import os
import sys
import tempfile
import time
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from temperance import compare, files
from temperance.errors import OutputExistsError
from temperance.files import atomic_file, check_writable, scratch_array, write_atomically
from temperance.monitoring import check
from temperance.population import weak_population, write_population
from temperance.report.history import write_history
from temperance.study.results import Results
from temperance.study.store import ResultStore


def test_the_file_has_the_content_and_the_usual_permissions(tmp_path):
    previous = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a.json", b"one")
    finally:
        os.umask(previous)
    assert (tmp_path / "a.json").read_bytes() == b"one"
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_the_file_appears_only_at_the_end(tmp_path):
    with atomic_file(tmp_path / "a.npz") as file:
        file.write(b"half")
        file.flush()
        (part,) = tmp_path.iterdir()
        assert part.name.startswith(".a.npz.")
        assert part.name.endswith(".part")
    assert (tmp_path / "a.npz").read_bytes() == b"half"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_file_and_no_other(tmp_path, error):
    (tmp_path / "a").write_bytes(b"old")

    def write():
        with atomic_file(tmp_path / "a", overwrite=True) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_an_output_without_permission_is_refused_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"old")
    message = r"a already exists\. Choose another name, or pass overwrite=True\.$"
    with pytest.raises(OutputExistsError, match=message) as caught:
        check_writable(tmp_path / "a")
    assert caught.value.path == tmp_path / "a"
    check_writable(tmp_path / "a", overwrite=True)
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere does not exist\. Create it first"):
        check_writable(tmp_path / "nowhere" / "a")
    with pytest.raises(IsADirectoryError, match=r"is a folder\. Pass the name of a file"):
        check_writable(tmp_path, overwrite=True)
    with pytest.raises(FileExistsError), atomic_file(tmp_path / "a"):
        pytest.fail("the work must not begin")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match=r"the folder .* is not writable. Choose another"):
        check_writable(tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.fixture
def writers(fitted, task, tmp_path_factory):
    """Return what writes each kind of file that the library writes for its user, by the name of a file."""
    cal, study = fitted("ts"), tmp_path_factory.mktemp("study")
    ResultStore.create(study, 0)
    return {
        "cal.json": cal.save,
        "cal.onnx": cal.to_onnx,
        "prior.json": partial(write_population, weak_population()),
        "report.html": compare(task.logits, task.labels, methods=["ts"], folds=2, draws=2).save_report,
        "checks.html": partial(write_history, check(cal, task.logits)),
        "results.csv": Results(study).export,
    }


def test_every_writer_keeps_an_existing_file_unless_it_is_told_to_overwrite(writers, tmp_path):
    for name, write in writers.items():
        path = tmp_path / name
        path.write_bytes(b"old")
        with pytest.raises(OutputExistsError):
            write(path)
        assert path.read_bytes() == b"old", name
        write(path, overwrite=True)
        assert path.read_bytes() != b"old", name
    assert {path.name for path in tmp_path.iterdir()} == set(writers)


def test_a_scratch_array_is_in_memory_if_small_and_on_disk_if_large(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "MEMORY_LIMIT", 1000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    small, large = scratch_array((10, 2), np.float32), scratch_array((100, 5), "f4")
    assert not isinstance(small, np.memmap)
    assert isinstance(large, np.memmap)
    assert large.shape == (100, 5)
    assert large.dtype == np.float32
    large[:] = np.arange(500).reshape(100, 5)
    np.testing.assert_array_equal(large.sum(axis=0), np.arange(500).reshape(100, 5).sum(axis=0))
    assert not list(tmp_path.iterdir()), "its file has no name, so it cannot stay behind"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts the maps of the process")
def test_the_space_of_a_scratch_array_is_freed_with_it(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "MEMORY_LIMIT", 1000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def maps():
        return Path("/proc/self/maps").read_text().count(str(tmp_path))

    array = scratch_array((1000, 5), np.float64)
    assert maps() == 1
    del array
    gc.collect()
    assert maps() == 0


def test_missing_scratch_space_is_reported_at_once(monkeypatch):
    monkeypatch.setattr(files, "MEMORY_LIMIT", 1000)
    start = time.monotonic()
    with pytest.raises(OSError, match=r"has no room for .* GB of scratch space.*TMPDIR"):
        scratch_array((1 << 46, 4), np.float64)
    assert time.monotonic() - start < 5


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path):
    (tmp_path / "there.txt").write_bytes(b"old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "there.txt")
    with pytest.raises(FileExistsError, match=r"link.txt already exists"):
        write_atomically(tmp_path / "link.txt", b"new")
    write_atomically(tmp_path / "link.txt", b"new", overwrite=True)
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "there.txt").read_bytes() == b"new"


def test_a_link_to_nowhere_is_refused_by_the_folder_that_is_missing(tmp_path):
    (tmp_path / "link.txt").symlink_to(tmp_path / "gone" / "there.txt")
    with pytest.raises(FileNotFoundError, match=r"gone, to which .*link\.txt links, does not exist"):
        write_atomically(tmp_path / "link.txt", b"new")
    (tmp_path / "gone").mkdir()
    write_atomically(tmp_path / "link.txt", b"new")
    assert (tmp_path / "gone" / "there.txt").read_bytes() == b"new"


def test_a_device_or_a_pipe_is_never_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/null")):
        with pytest.raises(FileExistsError, match="a device or a pipe"):
            write_atomically(path, b"new", overwrite=True)
    assert pipe.is_fifo()


def test_reading_a_small_file_reserves_little_memory(tmp_path):
    path = tmp_path / "small.json"
    path.write_bytes(b"x" * 100_000)
    tracemalloc.start()
    content = files.read_regular_file(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert content == path.read_bytes()
    assert peak < 1 << 20
