"""Judging calibration by events, P(positive) or P(class), simulated with the project's own functions.

    python benchmarks/events.py PART [PART ...]          prints the tables of some parts
    python benchmarks/events.py judging --write          fills docs/benchmarks/calibration-tests.md as well
    python benchmarks/events.py all --quick              every part with a few samples, in minutes

Beside each figure are the one expected when the method was designed and, where there is one, version 0.3.0's.
A figure is a percentage with its Monte Carlo error unless its head says otherwise. The parts of "judging":
{judging}. The parts of "acting": {acting}.
"""

from __future__ import annotations

import argparse
import time
import warnings

import events_acting as acting
import events_judging as judging
from events_tables import write

# The function of a part, and how many samples a cell has, or how many tables are made.
JUDGING = {
    "test": (judging.test_part, 1000),
    "accurate": (judging.accurate_part, 400),
    "power": (judging.power_part, 500),
    "weights": (judging.weights_part, 400),
    "coverage": (judging.coverage_part, 400),
    "sentence": (judging.sentence_part, 300),
    "sentence3": (judging.sentence3_part, 300),
    "reversed": (judging.reversed_part, 200),
    "first": (judging.first_part, 400),
    "anchors": (judging.anchors_part, 1),
    "groups": (judging.groups_part, 150),
    "groups3": (judging.groups3_part, 100),
    "groups_rows": (judging.groups_rows_part, 300),
    "examples": (judging.examples_part, 1),
}
ACTING = {
    "recommend": (acting.recommend_part, 10),
    "multi": (acting.multi_part, 2),
    "automate": (acting.automate_part, 8),
}
PARTS = JUDGING | ACTING
SETS = {"all": PARTS, "judging": JUDGING, "acting": ACTING}
QUICK = 20  # times fewer samples

assert __doc__ is not None
__doc__ = __doc__.format(judging=", ".join(JUDGING), acting=", ".join(ACTING))


def main() -> None:
    """Run the parts that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=(*SETS, *PARTS), metavar="PART")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} times fewer samples")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="put tables into the page")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in dict.fromkeys(part for one in given.parts for part in SETS.get(one, [one])):
        part, n = PARTS[name]
        began, tables = time.perf_counter(), []
        for table in part(max(1, n // QUICK) if given.quick else n, given.seed):
            print(f"\n## {table.name}: {part.__doc__}\n\n{table}", flush=True)
            tables.append(table)
        print(f"\n({name}: {time.perf_counter() - began:.0f} s)", flush=True)
        if given.write:
            write(tables)


if __name__ == "__main__":
    main()
