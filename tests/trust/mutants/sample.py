"""The sample of mutants: drawn by a hash of their names, so that it changes little when the code does."""

import hashlib
from pathlib import Path

from operators import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src"
# Mutants of each folder. `compiled` is left out: what Numba compiles runs no Python line.
SIZES = {
    "core": 150,
    "calibrators": 65,
    "formulas": 30,
    "metrics": 75,
    "data": 55,
    "calibrator_file": 30,
}
LEFT_OUT = ("compiled.py",)


def files_of(folder: str) -> list[Path]:
    """Return the modules of a folder of the package."""
    return [
        path for path in sorted((SOURCE / "temperance" / folder).rglob("*.py")) if path.name not in LEFT_OUT
    ]


def draw(seed: int, sizes: dict[str, int]) -> dict[str, list[Mutant]]:
    """Return the sample of each folder: at most one mutant for each line, those of the smallest hashes."""
    return {folder: _draw_from(folder, size, seed) for folder, size in sizes.items()}


def _draw_from(folder: str, size: int, seed: int) -> list[Mutant]:
    everything = [mutant for path in files_of(folder) for mutant in mutants_of(path, SOURCE)]
    chosen: dict[tuple[Path, int], Mutant] = {}
    for mutant in sorted(everything, key=lambda mutant: _hash(mutant.id, seed)):
        chosen.setdefault((mutant.path, mutant.lines[0]), mutant)
    return list(chosen.values())[:size]


def _hash(name: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()
