"""The results of a study so far, in one SQLite file: it comes with Python, and survives a kill at any moment.

The results of a work unit are written in one transaction, all or none. The key of a result is the primary
key, so work that was done twice is stored once.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import temperance
from temperance.data.read_options import ReadOptions
from temperance.errors import excerpt
from temperance.inputs.validation import InputError
from temperance.study.protocol import FitKey
from temperance.study.scoring import Score
from temperance.study.store_rows import FIT_KEY, METRIC, SCORE, TASK, checked_row
from temperance.study.tasks import TaskFile

FILE_NAME = "results.sqlite"
FORMAT = "1"
_MOST_DIGITS = 20  # of a random seed
SCORES = tuple(column.name for column in fields(Score) if column.name not in ("fit", "metrics"))
"""The columns of a result, besides its key."""

# SQLite errors that are not the fault of the file; an error about invalid UTF-8 has no such name.
_OF_THE_SYSTEM = tuple(
    f"SQLITE_{name}" for name in ("BUSY", "LOCKED", "READONLY", "IOERR", "CANTOPEN", "FULL")
)
_PATIENCE = 60.0  # seconds to wait for another process that reads or writes
# In the order of the fields of TaskFile, FitKey and Score.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS size (n INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS task (
  name TEXT PRIMARY KEY, path TEXT NOT NULL, sha256 TEXT NOT NULL,
  rows INTEGER NOT NULL, test_rows INTEGER NOT NULL, classes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS read_options (task TEXT PRIMARY KEY, options TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS metric (
  task TEXT NOT NULL, n INTEGER NOT NULL, draw INTEGER NOT NULL, method TEXT NOT NULL,
  name TEXT NOT NULL, value REAL, PRIMARY KEY (task, n, draw, method, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS score (
  task TEXT NOT NULL, n INTEGER NOT NULL, draw INTEGER NOT NULL, method TEXT NOT NULL,
  ece50 REAL, ece15 REAL, nll REAL, brier REAL,
  converged INTEGER NOT NULL, iterations INTEGER NOT NULL, message TEXT NOT NULL,
  fit_seconds REAL NOT NULL, apply_seconds REAL NOT NULL,
  PRIMARY KEY (task, n, draw, method)
) WITHOUT ROWID;
"""


