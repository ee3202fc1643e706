"""Kill commands at random moments, and see what is left: `make kill`.

A kill counts if it ended a process at work. After each one, the output is absent, old, or complete; the same
command works again, and removes what was left unfinished; a study goes on and gives the same results.
"""

import argparse
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

from kill_jobs import OLD, make_jobs, results, write_inputs
from kill_processes import AtStep, fork
from storage_faults import run_faults

from temperance.monitoring.history import open_history

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
SHARES = {"save": 3, "apply": 6, "report": 2, "export": 3, "check": 5, "study": 5}
SENTENCE = "error: interrupted; no file was left half-written\n"
_AGED = 1000.0  # seconds


def kill_once(job, folder, rng, *, real=False):
    """Kill a command at a random moment; return (signal, how, whether it hit) after the checks."""
    number = rng.choice(SIGNALS)
    old = _old_state(job, folder, rng)
    words = [*job.words, *(["--force"] if old and not job.keeps_old else [])]
    how = "real process" if real else rng.choice(["at a step", "at any time"])
    if how == "at a step":
        step, tears = rng.randrange(job.steps), number == signal.SIGKILL
        process = fork(words, folder, AtStep(folder, step, lambda: os.kill(os.getpid(), number), tears=tears))
    else:
        process = _kill_after_a_while(job, words, folder, rng, number, real)
    code = process.wait()
    process.wait_for_group()
    hit = code in (-number, 128 + number)
    if not hit:
        assert code in job.codes, (job.words, number, code, process.complaint())
    _check_complaint(process, code, number)
    check_left(job, folder, old, code)
    return number.name, how, hit


def _old_state(job, folder, rng):
    """Return what there is before: the number of checks, or a file's content."""
    if job.group == "check":
        return _records(folder / job.out)
    if job.group != "study" and rng.random() < 0.5:
        (folder / job.out).write_bytes(OLD)
        return OLD
    return None


def _kill_after_a_while(job, words, folder, rng, number, real):
    source = Path(job.words[1] if job.group != "study" else job.words[2] / "cats__small.npz")
    os.utime(source, (0, source.stat().st_mtime))
    process = fork(words, folder, real=real)
    while process.is_alive() and source.stat().st_atime == 0:  # not yet read: it is still importing
        time.sleep(0.0002)
    end = time.monotonic() + rng.uniform(0, job.seconds * (4 if real else 1))
    while process.is_alive() and time.monotonic() < end:
        time.sleep(0.0002)
    if process.is_alive():
        os.kill(process.pid, number)
    return process


def _check_complaint(process, code, number):
    """Assert that standard error has no trace: one sentence of an interruption, else nothing."""
    said = "".join(line for line in process.complaint().splitlines(True) if "warn" not in line.lower())
    if code == 128 + signal.SIGINT:
        assert said in (SENTENCE, ""), said
    elif code in (-number, 128 + number):
        assert said == "", said


def parts(folder):
    """Return the unfinished files in a folder."""
    return [path for path in folder.iterdir() if path.name.endswith(".part")]


def check_left(job, folder, old, code):
    """Assert that there is no half of a file, and nothing unfinished after a signal that can be handled."""
    out = folder / job.out
    if job.group == "check":
        assert _records(out) - old in (0, 1), "earlier checks are lost"
    elif job.group == "study":
        results(out)
    else:
        content = out.read_bytes() if out.exists() else None
        assert content == old or job.is_complete(out), (job.words, "half a file")
    if code != -signal.SIGKILL:
        assert parts(folder) == [], (job.words, code)


def run_again(job, folder):
    """Assert that the next run works, writes all, and removes what was left unfinished."""
    out, words = folder / job.out, list(job.words)
    records = _records(out) if job.group == "check" else 0
    if not job.keeps_old:
        words.append("--force")
    for path in parts(folder):  # an empty one may be that of a process that is just beginning
        os.utime(path, (time.time() - _AGED,) * 2)
    process = fork(words, folder)
    code = process.wait()
    assert code in job.codes, (words, code, process.complaint())
    assert job.is_complete(out), (words, "not complete")
    assert parts(folder) == [], (words, "left")
    if job.group == "check":
        assert _records(out) - records in (0, 1), "the same rows are not noted twice"


def _records(path):
    """Return the number of checks in a history, which must be readable."""
    if not path.exists():
        return 0
    with open_history(path) as history:
        return len(history.records)


def kill_all(jobs, folder, kills, rng, *, real=False):
    """Kill until so many processes were hit; return the figures."""
    ended, folders = Counter(), {}
    groups = [group for group, share in SHARES.items() for _ in range(share)]
    groups = [group for group in groups if group in {job.group for job in jobs}]
    while ended["hits"] < kills:
        group = groups[ended["attempts"] % len(groups)]
        job = rng.choice([job for job in jobs if job.group == group])
        place = folders.get(job.out)
        if place is None:
            (place := folder / f"{'real-' * real}{job.out}-{ended['attempts']}").mkdir()
        name, how, hit = kill_once(job, place, rng, real=real)
        ended["attempts"] += 1
        if hit:
            ended.update(["hits", f"hits: {job.group}", f"hits: {name}", f"hits: {how}"])
        ended["hits with unfinished files"] += bool(parts(place))
        if job.group == "study" and rng.random() < 0.6:
            folders[job.out] = place  # the next kill goes on with this study
            continue
        run_again(job, place)
        folders[job.out] = place if job.group == "check" and rng.random() < 0.8 else None
    for job in jobs:
        if place := folders.get(job.out):
            run_again(job, place)
    return ended


def main():
    """Kill, make storage fail, and print the figures."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--kills", type=int, default=120, help="forks to hit")
    parser.add_argument("--real", type=int, default=18, help="new processes to hit")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)  # noqa: T201
    os.environ["SOURCE_DATE_EPOCH"] = "1767225600"
    rng, began = random.Random(given.seed), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)  # also for the user who has no rights
        (inputs := folder / "inputs").mkdir()
        write_inputs(inputs)
        jobs = make_jobs(inputs, folder)
        ended = kill_all(jobs, folder, given.kills, rng)
        ended += kill_all(jobs, folder, given.real, rng, real=True)
        faults = run_faults(jobs, folder)
    figures = {"seed": given.seed, "seconds": round(time.monotonic() - began), **ended, "faults": faults}
    for what, figure in figures.items():
        print(f"{what:<32}{figure}")  # noqa: T201
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
