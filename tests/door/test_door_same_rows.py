"""Test rows that were also used to fit: the same set is refused, a large share gives a warning."""

import warnings

import numpy as np
import pytest

from temperance import InputError, compare
from temperance.comparison.rows import check_test_rows_are_new
from temperance.data import simulate
from temperance.errors import InputWarning

TASK = simulate(n_rows=400, n_classes=4, random_state=2)
VAL, TEST = TASK.logits[:200], TASK.logits[200:]


def quiet(val, test):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_test_rows_are_new(val, test)
    return True


def test_the_same_rows_in_both_sets_are_refused_and_cross_validation_works_instead():
    labels = TASK.labels[:200]
    with pytest.raises(InputError, match="found the same 200 rows in both"):
        compare(VAL, labels, VAL.copy(), labels, ["ts"], draws=5)
    assert compare(VAL, labels, methods=["ts"], draws=5).evaluated_on == "5-fold cross-validation"


def test_shared_rows_are_counted_at_any_position():
    test = np.concatenate([TEST[:150], VAL[::4][::-1]])
    with pytest.warns(InputWarning, match="found 50 of 200 test rows among the validation rows"):
        compare(VAL, TASK.labels[:200], test, TASK.labels[200:], ["ts"], draws=5)


def test_the_same_rows_in_another_order_are_all_counted():
    with pytest.warns(InputWarning, match="found 200 of 200 test rows"):
        check_test_rows_are_new(VAL, VAL[::-1])


def test_a_tenth_of_shared_rows_is_accepted_and_more_is_not():
    assert quiet(VAL, np.concatenate([TEST[20:], VAL[:20]]))
    with pytest.warns(InputWarning, match="found 21 of 200"):
        check_test_rows_are_new(VAL, np.concatenate([TEST[21:], VAL[:21]]))


def test_other_types_of_the_same_numbers_are_the_same_rows():
    narrow = VAL.astype(np.float32)
    with pytest.raises(InputError, match="found the same 200 rows"):
        check_test_rows_are_new(narrow, narrow.astype(np.float64))
    assert quiet(narrow, np.nextafter(narrow, np.float32(np.inf)))


@pytest.mark.parametrize(
    "rounded", [np.float32, np.float16, lambda rows: rows.astype(np.float32).astype(float)]
)
def test_copies_in_lower_precision_are_the_same_rows(rounded):
    def lower(rows):
        return rows.astype(rounded) if isinstance(rounded, type) else rounded(rows)

    for val, test in ((VAL, lower(VAL)), (lower(VAL), VAL)):
        with pytest.raises(InputError, match="found the same 200 rows"):
            check_test_rows_are_new(val, test)
    with pytest.warns(InputWarning, match=r"found (199|200) of 200"):
        check_test_rows_are_new(VAL, lower(VAL[::-1]))
    assert quiet(lower(VAL), TEST)


def test_arrays_of_many_blocks_and_of_masked_classes_are_compared():
    wide = np.random.default_rng(0).normal(size=(3000, 300))
    wide[:, 7] = -np.inf
    with pytest.raises(InputError, match="found the same 3000 rows"):
        check_test_rows_are_new(wide, wide.astype(np.float64, order="F"))
    with pytest.warns(InputWarning, match="found 1000 of 2000"):
        check_test_rows_are_new(wide[:2000], wide[1000:])
    narrow = wide.astype(np.float32)
    with pytest.raises(InputError, match="found the same 3000 rows"):
        check_test_rows_are_new(narrow, narrow.astype(np.float64))
    zeros = np.where(np.abs(wide) < 0.5, 0.0, wide)
    with pytest.raises(InputError, match="found the same 3000 rows"):
        check_test_rows_are_new(zeros, np.where(zeros == 0, -0.0, zeros))


@pytest.mark.parametrize(("trees", "rows"), [(3, 200), (10, 20), (30, 40), (100, 100), (100, 300)])
def test_repeated_outputs_of_a_small_forest_are_not_counted_as_shared(trees, rows):
    for seed in range(20):
        votes = np.random.default_rng(seed).multinomial(trees, [0.5, 0.3, 0.2], size=2 * rows)
        logs = np.log(votes / trees + 0.01)
        assert quiet(logs[:rows], logs[rows:])