class ResultStore:
    """The results in a folder. A folder that is not of `study run` is refused."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / FILE_NAME
        if not self.path.is_file():
            raise InputError(f"{folder} must be the folder of a study; found no {FILE_NAME} in it.")
        with _connect(self.path) as connection:
            if not _is_store(connection):
                raise InputError(f"{self.path} must be the store of a study; found no results in it.")
            found = dict(connection.execute("SELECT name, value FROM setting"))
        if found.get("format") != FORMAT:
            raise InputError(
                f"{self.path} must be a store of format {FORMAT}; found {excerpt(found.get('format'))}."
            )
        self.seed = _seed(self.path, found.get("seed"))
        self.version = str(found.get("temperance"))

    @classmethod
    def create(cls, folder: str | Path, seed: int) -> ResultStore:
        """Open or create the store in a folder; raise if it has another seed or version."""
        if Path(folder).is_file():
            raise InputError(
                f"the results must go to a folder; found {folder}, which is a file. Choose another name."
            )
        Path(folder).mkdir(exist_ok=True)
        path = Path(folder) / FILE_NAME
        wanted = {"format": FORMAT, "temperance": temperance.__version__, "seed": str(seed)}
        with _connect(path) as connection, connection:
            if _names(connection) and not _is_store(connection):
                raise InputError(
                    f"{path} is another program's database. Choose another folder for the results."
                )
            connection.execute("BEGIN IMMEDIATE")  # tables and settings appear together, or not at all
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            _insert(connection, "setting", wanted.items())
            found = dict(connection.execute("SELECT name, value FROM setting"))
        for name, value in wanted.items():
            if found[name] != value:
                raise InputError(
                    f"the study in {folder} began with {name} {found[name]}; found {value}. "
                    "Their results must not be mixed: continue with the same value, or choose another folder."
                )
        return cls(folder)

    def add_tasks(self, tasks: Iterable[TaskFile], sizes: Iterable[int]) -> None:
        """Record the tasks; raise if the store has another file with the same name, or a copy."""
        studied = {fit.task for fit in self.fits()}
        known = {task.name: task for task in self.tasks() if task.name in studied}
        copies = {task.sha256: task for task in known.values()}
        with _connect(self.path) as connection, connection:
            for task in tasks:
                if known.get(task.name, task).sha256 != task.sha256:
                    raise InputError(
                        f"{task.path} must be the file with which the study began; it has changed. "
                        "Choose another folder for the results."
                    )
                if known.get(task.name, task).options != task.options:
                    before, now = (excerpt(one.options.given()) for one in (known[task.name], task))
                    raise InputError(
                        f"{task.path} must be read as when the study began, with the options {before}; "
                        f"found {now}. Choose another folder for the results."
                    )
                if copies.get(task.sha256, task).name != task.name:
                    raise InputError(
                        f"{task.path} is the same as {copies[task.sha256].name}, which the study has. A task "
                        "must not count twice: leave it out, or choose another folder for the results."
                    )
                row = (task.name, str(task.path), task.sha256, task.rows, task.test_rows, task.classes)
                connection.execute("REPLACE INTO task VALUES (?, ?, ?, ?, ?, ?)", row)
                options = json.dumps(task.options.given())
                connection.execute("REPLACE INTO read_options VALUES (?, ?)", (task.name, options))
            _insert(connection, "size", [(n,) for n in sizes])

    def add(self, scores: Iterable[Score]) -> None:
        """Write the results of a work unit, all or none."""
        made = list(scores)
        rows = [(*score.fit, *(getattr(score, name) for name in SCORES)) for score in made]
        more = [(*score.fit, *item) for score in made for item in score.metrics.items()]
        with _connect(self.path) as connection, connection:
            _insert(connection, "score", rows)
            _insert(connection, "metric", more)

    def fits(self) -> set[FitKey]:
        """Return the names of all results."""
        rows = self._select("task, n, draw, method FROM score")
        return {FitKey(*checked_row(self.path, "score", FIT_KEY, row)) for row in rows}

    def scores(self) -> list[Score]:
        """Return all results, by name."""
        with _connect(self.path) as connection:
            rows = connection.execute("SELECT * FROM score ORDER BY task, n, draw, method").fetchall()
            metrics: dict[FitKey, dict[str, float]] = {}
            if "metric" in _names(connection):  # which earlier stores have not
                for row in connection.execute("SELECT * FROM metric"):
                    *key, name, value = checked_row(self.path, "metric", METRIC, row)
                    metrics.setdefault(FitKey(*key), {})[name] = math.nan if value is None else value
        return [_score(checked_row(self.path, "score", SCORE, row), metrics) for row in rows]

    def tasks(self) -> list[TaskFile]:
        """Return the tasks, by name."""
        with _connect(self.path) as connection:
            rows = connection.execute("SELECT * FROM task ORDER BY name").fetchall()
            read: dict[str, ReadOptions] = {}
            if "read_options" in _names(connection):  # which earlier stores have not
                for row in connection.execute("SELECT * FROM read_options"):
                    name, options = checked_row(self.path, "read_options", (str, str), row)
                    read[name] = _read_options(self.path, options)
        checked = [checked_row(self.path, "task", TASK, row) for row in rows]
        return [
            TaskFile(name, Path(path), digest, val, test, classes, read.get(name, ReadOptions()))
            for name, path, digest, val, test, classes in checked
        ]

    def sizes(self) -> list[int]:
        """Return the requested sizes; a small task may not have all of them."""
        rows = self._select("n FROM size ORDER BY n")
        return [checked_row(self.path, "size", (int,), row)[0] for row in rows]

    def _select(self, query: str) -> list[tuple[Any, ...]]:
        with _connect(self.path) as connection:
            return connection.execute(f"SELECT {query}").fetchall()


@contextmanager
def _connect(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(path, timeout=_PATIENCE)) as connection:
            yield connection
    except sqlite3.IntegrityError:
        raise  # not the fault of the file
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "").startswith(_OF_THE_SYSTEM):
            raise OSError(f"{path} cannot be used: {error}") from error
        raise _unreadable(path, error) from error
    except UnicodeDecodeError as error:  # in what SQLite says of a damaged file
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} must be the store of a study; it cannot be read ({error}).")


def _seed(path: Path, text: object) -> int:
    if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise InputError(
            f"{path} must have the random seed of its study, a whole number; found {excerpt(text)}. "
            "Copy it again, or repeat the study."
        )
    return int(text)


def _read_options(path: Path, text: str) -> ReadOptions:
    try:
        return ReadOptions(**json.loads(text))
    except (ValueError, TypeError, RecursionError):  # not JSON, or other names
        raise InputError(
            f"{path} must say how its tasks are read; found {excerpt(text)}. Copy it again, or repeat the "
            "study."
        ) from None


def _names(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _is_store(connection: sqlite3.Connection) -> bool:
    return {"setting", "size", "task", "score"} <= _names(connection)


def _insert(connection: sqlite3.Connection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Add rows; an existing row with the same key stays."""
    for row in rows:
        values = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO {table} VALUES ({values}) ON CONFLICT DO NOTHING", row)


def _score(row: Sequence[Any], metrics: Mapping[FitKey, Mapping[str, float]]) -> Score:
    key = FitKey(*row[:4])
    # SQLite stores nan as null, and has no boolean type.
    found = (math.nan if value is None else value for value in row[4:])
    values: dict[str, Any] = dict(zip(SCORES, found, strict=True))
    values["converged"] = bool(values["converged"])
    return Score(key, **values, metrics=metrics.get(key, {}))
