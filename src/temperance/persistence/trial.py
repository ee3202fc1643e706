"""The last check of a calibrator file: it must predict, and have a summary."""

from __future__ import annotations

import numpy as np

from temperance.calibrators.base import Calibrator
from temperance.persistence.document import Document

_STEEPEST = 5.0


def check_works(calibrator: Calibrator, document: Document) -> None:
    """Raise unless two rows, one flat and one steep, get probabilities, and there is a summary."""
    n_classes = calibrator.n_classes_
    rows = np.stack([np.zeros(n_classes), np.linspace(-_STEEPEST, _STEEPEST, n_classes)])
    try:
        with np.errstate(all="ignore"):  # any error shows in the probabilities
            probs = calibrator.predict_proba(rows)
            calibrator.summary()
    except Exception as error:  # numbers that pass each check may still fail together
        what = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
        raise document.error(f"its numbers must work together; found {what}") from error
    if not (np.isfinite(probs).all() and np.allclose(probs.sum(axis=1), 1.0)):
        raise document.error("its numbers must give probabilities; found rows that do not sum to 1")
