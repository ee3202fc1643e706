"""The sample of mutants: drawn by a hash of their names, so that it changes little when the code does."""

import hashlib
from pathlib import Path

from operators import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src"
# Mutants of each part of the package, a folder or a module.
SIZES = {
    "core": 150,
    "calibrators": 65,
    "formulas": 30,
    "metrics": 75,
    "data": 55,
    "calibrator_file": 20,
    "json_fields": 10,
}
LEFT_OUT = "compiled.py"  # what Numba compiles runs no Python line


def files_of(part: str) -> list[Path]:
    """Return the modules of a part of the package."""
    path = SOURCE / "temperance" / part
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return [file for file in files if file.name != LEFT_OUT]


def all_mutants(part: str) -> list[Mutant]:
    """Return every mutant of a part of the package."""
    return [mutant for path in files_of(part) for mutant in mutants_of(path, SOURCE)]


def draw(mutants: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """Return a sample: at most one mutant for each line, those of the smallest hashes."""
    chosen: dict[tuple[Path, int], Mutant] = {}
    for mutant in sorted(mutants, key=lambda mutant: _hash(mutant.id, seed)):
        chosen.setdefault((mutant.path, mutant.lines[0]), mutant)
    return list(chosen.values())[:size]


def _hash(name: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()
