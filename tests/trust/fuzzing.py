"""Many damaged files for every reader, and many generated rows for every method: `make fuzz`.

The cases are in `damaged_files` and `fuzz_cases`. The random seed is printed: it gives the same cases again.
"""

import argparse
import faulthandler
import json
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from damaged_files import DamagedFiles
from fuzz_cases import generated, outcome

MEMORY = 2 << 30  # bytes of address space beside what the process has before the first case


def limit_memory():
    """Let no case take much more memory than its file of some kilobytes needs."""
    size = int(re.search(r"VmSize:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) << 10
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))


def run_cases(make, count, rng, finds):
    """Run so many cases and return how they ended; the finds are noted with an example."""
    ended = Counter({"cases": count, "works": 0, "refused": 0, "finds": 0, "slowest": 0.0})
    for _ in range(count):
        name, case = make(rng)
        began = time.process_time()
        found = outcome(case)
        ended["slowest"] = max(ended["slowest"], round(time.process_time() - began, 2))
        is_find = found not in ("works", "refused")
        ended["finds" if is_find else found] += 1
        if is_find and f"{name.partition(' ')[0]}: {found}" not in finds:
            finds[f"{name.partition(' ')[0]}: {found}"] = name
            print(f"{found}  [{name}]", flush=True)  # noqa: T201
    return dict(ended)


def main():
    """Run many cases, and print how they ended."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    given = parser.parse_args()
    faulthandler.enable()
    rng, finds = np.random.default_rng(given.seed), {}
    print(f"seed {given.seed}", flush=True)  # noqa: T201
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = DamagedFiles(folder)
        limit_memory()
        figures = {"seed": given.seed, "damaged files": run_cases(files.case, given.files, rng, finds)}
        figures["readers"] = sorted(files.files)
        print(f"damaged files: {figures['damaged files']}", flush=True)  # noqa: T201
        rows = run_cases(lambda rng: generated(rng, folder), given.cases, rng, finds)
        print(f"generated rows: {rows}", flush=True)  # noqa: T201
    figures |= {"generated rows": rows, "finds": finds}
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    sys.exit(bool(finds))


if __name__ == "__main__":
    main()
