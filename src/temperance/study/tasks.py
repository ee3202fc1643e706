"""The tasks of a study: files with validation and test rows of one classifier on one data set.

Samples of lm-evaluation-harness are one set of rows. Every second question, starting with the first, is a
validation row; the others are test rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from temperance.data.formats import FORMATS, format_of, open_members
from temperance.data.formats.harness import are_samples
from temperance.data.read_options import PARTS, ReadOptions
from temperance.data.rows_file import RowFile, open_rows, parts_of
from temperance.errors import InputError, InputWarning, Remedy, warn_user
from temperance.files import sha256
from temperance.inputs.containers import LabelledRows, open_labelled
from temperance.inputs.validation import INSPECTED_ROWS

_NEEDED = "as .npz with logits_val, labels_val, logits_test and labels_test, or as harness samples"
_SAMPLES_NAME = re.compile(r"samples_(.+)_\d{4}-\d\d-\d\dT[\d.-]+")


@dataclass(frozen=True)
class TaskFile:
    """A task file and its content, named `dataset__model`; if one part is missing, both are the whole name.

    Attributes
    ----------
    name : str
        Name of the task.
    path : Path
        The file.
    sha256 : str
        Its digest.
    rows, test_rows : int
        Validation rows and test rows.
    classes : int
        K.
    options : ReadOptions
        How its rows are read.

    Examples
    --------
    >>> task = TaskFile("cifar10__resnet", Path("cifar10__resnet.npz"), "9f86", 5000, 10000, 10)
    >>> task.dataset, task.model, task.title
    ('cifar10', 'resnet', 'cifar10, resnet')
    """

    name: str
    path: Path
    sha256: str
    rows: int
    test_rows: int
    classes: int
    options: ReadOptions = field(default_factory=ReadOptions)

    @property
    def dataset(self) -> str:
        """The data set: the part before the two underscores."""
        return self._parts()[0]

    @property
    def model(self) -> str:
        """The model: the part after the two underscores. The harness writes org/model as org__model."""
        return self._parts()[1].replace("__", "/")

    @property
    def title(self) -> str:
        """Data set and model; for other file names, the name."""
        return f"{self.dataset}, {self.model}" if self._parts()[0] != self.name else self.name

    def _parts(self) -> tuple[str, str]:
        dataset, _, model = self.name.partition("__")
        return (dataset, model) if dataset and model else (self.name, self.name)


@dataclass(frozen=True, eq=False)
class LoadedTask:
    """The rows of a task file: to fit, and to test."""

    val: LabelledRows
    test: LabelledRows


def find_tasks(
    paths: Iterable[str | Path], *, length_normalised: bool = False, renormalise: bool = False
) -> list[TaskFile]:
    """Return the tasks in files and folders, by name, each file once.

    Raise if there is none, or if two have the same name or are copies of the same file. In a folder, other
    files are skipped. Unusable samples, for example with several correct answers, are skipped with a warning.

    Parameters
    ----------
    paths : iterable of path
        Files and folders.
    length_normalised : bool
        Whether to divide log-likelihoods of lm-evaluation-harness by the length of the answers, as `acc_norm`
        does. Other tasks do not change.
    renormalise : bool
        Whether to divide each row of probabilities by its sum: for rounded probabilities, percentages or
        votes. Tasks with logits do not change.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> rows = {"logits_val": 3 * np.eye(3), "labels_val": [0, 1, 2]}
    >>> rows |= {"logits_test": 3 * np.eye(3), "labels_test": [0, 1, 1]}
    >>> np.savez(f"{folder.name}/cifar10__resnet.npz", **rows)
    >>> [(task.name, task.rows, task.classes) for task in find_tasks([folder.name])]
    [('cifar10__resnet', 3, 3)]
    >>> folder.cleanup()
    """
    given = list(map(Path, paths))
    files = dict.fromkeys(file.resolve() for path in given for file in _files(path))
    named = {path.resolve() for path in given}
    options = ReadOptions(length_normalised=length_normalised, renormalise=renormalise)
    tasks, skipped = [], []
    for file in files:
        try:
            tasks.append(_describe(file, options))
        except InputError as error:
            if file in named or not are_samples(open_members(file)):
                raise
            skipped.append(error)
            warn_user(InputWarning(f"{error.where}: {error.fact}", "The file is skipped."))
    if skipped and not tasks:
        raise skipped[0]
    tasks.sort(key=lambda task: task.name)
    if length_normalised and not any(task.options.length_normalised for task in tasks):
        raise InputError(
            "the tasks must be samples of lm-evaluation-harness, .jsonl, to be normalised by length; "
            f"found {', '.join(str(task.path) for task in tasks[:1]) or 'none'}.",
            remedy=Remedy("length_normalised"),
        )
    for first, second in pairwise(tasks):
        if first.name == second.name:
            raise InputError(
                f"two tasks must not have the same name; found {first.path} and {second.path}. Rename one."
            )
    for first, second in pairwise(sorted(tasks, key=lambda task: task.sha256)):
        if first.sha256 == second.sha256:
            raise InputError(
                f"a task must not count twice; {first.path} and {second.path} are the same. Leave one out."
            )
    return tasks


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = [file for file in sorted(path.iterdir()) if format_of(file) in FORMATS and file.is_file()]
    members = {file: open_members(file) for file in found}
    tasks = [file for file in found if parts_of(members[file]) or are_samples(members[file])]
    if not tasks:
        raise InputError(
            f"{path} must hold task files, {_NEEDED}; found {len(found)} data files, none of them a task."
        )
    return tasks


def _describe(path: Path, given: ReadOptions) -> TaskFile:
    members = open_members(path)
    if are_samples(members):
        return _describe_samples(path, replace(given, renormalise=False))
    missing = [name for name in ("labels_val", "labels_test") if name not in members]
    if set(parts_of(members)) != {"val", "test"} or missing:
        lacks = f"without {' and '.join(missing)}" if missing else "without logits or probs for both"
        raise InputError(f"{path} must be a task file {_NEEDED}; found {', '.join(sorted(members))} {lacks}.")
    val, test = (open_rows(path, part=part) for part in PARTS)
    options = ReadOptions(renormalise=given.renormalise and val.kind == test.kind == "probs")
    if options.renormalise:
        val, test = val.renormalise(), test.renormalise()
    classes = {file.shape[1] if len(file.shape) == 2 else 2 for file in (val, test)}
    if len(classes) != 1:
        raise InputError(
            f"{path}: val and test rows must have the same classes; found {val.shape} and {test.shape}."
        )
    for file in (val, test):
        try:
            next(file.logit_blocks(INSPECTED_ROWS), None)  # which raises for probabilities
        except InputError as error:
            if file.kind == "logits":
                error.remedy = None  # a study has no argument about one file
            raise
    n_rows = val.shape[0], test.shape[0]
    return TaskFile(_stem(path), path, sha256(path), *n_rows, classes.pop(), options)


def _describe_samples(path: Path, options: ReadOptions) -> TaskFile:
    """Describe samples, named after their task and their folder, which the harness names after the model."""
    try:
        n_rows, n_classes = open_rows(path).shape
    except InputError as error:  # a study has no other file with the labels
        advice = "Leave this file out, or drop the lines without one correct answer."
        raise InputError(error.fact, advice=advice, where=error.where) from None
    if n_rows < 2:
        raise InputError("must have questions to fit and to test; found one question.", where=str(path))
    usual = _SAMPLES_NAME.fullmatch(_stem(path))
    name = f"{usual[1]}__{path.parent.name}" if usual else _stem(path)
    halves = n_rows - n_rows // 2, n_rows // 2
    return TaskFile(name, path, sha256(path), *halves, n_classes, options)


def _stem(path: Path) -> str:
    return path.name[: -len(format_of(path))]


@lru_cache(maxsize=64)
def load_task(task: TaskFile) -> LoadedTask:
    """Open the rows of a task, after checking that the file is the one that the study planned with.

    On another machine, the same file must exist under the same path.
    """
    if sha256(task.path) != task.sha256:
        raise InputError(f"{task.path} has changed during the study. Start another study.")
    if are_samples(open_members(task.path)):
        samples = RowFile.open(task.path, task.options)
        return LoadedTask(*(_checked(samples, slice(start, None, 2)) for start in range(2)))
    val, test = (RowFile.open(task.path, replace(task.options, part=part)) for part in PARTS)
    if val.kind == "probs":  # 0 must mean the same in both
        floor = val.low_end().floor
        val, test = val.with_floor(floor), test.with_floor(floor)
    return LoadedTask(_checked(val), _checked(test))


def _checked(file: RowFile, taken: slice = slice(None)) -> LabelledRows:
    assert file.labels is not None  # labels are required here
    with file.stored.naming_file():
        logits = file.logits()
        logits = logits[taken] if taken.step else logits
        rows = open_labelled(logits, file.labels[taken], positions=file.positions)
        rows.has_masks()
    return rows
