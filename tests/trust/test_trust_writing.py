"""Writing: names of any length, a full disk, and what a killed process has left."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest

from temperance.files import atomic_file, write_atomically
from temperance.unfinished import part_name

KILLED = """
import os, signal, sys
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
    with atomic_file(target) as file:
        file.write(b"slow")
        file.flush()
        write_atomically(target, b"quick")
        assert len(parts(tmp_path)) == 1
    assert (parts(tmp_path), target.read_bytes()) == ([], b"slow")


def test_a_new_file_that_is_not_locked_yet_stays(tmp_path):
    target = tmp_path / "out.npz"
    new, old = part_name(target), part_name(target)
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
    left = part_name(tmp_path / "out.npz")
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
