"""All results of a study as a CSV file, a line for each fit: for pandas, R, or a spreadsheet."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

from temperance.errors import InputError
from temperance.files import check_writable, write_atomically
from temperance.study.protocol import FitKey
from temperance.study.results import METRICS, Results
from temperance.study.store import SCORES


def export_results(results: Results, path: str | Path, *, overwrite: bool = False) -> None:
    """Write every result, scores with all their digits; a name that ends in .csv.gz is compressed.

    A fit that failed has no scores, and its message says why. ECE is a fraction; times are in seconds, to
    four digits.
    """
    name = Path(path).name
    if not name.endswith((".csv", ".csv.gz")):
        raise InputError(f"{path} must end in .csv or .csv.gz; found {''.join(Path(path).suffixes)!r}.")
    check_writable(path, overwrite=overwrite)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    names = [name for name in results.metrics if name not in METRICS]
    writer.writerow([*FitKey._fields, *SCORES, *names])
    for score in results.scores:
        values = [_rounded(column, getattr(score, column)) for column in SCORES]
        values += [score.metrics.get(name, "") for name in names]
        writer.writerow([*score.fit, *map(_shown, values)])
    content = text.getvalue().encode()
    # No time in the header, so that the same results give the same bytes.
    packed = gzip.compress(content, mtime=0) if name.endswith(".gz") else content
    write_atomically(path, packed, overwrite=overwrite)


def _rounded(column: str, value: Any) -> Any:
    """Round times: further digits are noise, which does not compress."""
    return float(f"{value:.4g}") if column.endswith("_seconds") else value


def _shown(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    return "" if value != value else value  # nan
