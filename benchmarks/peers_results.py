"""Results of the comparison with other libraries: from the workers' files to tables in CSV, and back.

speed.csv has one line for each method, task and number of threads. Times are multiples of one np.exp pass
over the same array in the same process, by CPU time and by wall time. inputs.csv has one line for each method
and hard input, versions.csv one for each library.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from peers.plan import CONTENDERS, MEASUREMENTS, Contender, name_of

from temperance.files import write_atomically

TIMES = [(work, clock) for work in ("fit", "first_fit", "predict") for clock in ("cpu", "wall")]
TIMES.append(("start", "cpu"))
Row = dict[str, str]


class Results(NamedTuple):
    """The three tables, every entry a text."""

    speed: list[Row]
    inputs: list[Row]
    versions: list[Row]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return a worker's results; none where it did not run."""
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


def shown(number: float | None, digits: int = 4) -> str:
    """Return a number with its significant digits, or nothing."""
    return "" if number is None else f"{number:.{digits}g}"


def speed_row(contender: Contender, size: tuple[int, int], threads: int, folder: Path) -> Row | None:
    """Return the line of one measurement."""
    lines = read_lines(folder / "results" / contender.key / f"speed-{name_of(size)}-{threads}.jsonl")
    if not lines:
        return None
    row = {"library": contender.library, "method": contender.method}
    row |= {"rows": str(size[0]), "classes": str(size[1]), "threads": str(threads)}
    found = lines[0]
    row["problem"] = found.get("failed", "")
    if row["problem"]:
        return row
    best = json.loads((folder / "tasks" / f"{name_of(size)}.json").read_text(encoding="utf-8"))
    row |= {"fits": str(found["fits"]), "temperature": shown(found["temperature"], 17)}
    row |= {"best_temperature": shown(best["temperature"], 17)}
    row |= {"added_memory": shown(found["added_bytes"] / found["array_bytes"])}
    exp = found["exp"]
    return row | {f"{work}_{clock}": shown(found[work][clock] / exp[clock]) for work, clock in TIMES}


def input_rows(contender: Contender, folder: Path) -> list[Row]:
    """Return the lines of a method's hard inputs."""
    lines = read_lines(folder / "results" / contender.key / "inputs.jsonl")
    kinds = {line["input"]: line["kind"] for line in lines if "kind" in line}
    return [
        {
            "library": contender.library,
            "method": contender.method,
            "kind": kinds.get(line["input"], ""),
            "input": line["input"],
            "verdict": line["verdict"],
            "temperature": shown(line.get("temperature"), 17),
            "words": " ".join(line["words"].split()),
        }
        for line in lines
        if line["verdict"] != "started"
    ]


def version_row(contender: Contender, folder: Path) -> Row:
    """Return the versions of what was measured, or why nothing was."""
    lines = read_lines(folder / "results" / contender.key / "probe.jsonl")
    found = lines[0] if lines else {"failed": "not run"}
    versions = ", ".join(f"{name} {version}" for name, version in found.get("versions", {}).items())
    return {"library": contender.library, "versions": versions, "problem": found.get("failed", "")}


def collect(folder: Path) -> Results:
    """Return the results in the folder of a run, build/peers."""
    speed = [
        speed_row(contender, size, threads, folder)
        for threads, size in MEASUREMENTS
        for contender in CONTENDERS
    ]
    inputs = [row for contender in CONTENDERS for row in input_rows(contender, folder)]
    libraries = {contender.library: contender for contender in reversed(CONTENDERS)}
    versions = [version_row(contender, folder) for contender in reversed(libraries.values())]
    return Results([row for row in speed if row], inputs, versions)


def as_csv(rows: Iterable[Row]) -> str:
    """Return the rows as CSV; the columns are those of the first row that has most."""
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, max(rows, key=len).keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_csv(results: Results, out: Path) -> None:
    """Write the three tables."""
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in results._asdict().items():
        write_atomically(out / f"{name}.csv", as_csv(rows).encode(), overwrite=True)


def read_csv(out: Path) -> Results:
    """Return the tables that `write_csv` wrote."""
    tables = []
    for name in Results._fields:
        with (out / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            tables.append(list(csv.DictReader(file)))
    return Results(*tables)
