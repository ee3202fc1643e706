"""One check as a line of a history: sums, digests and the evidence so far, as plain JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from temperance.errors import InputError
from temperance.json_fields import parse_object, read_fields, reading_errors, refuse_others, require
from temperance.monitoring.predictions import PredictionSums
from temperance.monitoring.record_reading import RECORD, read_labelled, read_predictions
from temperance.monitoring.residuals import LabelledSums

VERSION = 1
OPENING = f'{{"temperance_history": {VERSION},'
"""The beginning of every line, by which an incomplete one is recognised."""


@dataclass(frozen=True, eq=False)
class Record:
    """One check.

    Attributes
    ----------
    calibrator : str
        Digest of the calibrator.
    date : str
        Date of the check, ISO 8601 in UTC.
    name : str
        Name of the rows, such as their file name.
    rows_digest : str
        Digest of the logits.
    tolerance, alpha : float
        Settings of the evidence.
    predictions : PredictionSums
        Counts of what needs no labels.
    labelled : LabelledSums or None
        Sums of what needs labels.
    log_e, highest_log_e : float
        Logarithm of the e-value after this check, and the highest so far.
    shift_alarm : bool
        Whether the predictions differ from those at the fit.
    action : str
        What the check advised.
    """

    calibrator: str
    date: str
    name: str
    rows_digest: str
    tolerance: float
    alpha: float
    predictions: PredictionSums
    labelled: LabelledSums | None
    log_e: float
    highest_log_e: float
    shift_alarm: bool
    action: str


def write_record(record: Record) -> bytes:
    """Return a record as one line."""
    plain = {name: value for name, value in vars(record).items() if name not in ("predictions", "labelled")}
    plain["predictions"] = _plain(record.predictions)
    plain["labelled"] = None if record.labelled is None else _plain(record.labelled)
    text = json.dumps(plain, allow_nan=False)
    return f"{OPENING} {text[1:]}\n".encode()


def read_record(line: bytes) -> Record:
    """Return the record of a line; raise InputError if it is not one."""
    with reading_errors("must be a check written by this version"):
        plain = parse_object(line)
        if plain.pop("temperance_history", None) != VERSION:
            raise InputError(f"temperance_history must be {VERSION}")
        require(("predictions", "labelled"), plain, "the line")
        predictions, labelled = read_predictions(plain.pop("predictions")), plain.pop("labelled")
        refuse_others([field.name for field in RECORD], plain, "the line")
        return Record(
            predictions=predictions,
            labelled=None if labelled is None else read_labelled(labelled, len(predictions.predicted)),
            **read_fields(plain, RECORD, "the line"),
        )


def _plain(sums: PredictionSums | LabelledSums) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(sums).items()
    }
