"""The figures of docs/reliability.md, from what the targets of `make reliability` have measured.

    make reliability                          runs the targets, then this
    python benchmarks/reliability.py          writes the table again

Each target writes its figures as JSON into docs/reliability; the table of the page is made from these files.
"""

from __future__ import annotations

import json
from pathlib import Path

from generated_blocks import fill_blocks

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reliability.md"
FIGURES = PAGE.with_suffix("")


def tables() -> dict[str, str]:
    """Return the table of the last runs of all targets."""
    fuzz, kill, mutants = (
        json.loads((FIGURES / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("fuzz", "kill", "mutants")
    )
    files, rows = fuzz["damaged files"], fuzz["generated rows"]
    faults = sum(kill["faults"].values())
    lines = [
        ("make fuzz", f"{files['cases']:,} damaged files", f"without a message: {files['finds']}"),
        ("make fuzz", f"{rows['cases']:,} generated arrays", f"without a message: {rows['finds']}"),
        ("make kill", f"{kill['hits']} commands killed while they worked", "no file damaged"),
        ("make kill", f"{faults} storage faults", "no file damaged"),
        (
            "make mutants",
            f"{mutants['sampled']} small changes of the source",
            f"{100 * mutants['share_killed']:.1f}% noticed by a test, "
            f"{mutants['survived_unexplained']} of the others unexplained",
        ),
    ]
    body = [f"| `{target}` | {what} | {found} |" for target, what, found in lines]
    return {"runs": "\n".join(["| target | what | result |", "|---|---|---|", *body])}


def main() -> None:
    """Write the table into the page."""
    PAGE.write_text(fill_blocks(PAGE.read_text(encoding="utf-8"), tables()), encoding="utf-8")


if __name__ == "__main__":
    main()
