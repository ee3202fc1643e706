"""The calibrator file: one JSON object, versioned, exact to the bit, and data only.

Fields and formulas are described in docs/file-format.md. Numbers are written with enough digits to read back
the same float64. Reading runs no code: the method's name is looked up in the registry,
and every field is checked before it is used.

Changing the format: a new optional field needs no new version, since readers keep fields they do not know.
For anything else add 1 to VERSION, keep files of the old version in tests/data, and teach `load` to read
both. A method whose formula changes overrides `Formula.stored_as` instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from temperance.calibrator_file.reading import read_calibrator
from temperance.calibrator_file.writing import to_text
from temperance.calibrators.base import Calibrator
from temperance.calibrators.fitted import model_of
from temperance.files import write_atomically
from temperance.formulas.model import Model

__all__ = ["load", "save"]


def save(
    calibrator: Calibrator | Model,
    path: str | Path,
    *,
    metadata: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a fitted calibrator to a file; `Calibrator.save` does the same.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted calibrator.
    path : path
        The JSON file to write.
    metadata : mapping, optional
        Your own notes, any JSON; they replace those of the calibrator.
    overwrite : bool
        Whether an existing file may be replaced.

    Examples
    --------
    >>> import json, tempfile, pathlib, temperance
    >>> from temperance.data import simulate
    >>> from temperance.persistence import save
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cal.json"
    >>> save(temperance.TemperatureScaling().fit(task.logits, task.labels), path)
    >>> json.loads(path.read_text())["method"]
    'ts'
    """
    write_atomically(path, to_text(model_of(calibrator), metadata).encode(), overwrite=overwrite)


def load(path: str | Path) -> Calibrator:
    """Read a calibrator back; its predictions are the same to the bit.

    Files of all format versions are read. Unknown fields are kept, and saved again.

    Parameters
    ----------
    path : path
        A calibrator file, as `save` writes it.

    Examples
    --------
    >>> import tempfile, pathlib, temperance
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=200, n_classes=3)
    >>> cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cal.json"
    >>> cal.save(path, metadata={"classifier": "resnet50"})
    >>> loaded = temperance.load(path)
    >>> loaded.temperature_ == cal.temperature_, loaded.metadata_
    (True, {'classifier': 'resnet50'})
    """
    return read_calibrator(Path(path))
