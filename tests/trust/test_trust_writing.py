"""Writing: names of any length, storage that fails, and what a killed process has left."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from onnx import checker

from temperance.cli.program import _explain
from temperance.errors import OutputExistsError
from temperance.files import atomic_file, write_atomically
from temperance.monitoring import check
from temperance.monitoring.history import open_history

KILLED = """
import os, signal, sys
from temperance.errors import OutputExistsError
from temperance.files import atomic_file
with atomic_file(sys.argv[1], overwrite=True) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def parts(folder):
    return [path.name for path in folder.iterdir() if path.name.endswith(".part")]


@pytest.mark.parametrize("name", ["x" * 255, "漢" * 85, "é" * 127])
def test_a_name_of_255_bytes_is_written(name, tmp_path):
    assert len(os.fsencode(name)) in (254, 255)
    write_atomically(tmp_path / name, b"new")
    write_atomically(tmp_path / name, b"newer", overwrite=True)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"newer"]


def test_the_next_write_removes_unfinished_files_of_killed_processes(tmp_path):
    target = tmp_path / "out.npz"
    target.write_bytes(b"old")
    ended = subprocess.run([sys.executable, "-c", KILLED, target], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(parts(tmp_path)) == 1
    assert target.read_bytes() == b"old"
    write_atomically(tmp_path / "other.npz", b"another target leaves it")
    assert len(parts(tmp_path)) == 1
    write_atomically(target, b"new", overwrite=True)
    assert (parts(tmp_path), target.read_bytes()) == ([], b"new")


def test_the_file_of_a_running_writer_is_not_removed(tmp_path):
    target = tmp_path / "out.npz"
    with atomic_file(target, overwrite=True) as file:
        file.write(b"slow")
        file.flush()
        write_atomically(target, b"quick")
        assert len(parts(tmp_path)) == 1
    assert (parts(tmp_path), target.read_bytes()) == ([], b"slow")


def test_a_new_file_that_is_not_locked_yet_stays(tmp_path):
    target = tmp_path / "out.npz"
    new, old = (tmp_path / f".out.npz.{number:08x}.part" for number in (1, 2))
    new.touch()
    old.touch()
    os.utime(old, (time.time() - 100,) * 2)
    write_atomically(target, b"x")
    assert parts(tmp_path) == [new.name]


def test_files_of_other_names_and_links_stay(tmp_path):
    names = [".out.npz.part", ".out.npz.0123456z.part", ".out.npz.01234567.part.txt", "out.npz.01234567.part"]
    for name in names:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / ".out.npz.01234567.part").symlink_to(tmp_path / names[-1])
    before = set(tmp_path.iterdir())
    write_atomically(tmp_path / "out.npz", b"x")
    assert set(tmp_path.iterdir()) == before | {tmp_path / "out.npz"}


def test_a_file_system_without_locks_still_writes(tmp_path, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    left = tmp_path / ".out.npz.01234567.part"
    left.write_bytes(b"of whom nobody can tell")
    write_atomically(tmp_path / "out.npz", b"x")
    assert (tmp_path / "out.npz").read_bytes() == b"x"
    assert left.exists()


def test_a_full_disk_names_the_file(tmp_path):
    def fail():
        with atomic_file(tmp_path / "out.npz"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"out\.npz") as caught:
        fail()
    assert caught.value.filename == str(tmp_path / "out.npz")
    assert list(tmp_path.iterdir()) == []


def write_slowly(target):
    """Write a file while another process is quicker."""
    with atomic_file(target) as file:
        file.write(b"slow")
        write_atomically(target, b"quick")


def test_of_two_writers_without_overwrite_the_second_is_refused(tmp_path):
    target = tmp_path / "out.npz"
    with pytest.raises(OutputExistsError, match=r"out\.npz already exists"):
        write_slowly(target)
    assert (parts(tmp_path), target.read_bytes()) == ([], b"quick")


def test_a_file_system_without_hard_links_still_writes_and_refuses(tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError(errno.EPERM, "no links", source, None, target)

    monkeypatch.setattr(os, "link", refuse)
    write_atomically(tmp_path / "alone.npz", b"x")
    assert (tmp_path / "alone.npz").read_bytes() == b"x"
    with pytest.raises(OutputExistsError):
        write_slowly(tmp_path / "out.npz")
    assert (parts(tmp_path), (tmp_path / "out.npz").read_bytes()) == ([], b"quick")


@pytest.mark.parametrize("is_open", [False, True])
def test_a_folder_that_vanishes_is_named(is_open, tmp_path, monkeypatch):
    (folder := tmp_path / "gone").mkdir()

    def write():
        if not is_open:
            monkeypatch.setattr("temperance.files._remove_abandoned", lambda target: shutil.rmtree(folder))
        with atomic_file(folder / "out.npz"):
            shutil.rmtree(folder)

    with pytest.raises(FileNotFoundError, match=r"the folder .*gone does not exist\. Create it first"):
        write()


def test_a_file_taken_from_the_writer_names_the_target(tmp_path):
    def write():
        with atomic_file(tmp_path / "out.npz", overwrite=True):
            for path in tmp_path.iterdir():
                path.unlink()

    with pytest.raises(FileNotFoundError) as caught:
        write()
    assert caught.value.filename == str(tmp_path / "out.npz")


def test_a_model_whose_folder_vanishes_is_not_called_invalid(fitted, tmp_path, monkeypatch):
    (folder := tmp_path / "gone").mkdir()

    def vanish(path, full_check):
        shutil.rmtree(folder)
        raise checker.ValidationError("Unable to open proto file")

    monkeypatch.setattr(checker, "check_model", vanish)
    with pytest.raises(FileNotFoundError, match=r"the folder .*gone does not exist"):
        fitted("ts").to_onnx(folder / "cal.onnx")


def test_a_read_only_disk_is_a_matter_of_usage():
    error = OSError(errno.EROFS, "Read-only file system", "study")
    assert _explain(error) == ("study: read-only file system", 2)


def test_a_full_disk_leaves_the_history_as_it_was(fitted, task, tmp_path, monkeypatch):
    path = tmp_path / "checks.jsonl"
    check(fitted("ts"), task.logits[:100], task.labels[:100], history=path)
    before, calls = path.read_bytes(), []

    def write(number, line, write=os.write):
        calls.append(line)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(number, line[:50])

    monkeypatch.setattr("temperance.monitoring.history.os.write", write)
    with pytest.raises(OSError, match="No space left") as caught:
        check(fitted("ts"), task.logits[100:], task.labels[100:], history=path)
    assert caught.value.filename == str(path)
    assert (len(calls), path.read_bytes()) == (2, before)
    with open_history(path) as history:
        assert len(history.records) == 1
