"""How a report was made: files, versions, settings."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from markupsafe import Markup

import temperance
from temperance.comparison import Comparison, LearningCurve
from temperance.report.markup import table


@dataclass(frozen=True)
class Source:
    """A file that the comparison was made from.

    Attributes
    ----------
    name : str
        Name of the file.
    role : str
        What its rows were used for.
    rows : int
        How many rows it has.
    sha256 : str
        Its digest.

    Examples
    --------
    >>> Source("val.npz", "fitted to", 5000, "9f86d081").rows
    5000
    """

    name: str
    role: str
    rows: int
    sha256: str


def provenance(comparison: Comparison, curve: LearningCurve | None, sources: Sequence[Source]) -> Markup:
    """Return the files, and everything needed to make the same report again."""
    files = [[source.name, source.role, str(source.rows), source.sha256] for source in sources]
    listed = table(["file", "used as", "rows", "SHA-256"], files, "Files") if files else Markup("")
    made = [["temperance", temperance.__version__], ["Python", platform.python_version()]]
    made += [[name, version(name)] for name in ("numpy", "scipy", "scikit-learn")]
    made += [[name.replace("_", " "), str(value)] for name, value in comparison.settings.items()]
    made += [
        ["rows fitted", str(len(comparison.fitted))],
        ["rows judged", str(len(comparison.judged))],
        ["methods", ", ".join(comparison.results)],
    ]
    if curve is not None:
        made.append(["test rows of the learning curve", str(curve.n_judged)])
    return listed + table(["what", "value"], made, "Versions, seeds and settings")
