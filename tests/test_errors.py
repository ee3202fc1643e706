"""Errors have facts: the invalid rows, the argument to change, the file. The message follows from these."""

import pickle

import numpy as np
import pytest

from temperance import InputError
from temperance.core.logit_rows import LogitRows
from temperance.errors import OutputExistsError, Remedy, percent, rows_from
from temperance.inputs.validation import check_labelled_rows
from temperance.loaders import MissingPackageError, import_optional


def test_a_message_is_what_must_hold_what_was_found_and_what_to_do():
    error = InputError("x must be 1; found 2", rows=[7, 9], advice="Mend them.", where="a.npz, logits")
    assert str(error) == "a.npz, logits: x must be 1; found 2 in 2 rows (first: row 7). Mend them."
    assert str(InputError("x must be 1; found 2.", remedy=Remedy("x", (1,)))) == (
        "x must be 1; found 2. Pass x=1."
    )
    assert str(InputError("x must be 1; found 2.")) == "x must be 1; found 2."


@pytest.mark.parametrize(
    "error",
    [
        InputError("x must be 1", rows=[3], advice="Mend it.", remedy=Remedy("part", ("val",)), where="a"),
        OutputExistsError("a.npz"),
        MissingPackageError("a figure needs more."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_keep_their_facts_across_processes(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_a_share_that_is_0_or_1_but_for_rounding_has_no_digits():
    assert [percent(share) for share in (1 - 1e-15, 1e-16, -1e-18, 1 + 1e-15)] == ["100%", "0%", "0%", "100%"]
    assert [percent(share) for share in (1 - 1e-9, 1e-9)] == ["99.9999999%", "0.0000001%"]


@pytest.mark.parametrize("kind", [InputError, ImportError])
def test_a_missing_package_is_bad_input_and_a_failed_import(kind):
    with pytest.raises(kind, match=r'^a dream needs the package nowhere: pip install "temperance\[sleep\]"$'):
        import_optional("nowhere.to_be_found", "sleep", "a dream")


def test_parts_of_parts_add_up_and_errors_not_about_rows_are_unchanged():
    with (
        pytest.raises(InputError, match=r"in at least 1 row \(first: row 111"),
        rows_from(100),
        rows_from(10),
    ):
        raise InputError("x", rows=[1])
    with pytest.raises(InputError, match=r"^x must be 1\.$"), rows_from(4096):
        raise InputError("x must be 1.")
    words = r"\(first: row 7 of one part; how many rows come before that part is unknown\)"
    with pytest.raises(InputError, match=words), rows_from(float("nan")):
        raise InputError("x", rows=[7])


def test_a_masked_label_is_named_by_its_row_after_a_row_that_is_worse():
    logits, labels = np.zeros((5000, 3)), np.zeros(5000, np.intp)
    logits[[170, 4200], 0] = -np.inf
    with pytest.raises(InputError, match=r"found -inf in 2 rows \(first: row 170\)\. A class that occurs"):
        check_labelled_rows(LogitRows(logits, labels))
    logits[4999] = np.inf
    with pytest.raises(InputError, match=r"found \+inf in 1 row \(first: row 4999\)"):
        check_labelled_rows(LogitRows(logits, labels))
