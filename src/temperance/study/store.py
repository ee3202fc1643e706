"""The results of a study so far, in one SQLite file, which survives a kill at any moment.

The results of a work unit are written in one transaction, all or none. The key of a result is the primary
key, so work that was done twice is stored once.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

import temperance
from temperance.data.read_options import ReadOptions
from temperance.errors import InputError, excerpt
from temperance.study.protocol import FitKey, Score
from temperance.study.tasks import TaskFile

FILE_NAME = "results.sqlite"
FORMAT = "1"

# SQLite errors that are not the file's fault; an error about invalid UTF-8 has no such name.
_OF_THE_SYSTEM = tuple(
    f"SQLITE_{name}" for name in ("BUSY", "LOCKED", "READONLY", "IOERR", "CANTOPEN", "FULL")
)
LOCK_TIMEOUT = 60.0  # seconds to wait for another process that reads or writes
# In the order of the fields of TaskFile, FitKey and Score. A null stands for nan.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS size (n INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS task (
  name TEXT PRIMARY KEY, path TEXT NOT NULL, sha256 TEXT NOT NULL,
  rows INTEGER NOT NULL, test_rows INTEGER NOT NULL, classes INTEGER NOT NULL, options TEXT NOT NULL
) WITHOUT ROWID;
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

# The Python types of an SQL type, and their description: SQLite does not enforce types.
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "TEXT": ((str,), "text"),
    "INTEGER": ((int,), "whole numbers"),
    "REAL": ((int, float), "numbers"),
}


class ResultStore:
    """The results in a folder. A folder that `study run` did not write raises an error."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / FILE_NAME
        if not self.path.is_file():
            raise InputError(f"{folder} is not the folder of a study: it has no {FILE_NAME}.")
        with _connect(self.path) as connection:
            if not _is_store(connection):
                raise InputError(f"{self.path} is not the store of a study: it has no tables of results.")
            found = dict(connection.execute("SELECT name, value FROM setting"))
        if found.get("format") != FORMAT:
            raise InputError(
                f"{self.path} must be a store of format {FORMAT}; found {excerpt(found.get('format'))}."
            )
        seed = found.get("seed")
        if not (isinstance(seed, str) and seed.isascii() and seed.isdigit() and len(seed) <= 20):
            raise InputError(
                f"{self.path} must have the random seed of its study, a whole number; found {excerpt(seed)}. "
                "Copy it again, or repeat the study."
            )
        self.seed = int(seed)

    @classmethod
    def create(cls, folder: str | Path, seed: int) -> ResultStore:
        """Open or create the store in a folder; raise if it has another seed or version."""
        if Path(folder).is_file():
            raise InputError(f"results must go to a folder; {folder} is a file. Choose another name.")
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
                        f"{task.path} has changed since the study began. "
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
                        f"{task.path} is a copy of {copies[task.sha256].name}, which the study has. A task "
                        "must not count twice: leave it out, or choose another folder for the results."
                    )
                name, path, *rest, options = vars(task).values()
                row = (name, str(path), *rest, json.dumps(options.given()))
                connection.execute("REPLACE INTO task VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            _insert(connection, "size", [(n,) for n in sizes])

    def add(self, scores: Iterable[Score]) -> None:
        """Write the results of a work unit, all or none."""
        made = list(scores)
        rows = [(*score.fit, *(getattr(score, name) for name in Score.columns())) for score in made]
        more = [(*score.fit, *item) for score in made for item in score.metrics.items()]
        with _connect(self.path) as connection, connection:
            _insert(connection, "score", rows)
            _insert(connection, "metric", more)

    def fits(self) -> set[FitKey]:
        """Return the names of all results."""
        return {FitKey(*row) for row in self._rows("score", FitKey._fields)}

    def scores(self) -> pd.DataFrame:
        """Return all results by key, with one column for every metric of the user."""
        key = list(FitKey._fields)
        columns = [*key, *Score.columns()]
        scores = pd.DataFrame(self._rows("score", columns), columns=columns)
        # SQLite stores nan as null, and has no boolean type.
        scores = scores.astype(dict.fromkeys(Score.numbers(), float) | {"converged": bool})
        columns = [*key, "name", "value"]
        own = pd.DataFrame(self._rows("metric", columns), columns=columns)
        wide = own.astype({"value": float}).pivot(index=key, columns="name", values="value")
        return scores.join(wide, on=key) if len(wide) else scores

    def tasks(self) -> list[TaskFile]:
        """Return the tasks, by name."""
        tasks, columns = [], [column.name for column in fields(TaskFile)]
        for name, path, digest, val, test, classes, text in self._rows("task", columns):
            try:
                options = ReadOptions(**json.loads(text))
            except (ValueError, TypeError, RecursionError):  # not JSON, or other names
                raise InputError(
                    f"{self.path} must store how its tasks are read; found {excerpt(text)}. Copy it again, "
                    "or repeat the study."
                ) from None
            tasks.append(TaskFile(name, Path(path), digest, val, test, classes, options))
        return tasks

    def sizes(self) -> list[int]:
        """Return the requested sizes; a small task might not have all of them."""
        return [n for (n,) in self._rows("size", ["n"])]

    def _rows(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return columns of a table, by its primary key; raise if one is missing or has a wrong type."""
        with closing(sqlite3.connect(":memory:")) as empty:
            empty.executescript(_SCHEMA)
            query = 'SELECT name, type, "notnull", pk FROM pragma_table_info(?)'
            schema = {name: rest for name, *rest in empty.execute(query, [table])}
        key = ", ".join(name for name, (_, _, of_key) in schema.items() if of_key)
        with _connect(self.path) as connection:
            rows = connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {key}").fetchall()
        for name, values in zip(columns, zip(*rows, strict=True), strict=False):
            kind, not_null, of_key = schema[name]
            types, words = _TYPES[kind]
            allowed = types if not_null or of_key else (*types, type(None))
            wrong = [value for value in values if not isinstance(value, allowed)]
            if wrong:
                raise InputError(
                    f"{self.path} must be the store of a study; {name} in its table {table} must hold "
                    f"{words}; found {excerpt(wrong[0])}. Copy it again, or repeat the study."
                )
        return rows


@contextmanager
def _connect(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(path, timeout=LOCK_TIMEOUT)) as connection:
            yield connection
    except sqlite3.IntegrityError:
        raise  # not the fault of the file
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "").startswith(_OF_THE_SYSTEM):
            raise OSError(f"{path} cannot be used: {error}") from error
        raise InputError(f"{path} must be the store of a study; it cannot be read ({error}).") from error
    except UnicodeDecodeError as error:  # in SQLite's message about a damaged file
        raise InputError(f"{path} must be the store of a study; it cannot be read ({error}).") from error


def _names(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _is_store(connection: sqlite3.Connection) -> bool:
    return {"setting", "size", "task", "score", "metric"} <= _names(connection)


def _insert(connection: sqlite3.Connection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Add rows; an existing row with the same key stays."""
    for row in rows:
        values = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO {table} VALUES ({values}) ON CONFLICT DO NOTHING", row)
