"""A comparison by groups: whole groups in folds, groups to the fits that take them, wider intervals."""

from typing import ClassVar

import numpy as np
import pytest

from temperance import InputError, compare
from temperance.comparison import learning_curve
from temperance.comparison.method_result import Difference
from temperance.data import simulate
from temperance.errors import InputWarning

QUICK = {"methods": ["ts"], "draws": 20}


class Recording:
    """A method that keeps what it was fitted to."""

    fits: ClassVar[list] = []

    def fit(self, logits, labels, groups=None):
        type(self).fits.append((len(labels), None if groups is None else np.unique(groups)))
        return self

    def predict_proba(self, logits):
        return np.full(logits.shape, 1 / logits.shape[1])


@pytest.fixture(scope="module")
def rows():
    task = simulate(400, 3, random_state=5)
    return task.logits, task.labels


def test_groups_of_one_row_change_nothing_but_the_words(rows):
    alone, groups = compare(*rows, **QUICK), compare(*rows, groups=np.arange(400), **QUICK)
    assert groups.verdict.nll_gain == alone.verdict.nll_gain
    assert groups.verdict.ece_gain == alone.verdict.ece_gain
    assert groups.results["ts"].scores.to_dict() == alone.results["ts"].scores.to_dict()
    assert "Intervals and tests are by groups: 400 groups." in groups.verdict.notes
    assert "400 rows in 400 groups, 3 classes" in groups.heading
    assert "groups" not in str(alone)


def test_folds_are_of_whole_groups_and_fits_get_them(rows):
    Recording.fits = []
    ids = np.repeat([f"patient {i}" for i in range(20)], 20)
    compare(*rows, methods={"mine": Recording}, groups=ids, folds=4, draws=2)
    assert Recording.fits[0][0] == 400, "the fit to all rows"
    assert [(n, len(seen)) for n, seen in Recording.fits[1:]] == [(300, 15)] * 4
    held = [set(range(20)) - set(seen.tolist()) for _, seen in Recording.fits[1:]]
    assert sorted(set.union(*held)) == list(range(20)), "every group is held out once"


def test_one_group_that_is_left_is_not_passed_on(rows):
    Recording.fits = []
    compare(*rows, methods={"mine": Recording}, groups=np.arange(400) % 2, folds=2, draws=2)
    assert [seen if seen is None else len(seen) for _, seen in Recording.fits] == [2, None, None]


def test_copies_of_rows_have_the_paired_difference_of_the_rows():
    rng = np.random.default_rng(0)
    gains, share = rng.normal(0.1, 1, 50), np.full(50, 1 / 50)
    pseudo = rng.normal(size=50), share
    once = Difference.of(gains, share, pseudo)
    often = Difference.of(
        np.repeat(gains, 3),
        np.repeat(share, 3) / 3,
        (np.repeat(pseudo[0], 3), np.repeat(share, 3) / 3),
        np.repeat(np.arange(50), 3),
    )
    assert (often.value, often.error) == pytest.approx((once.value, once.error))
    assert (often.skewness, often.rows) == pytest.approx((once.skewness, once.rows))


def test_the_groups_of_test_rows_are_their_own(rows):
    logits, labels = rows
    val, test = slice(0, 200), slice(200, 400)
    parts = logits[val], labels[val], logits[test], labels[test]
    copies = *parts[:2], np.repeat(parts[2], 4, axis=0), np.repeat(parts[3], 4)
    groups = np.repeat(np.arange(200), 4)
    alone, apart = compare(*parts, **QUICK), compare(*copies, test_groups=groups, **QUICK)
    narrow = compare(*copies, test_groups=np.arange(800), **QUICK)
    found = apart.verdict.nll_gain
    assert (found.low, found.high) == pytest.approx(
        (alone.verdict.nll_gain.low, alone.verdict.nll_gain.high), rel=0.01
    )
    assert narrow.verdict.nll_gain.high - narrow.verdict.nll_gain.low < 0.6 * (found.high - found.low)
    plain = apart.to_dict()
    assert (plain["groups_fitted"], plain["groups_judged"]) == (None, 200)
    with pytest.raises(InputError, match="test_groups must come with test_logits, which are missing"):
        compare(*parts[:2], test_groups=groups, **QUICK)


def test_with_fewer_groups_than_folds_each_group_is_a_fold(rows):
    found = compare(*rows, groups=np.arange(400) % 3, **QUICK)
    assert (found.evaluated_on, found.settings["folds"]) == ("3-fold cross-validation", 3)


def test_pixels_are_compared_by_image(rows):
    logits, labels = rows
    images = np.moveaxis(logits.reshape(8, 5, 10, 3), -1, 1)
    of_images = labels.reshape(8, 5, 10).copy()
    of_images[:, 0] = 255
    found = compare(images, of_images, dim=1, ignore_index=255, **QUICK)
    assert "8 groups, the entries of the first axis." in str(found.verdict)
    kept = of_images.reshape(-1) != 255
    expected = compare(logits[kept], labels[kept], groups=np.repeat(np.arange(8), 50)[kept], **QUICK)
    assert found.verdict.nll_gain == expected.verdict.nll_gain
    assert (len(found.fitted), found.fitted.n_groups) == (320, 8)


def test_a_learning_curve_holds_out_whole_groups(rows, monkeypatch):
    module = __import__("temperance.comparison.learning_curve", fromlist=["_row_nll"])
    groups = np.repeat(np.arange(10), 40)
    comparison = compare(*rows, groups=groups, **QUICK)
    seen = []

    def record(method, part, test):
        seen.append((set(part.groups.tolist()), set(test.groups.tolist())))
        return np.zeros(len(test))

    monkeypatch.setattr(module, "_row_nll", record)
    curve = learning_curve(comparison, sizes=[100, 320], draws=3, progress=False)
    assert curve.n_judged == 80
    assert all(len(test) == 2 and not fitted & test for fitted, test in seen)


def test_ids_of_test_groups_among_those_of_the_fit_are_warned_of(rows):
    logits, labels = rows
    parts = logits[:200], labels[:200], logits[200:], labels[200:]
    names = np.array([f"patient {number // 10}" for number in range(400)])
    compare(*parts, groups=names[:200], test_groups=names[200:], **QUICK)
    with pytest.warns(InputWarning, match=r"found 10 of 20 ids in the validation rows, such as 'patient 10'"):
        compare(*parts, groups=names[:200], test_groups=names[100:300], **QUICK)
    mixed = names[200:].astype(object)
    mixed[:10] = "patient 3"
    with pytest.warns(InputWarning, match="found 1 of 20 ids"):
        compare(*parts, groups=names[:200], test_groups=mixed, **QUICK)
    # Numbers are often counted from 0 in each set.
    compare(*parts, groups=np.arange(200) // 10, test_groups=np.arange(200) // 10, **QUICK)
