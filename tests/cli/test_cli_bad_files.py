"""Every bad file, and every output that cannot be written, is one sentence and exit code 2."""

from pathlib import Path

import numpy as np
import pytest
from running import half_written

from temperance import CALIBRATORS

N, K = 12, 4
LOGITS = np.random.default_rng(0).standard_normal((N, K)).astype(np.float32)
LABELS = np.arange(N) % K
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)

pytestmark = pytest.mark.usefixtures("calibrator")


def with_value(row, value):
    logits = LOGITS.copy()
    logits[row, 1] = value
    return logits


def put(name, content=b"", **arrays):
    """Return a maker of a file of bytes, or of arrays."""

    def make():
        if arrays:
            held = {"labels": LABELS} | arrays
            np.savez(name, **{key: array for key, array in held.items() if array is not None})
        else:
            Path(name).write_bytes(content)

    return make


def save(name, array):
    return lambda: np.save(name, array)


def both(*makers):
    return lambda: [make() for make in makers]


GOOD = put("val.npz", logits=LOGITS)
NAN = put("val.npz", logits=with_value(3, np.nan))
BARE = put("val.npz", logits=LOGITS, labels=None)
SUMS = put("val.npz", probs=2 * PROBS)
FIT, APPLY = "fit val.npz -o out.json", "apply cal.json val.npz -o out.npz"
EVALUATE, COMPARE = "evaluate val.npz -c cal.json", "compare val.npz -m ts"
NO_LABELS = "must have labels; found logits. Pass --labels FILE"
SET = f"{FIT} -m bts --set"
# By name: how to make the file, the command, and what its sentence must have. tests/data has the files that
# the reader refuses; here is one for each command, and those whose sentence names an option.
CASES = {
    "no labels": (BARE, FIT, f"val.npz: {NO_LABELS}"),
    "no labels to evaluate": (BARE, EVALUATE, f"val.npz: {NO_LABELS}"),
    "NaN": (NAN, FIT, "val.npz, logits: ", "NaN", "row 3"),
    "NaN in apply": (NAN, APPLY, "val.npz, logits: ", "row 3"),
    "NaN in evaluate": (NAN, EVALUATE, "val.npz, logits", "row 3"),
    "NaN in compare": (NAN, COMPARE, "val.npz, logits: logits must be finite", "NaN"),
    "npy without --input": (
        save("val.npy", LOGITS),
        "fit val.npy -o out.json",
        "Pass --input logits or --input probs",
    ),
    "npy without --labels": (
        save("val.npy", LOGITS),
        "fit val.npy --input logits -o out.json",
        "Pass --labels FILE",
    ),
    "kind against key": (GOOD, f"{FIT} --input probs", "found logits. Leave --input out"),
    "part of a plain file": (GOOD, f"{FIT} --part val", "not a task file. Leave --part out"),
    "not probabilities to fit": (SUMS, FIT, "val.npz, probs: ", "sum"),
    "not probabilities": (SUMS, "evaluate val.npz", "val.npz, probs: ", "sum"),
    "not probabilities to calibrate": (SUMS, f"{APPLY} --from-probs", "val.npz, probs: ", "sum"),
    "other classes": (put("val.npz", logits=LOGITS[:, :3]), APPLY, "4 classes", "3"),
    "calibrator that is another file": (
        both(GOOD, put("bad.json", b"[1, 2]")),
        "evaluate val.npz -c bad.json",
        "must be a JSON object",
    ),
    "files in the wrong order": (GOOD, "apply val.npz cal.json -o out.npz", "val.npz", "must be JSON"),
    "more folds than rows": (GOOD, f"{COMPARE} --folds 13", "folds", "12", "13"),
    "test of other classes": (
        both(GOOD, put("test.npz", logits=LOGITS[:, :3], labels=LABELS % 3)),
        "compare val.npz test.npz -m ts --report out.html",
        "classes",
    ),
    "test without labels": (
        both(GOOD, put("test.npz", logits=LOGITS, labels=None)),
        "compare val.npz test.npz",
        "test.npz: must have labels; found logits. Pass --test-labels FILE.",
    ),
    "unknown suffix": (
        GOOD,
        "apply cal.json val.npz -o out.xlsx",
        "out.xlsx: must be one of .npz, .npy, .csv",
    ),
    "unknown method": (GOOD, f"{FIT} -m best", *CALIBRATORS, "there is no method 'best'"),
    "unknown setting": (GOOD, f"{SET} bin=3", "one of these names", "bins", "'bin=3'"),
    "setting without a value": (GOOD, f"{SET} bins", "NAME=VALUE", "'bins'"),
    "setting of another kind": (GOOD, f"{SET} bins=many", "bins", "'many'"),
    "setting that is nested": (GOOD, f"{SET} bins={9999 * '['}", "bins"),
    "note without a value": (GOOD, f"{FIT} --metadata note", "--metadata must be KEY=VALUE; found 'note'"),
    "confidence": (GOOD, "evaluate val.npz --confidence 1", "--confidence", "0<x<1"),
    "confidence that is no number": (GOOD, "evaluate val.npz --confidence nan", "confidence", "nan"),
}


def state():
    """Return everything in the folder with its content."""
    return {path: path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_bad_file_is_one_sentence_and_leaves_everything_as_it_was(case, run, folder):
    make, command, *words = case
    make()
    before = state()
    run(*command.split()).failed(2, *words)
    run(*command.split(), "--json").failed(2, *words)
    assert state() == before
    assert not half_written(folder)
