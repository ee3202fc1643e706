"""A calibrator file as a fitted calibrator: the estimator of its options around the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from temperance.calibrator_file.document import Document
from temperance.calibrator_file.model_reading import ModelReader
from temperance.calibrators import CALIBRATORS
from temperance.calibrators.base import Calibrator
from temperance.errors import InputError


def read_calibrator(path: Path) -> Calibrator:
    """Return the calibrator of a file of any version."""
    reader = ModelReader(Document(path))
    calibrator = _build(CALIBRATORS[reader.method(CALIBRATORS)].build, reader)
    name, options = repr(calibrator).removesuffix("()"), calibrator.get_params()
    calibrator.model_ = model = reader.model(calibrator.key, name, calibrator.formula_type, options)
    calibrator.n_features_in_ = model.n_classes
    with reader.document.working_together():
        calibrator.summary()
    if model.record.class_names is not None:
        calibrator.feature_names_in_ = np.array(model.record.class_names, object)
    return calibrator


def _build(kind: Callable[..., Calibrator], reader: ModelReader) -> Calibrator:
    """Return the unfitted calibrator with the options of the file."""
    options, known = reader.options(), kind().get_params()
    reader.document.require(options, known, "options")
    reader.document.refuse_others(options, known, "options")
    calibrator = kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in options.items()})
    try:
        calibrator._check_options()
    except (InputError, TypeError) as error:
        raise reader.document.error(f"options: {error}") from None
    return calibrator
