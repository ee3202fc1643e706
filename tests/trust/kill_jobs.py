"""What is killed: every command that writes, and what must hold of its files afterwards."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from kill_processes import count_steps, warm_up

from temperance import make_calibrator
from temperance.data import simulate
from temperance.errors import InputError
from temperance.monitoring.history import open_history
from temperance.study import Results
from temperance.study.store import FILE_NAME

OLD = b"the file that was there before"


@dataclass
class Job:
    """A command, the file it writes, and what to read from the file: the same as from one made in peace."""

    group: str
    words: list
    out: str
    read: Callable[[Path], object] = Path.read_bytes
    codes: tuple[int, ...] = (0,)
    keeps_old: bool = False  # adds to its file, and never replaces it
    steps: int = 0
    seconds: float = 0.0
    expected: object = None

    def measure(self, folder):
        """Run the command in peace, here and in a fork."""
        warm, peace = folder / f"{self.out}-warm", folder / f"{self.out}-peace"
        warm.mkdir()
        peace.mkdir()
        assert warm_up(self.words, warm) in self.codes, self.words
        code, self.steps, self.seconds = count_steps(self.words, peace)
        assert code in self.codes, (self.words, code)
        self.expected = self.read(peace / self.out)
        assert self.expected, self.words

    def is_complete(self, path):
        """Say whether a file is all that the command writes."""
        return self.read(path) == self.expected


def write_inputs(folder, n_rows=20_000):
    """Write rows, a calibrator and the tasks of a study."""
    for seed, (name, rows) in enumerate({"val": 400, "test": n_rows, "week": 2000}.items()):
        task = simulate(n_rows=rows, n_classes=5, random_state=seed)
        np.savez(folder / f"{name}.npz", logits=task.logits.astype(np.float32), labels=task.labels)
    with np.load(folder / "val.npz") as val:
        make_calibrator("hts").fit(val["logits"], val["labels"]).save(folder / "cal.json")
    (folder / "tasks").mkdir()
    for seed, name in enumerate(("cats__small", "dogs__small")):
        val, test = (simulate(n_rows=150, n_classes=3, random_state=2 * seed + part) for part in (0, 1))
        np.savez(
            folder / "tasks" / f"{name}.npz",
            logits_val=val.logits, labels_val=val.labels, logits_test=test.logits, labels_test=test.labels,
        )  # fmt: skip


GROUPS = ("save", "apply", "report", "export", "check", "study")


def make_jobs(inputs, folder, groups=GROUPS):
    """Return the jobs, each run once in peace."""
    jobs = [job for job in _all_jobs(inputs) if job.group in groups]
    for job in jobs:
        job.measure(folder)
    return jobs


def _all_jobs(inputs):
    val, test, week, cal = (inputs / name for name in ("val.npz", "test.npz", "week.npz", "cal.json"))
    compare = ["compare", val, week, "-m", "ts,hts", "--report", "page.html"]
    study = ["study", "run", inputs / "tasks", "-o", "outcomes", "--methods", "ts,hts", "--quiet"]
    study += ["--sizes", "30,60", "--draws", "2", "--jobs", "1"]
    history = ["check", cal, week, "--history", "checks.jsonl"]
    return [
        Job("save", ["fit", val, "-m", "hts", "-o", "saved.json"], "saved.json"),
        *(
            Job("apply", ["apply", cal, test, "-o", f"probs{suffix}"], f"probs{suffix}")
            for suffix in (".npz", ".npy", ".csv", ".parquet")
        ),
        Job("report", compare, "page.html", _is_whole_page),
        Job("export", ["export", cal, "cal.onnx"], "cal.onnx"),
        Job("export", ["export", cal, "cal.pt2"], "cal.pt2", _is_whole_archive),
        Job("check", history, "checks.jsonl", _is_history, (0, 3), keeps_old=True),
        Job("study", study, "outcomes", results, keeps_old=True),
    ]


def _is_whole_page(path):
    return path.read_text(encoding="utf-8").rstrip().endswith("</html>")


def _is_whole_archive(path):
    with ZipFile(path) as archive:
        return archive.testzip() is None


def _is_history(path):
    with open_history(path) as history:
        return len(history.records) >= 1


def results(folder):
    """Return all results of a study but their times, as text, so that nan equals nan."""
    if not (folder / FILE_NAME).exists() or (folder / FILE_NAME).stat().st_size == 0:
        return []
    try:
        scores = Results(folder).scores
    except InputError as error:
        if "no tables of results" in str(error):  # killed before the first transaction
            return []
        raise
    return scores.drop(columns=["fit_seconds", "apply_seconds"]).to_csv(index=False).splitlines()[1:]
