"""Storage that fails under a command: full, read-only, forbidden, vanished, or wanted by two at once.

Each fault must end the command with one sentence that names its file, and leave no half of one.
"""

import os
import shutil
import subprocess
from collections import Counter
from contextlib import contextmanager

from kill_jobs import OLD
from kill_processes import AtStep, fork, limit_file_size, nobody

ROOM = 2000  # bytes, fewer than any of the outputs has


def run_faults(jobs, folder):
    """Run every fault that is possible here under every job; return how many commands were run for each."""
    ended = Counter()
    for job in jobs:
        for name, fault in FAULTS.items():
            (place := folder / f"{name.replace(' ', '-')}-{job.out}").mkdir()
            place.chmod(0o755)
            ended[name] += fault(job, place)
    return dict(ended)


def full(job, place):
    """Run the command where no file can have more than a few bytes."""
    process = fork(_words(job, place), place.parent / "inputs", limit_file_size(ROOM))
    _check_refused(job, place, process)
    return 1


def full_disk(job, place):
    """Run the command on a file system that has no room left."""
    with _mounted(place, "size=8k") as is_mounted:
        if is_mounted:
            (place / "other").write_bytes(bytes(8192 if job.group != "study" else 4096))
            _check_refused(job, place, fork(_words(job, place), place.parent / "inputs"))
    return int(is_mounted)


def read_only(job, place):
    """Run the command on a file system that is mounted for reading alone."""
    with _mounted(place, "ro") as is_mounted:
        if is_mounted:
            _check_refused(job, place, fork(_words(job, place), place.parent / "inputs"), codes=(2,))
    return int(is_mounted)


def forbidden(job, place):
    """Run the command in a folder in which this user may not write."""
    place.chmod(0o555)
    _check_refused(job, place, fork(_words(job, place), place.parent / "inputs", nobody), codes=(2,))
    place.chmod(0o755)
    return 1


def vanished(job, place):
    """Remove the folder before each step of the command."""
    for number in range(job.steps):
        place.mkdir(exist_ok=True)
        steps = AtStep(place, number, lambda: shutil.rmtree(place))
        process = fork(_words(job, place), place.parent / "inputs", steps)
        code = process.wait()
        if code in job.codes:  # the last steps need the folder no more, or the file was there already
            continue
        _check_refused(job, place, process)
    place.mkdir(exist_ok=True)
    return job.steps


def existing(job, place):
    """Run the command where there is a file of that name, without --force."""
    if job.keeps_old:
        return 0
    (place / job.out).write_bytes(OLD)
    process = fork(_words(job, place), place.parent / "inputs")
    assert process.wait() == 2
    _check_sentence(job, place, process)
    assert [path.read_bytes() for path in place.iterdir()] == [OLD]
    return 1


def two_writers(job, place):
    """Run the command twice at once: one of them writes the file, and the other says that it exists."""
    first, second = (fork(_words(job, place), _own(place, name)) for name in ("first", "second"))
    codes = sorted((first.wait(), second.wait()))
    assert job.is_complete(place / job.out), job.words
    assert [path.name for path in place.iterdir()] == [job.out]
    if job.keeps_old:
        assert set(codes) <= set(job.codes), (job.words, codes, first.complaint(), second.complaint())
    else:
        assert codes == [0, 2], (job.words, codes, first.complaint(), second.complaint())
    return 2


FAULTS = {
    "file size limit": full,
    "full disk": full_disk,
    "read-only disk": read_only,
    "forbidden folder": forbidden,
    "vanished folder": vanished,
    "existing file": existing,
    "two writers": two_writers,
}


def _own(place, name):
    (folder := place.with_name(f"{place.name}-{name}")).mkdir()
    return folder


def _words(job, place):
    return [place / job.out if word == job.out else word for word in job.words]


@contextmanager
def _mounted(place, options):
    """Mount a file system of its own; give False where this is not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    is_mounted = (
        os.getuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", str(place)], check=True)


def _check_refused(job, place, process, codes=(1, 2)):
    code = process.wait()
    process.wait_for_group()
    assert code in codes, (job.words, code, process.complaint())
    _check_sentence(job, place, process)
    left = {path.name for path in place.iterdir()} - {"other"} if place.exists() else set()
    assert left <= ({job.out} if job.keeps_old else set()), (job.words, left)


def _check_sentence(job, place, process):
    said = [line for line in process.complaint().splitlines() if "warning" not in line]
    assert len(said) == 1, (job.words, said)
    assert job.out in said[0] or str(place) in said[0], said
    assert "should not have happened" not in said[0], said
    assert ".part" not in said[0], said
    assert "--help" not in said[0], said
