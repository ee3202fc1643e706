"""The figures of docs/reliability.md, from what the targets of `make reliability` have measured.

    make reliability                          runs the targets, then this
    python benchmarks/reliability.py          writes the tables again

Each target writes its figures as JSON into docs/reliability; the tables between the comments of the page are
made from these files. The sentences are written by hand, and a test finds every test that they name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generated_blocks import fill_blocks

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reliability.md"
FIGURES = PAGE.with_suffix("")


def flat(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the figures with their names; one within another has both names."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}: ")
        else:
            yield f"{prefix}{name}", value


def table(figures: Mapping[str, Any]) -> str:
    """Return figures as a Markdown table."""
    rows = [f"| {name} | {_shown(value)} |" for name, value in flat(figures)]
    return "\n".join(["| what | figure |", "|---|---|", *rows])


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) and value > 9999 else f"{value:g}"


def tables() -> dict[str, str]:
    """Return the table of each target that has been run."""
    files = sorted(FIGURES.glob("*.json"))
    return {file.stem: table(json.loads(file.read_text(encoding="utf-8"))) for file in files}


def main() -> None:
    """Write the tables into the page."""
    PAGE.write_text(fill_blocks(PAGE.read_text(encoding="utf-8"), tables()), encoding="utf-8")


if __name__ == "__main__":
    main()
