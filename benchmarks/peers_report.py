"""The page that compares libraries, from the folder of a run: `make bench-peers`.

    python benchmarks/peers_report.py build/peers --out docs/benchmarks

writes the CSV files and the figure, and fills the tables in speed.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from generated_blocks import fill_blocks
from peers_figure import draw
from peers_results import collect, read_csv, write_csv
from peers_tables import Speed, all_tables

from temperance.files import write_atomically


def fill_page(out: Path) -> str:
    """Return the page with tables from the CSV files beside it."""
    return fill_blocks((out / "speed.md").read_text(encoding="utf-8"), all_tables(read_csv(out)))


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    write_csv(collect(options.folder), options.out)
    draw(Speed(read_csv(options.out).speed), options.out / "fit-time.svg")
    write_atomically(options.out / "speed.md", fill_page(options.out).encode(), overwrite=True)


if __name__ == "__main__":
    main()
