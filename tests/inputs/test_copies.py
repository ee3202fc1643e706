"""Rows of equal scores are copies only if their labels agree more often than their accuracy allows."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax

from temperance import InputError, compare, make_calibrator, metrics
from temperance.errors import InputWarning
from temperance.inputs import copies
from temperance.inputs.copies import find_copies, row_prints


def largest(probs):
    return probs.max(axis=1)


def called_copies(probs, labels):
    """Return whether rows are called copies; a warning says so, or there is none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = find_copies(probs, labels, largest)
    assert len(caught) == (found is not None)
    return found is not None


def draw(rng, n_rows, n_classes, sharpen=1.0, offset=0.0):
    """Return probabilities, and labels drawn from those with logits divided by `sharpen`."""
    logits = 2 * rng.normal(size=(n_rows, n_classes)) - offset * np.arange(n_classes)
    truth = softmax(logits, axis=1)
    labels = np.minimum((truth.cumsum(axis=1) < rng.uniform(size=(n_rows, 1))).sum(axis=1), n_classes - 1)
    return softmax(sharpen * logits, axis=1), labels


def votes(rng, n_rows, n_classes, trees, sharpen=1.0, offset=0.0):
    probs, labels = draw(rng, n_rows, n_classes, sharpen, offset)
    return rng.multinomial(trees, probs) / trees, labels


NOT_COPIES = {
    "votes of 20 trees": lambda rng: votes(rng, 2000, 2, 20),
    "votes of 100 trees": lambda rng: votes(rng, 2000, 2, 100),
    "votes that are too even": lambda rng: votes(rng, 2000, 2, 20, 0.3),
    "votes that are too extreme": lambda rng: votes(rng, 2000, 2, 20, 3.0),
    "votes for a rare class": lambda rng: votes(rng, 2000, 2, 20, 0.5, 4.0),
    "votes for five classes": lambda rng: votes(rng, 2000, 5, 10, 0.5),
    "two decimals": lambda rng: (lambda p, y: (p.round(2), y))(*draw(rng, 2000, 2, 2.0)),
    "one decimal": lambda rng: (lambda p, y: (p.round(1), y))(*draw(rng, 2000, 2, 0.5)),
    "one value": lambda rng: (np.tile([0.2, 0.8], (2000, 1)), np.sort(rng.integers(0, 2, 2000))),
    "all right": lambda rng: (np.tile([[0.9, 0.1], [0.2, 0.8]], (500, 1)), np.tile([0, 1], 500)),
    "different rows": lambda rng: draw(rng, 2000, 3),
    "few copies": lambda rng: tuple(np.repeat(one, 2, axis=0) for one in draw(rng, 5, 2)),
}


@pytest.mark.parametrize("case", NOT_COPIES)
def test_rows_that_only_have_equal_scores_stay_independent(case):
    for seed in range(5):
        assert not called_copies(*NOT_COPIES[case](np.random.default_rng(seed)))


def oversampled(rng, sharpen=1.0):
    """Return rows of which the rare class has been drawn until it is as frequent as the other."""
    probs, labels = draw(rng, 3000, 2, sharpen, 5.0)
    rare = np.flatnonzero(labels)
    rows = np.r_[np.flatnonzero(labels == 0), rng.choice(rare, np.count_nonzero(labels == 0))]
    return probs[rows], labels[rows]


def bootstrapped(rng, n_rows=500):
    probs, labels = draw(rng, n_rows, 3)
    rows = rng.integers(n_rows, size=n_rows)
    return probs[rows], labels[rows]


COPIES = {
    "each row twice": lambda rng: tuple(np.repeat(one, 2, axis=0) for one in draw(rng, 200, 2)),
    "the rows twice, one after another": lambda rng: tuple(
        np.concatenate([one, one]) for one in draw(rng, 200, 10)
    ),
    "too extreme, three times": lambda rng: tuple(
        np.repeat(one, 3, axis=0) for one in draw(rng, 200, 4, 4.0)
    ),
    "few are correct": lambda rng: tuple(np.repeat(one, 2, axis=0) for one in draw(rng, 500, 100, 0.5)),
    "oversampled": oversampled,
    "oversampled, with confidences of 1": lambda rng: oversampled(rng, 6.0),
    "bootstrap": bootstrapped,
}


@pytest.mark.parametrize("case", COPIES)
def test_copies_are_found(case):
    for seed in range(5):
        probs, labels = COPIES[case](np.random.default_rng(seed))
        with pytest.warns(InputWarning, match="They are copies"):
            found = find_copies(probs, labels, largest)
        different = np.unique(probs, axis=0)
        assert found.max() + 1 == len(different)
        first = np.unique(found, return_index=True)[1]
        np.testing.assert_array_equal(probs[first][found], probs)


def test_copies_are_found_in_any_type_and_among_many_rows(monkeypatch):
    rng = np.random.default_rng(0)
    probs, labels = (np.repeat(one, 2, axis=0) for one in draw(rng, 1000, 3))
    for dtype in (np.float16, np.float32, np.longdouble):
        with pytest.warns(InputWarning, match="among 2,000"):
            find_copies(probs.astype(dtype), labels, largest)
    with pytest.warns(InputWarning, match="found 1,000 different rows among 2,000"):
        whole = find_copies(probs, labels, largest)
    monkeypatch.setattr(copies, "EXAMINED_ROWS", (500, 500))
    with pytest.warns(InputWarning, match="found 1,000 different rows among 2,000"):
        np.testing.assert_array_equal(find_copies(probs, labels, largest), whole)


def test_prints_depend_on_the_numbers_alone():
    values = np.array([[0.0, 1.0, -2.0], [-0.0, 1.0, -2.0], [1.0, 0.0, -2.0]])
    prints = row_prints(values)
    assert prints[0] == prints[1] != prints[2]
    np.testing.assert_array_equal(row_prints(values.astype(np.float16)), prints)


# ---- where they count as one row


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    z = 1.5 * rng.normal(size=100)
    labels = (rng.uniform(size=100) < expit(z)).astype(int)
    return np.stack([np.zeros(100), 3 * z], axis=1), labels


@pytest.fixture(scope="module")
def twice(rows):
    return tuple(np.repeat(one, 2, axis=0) for one in rows)


def test_a_fit_warns_of_copies_and_counts_each(rows, twice):
    with pytest.warns(InputWarning, match="found 100 different rows among 200"):
        fitted = make_calibrator("bayes").fit(*twice)
    weighted = make_calibrator("bayes").fit(*rows, np.full(100, 2.0))
    assert not hasattr(fitted, "n_groups_")
    np.testing.assert_allclose(fitted.predict_proba(rows[0]), weighted.predict_proba(rows[0]), rtol=1e-6)


def test_the_remedies_of_the_warning_work(rows, twice):
    make_calibrator("ts").fit(*rows)
    make_calibrator("ts").fit(*twice, groups=np.arange(200))
    assert (
        metrics.evaluate(softmax(twice[0], axis=1), twice[1], groups=np.arange(200), draws=20).n_groups == 200
    )


def test_copies_count_once_in_intervals_and_rules(rows, twice):
    probs = [softmax(one[0], axis=1) for one in (rows, twice)]
    once = metrics.evaluate(probs[0], rows[1], draws=20)
    with pytest.warns(InputWarning, match="found 100 different rows"):
        often = metrics.evaluate(probs[1], twice[1], before=probs[1], draws=20)
    assert not often.of_first_axis
    assert often.before.finding == often.finding
    for name in ("accuracy", "nll", "brier", "overconfidence"):
        assert (often[name].low, often[name].high) == pytest.approx((once[name].low, once[name].high))
    assert often.finding.p_value >= once.finding.p_value
    with pytest.warns(InputWarning, match="found 100 different rows"):
        diagram = metrics.reliability(probs[1], twice[1], bins=3)
    assert diagram.effect == pytest.approx(2)


def test_a_promise_counts_copies_once(twice):
    from temperance import automate

    with pytest.warns(InputWarning, match="found 100 different rows"):
        rule = automate(softmax(twice[0], axis=1), twice[1], 0.3)
    assert rule.groups == 100


def test_compare_keeps_copies_in_one_fold(rows, twice):
    """Out of fold, a copy of a row tells its label to a method that remembers rows."""

    class Memory:
        def fit(self, logits, labels):
            self.known = {row.tobytes(): label for row, label in zip(logits, labels, strict=True)}
            return self

        def predict_proba(self, logits):
            known = [self.known.get(row.tobytes()) for row in logits]
            plain = softmax(logits, axis=1)
            sure = np.eye(2)[[one or 0 for one in known]] * 0.98 + 0.01
            return np.where(np.array([one is None for one in known])[:, None], plain, sure)

    with pytest.warns(InputWarning, match="found 100 different rows among 200"):
        found = compare(*twice, methods={"memory": Memory}, draws=20, progress=False)
    own, of_memory = (found.results[name].scores["nll"].value for name in ("none", "memory"))
    assert of_memory == pytest.approx(own)
    assert found.to_dict()["groups_judged"] == 100
    gain = found.verdict.nll_gain
    assert gain.low <= 0 <= gain.high
    alone = compare(*rows, methods=["ts"], draws=20, progress=False)
    with pytest.warns(InputWarning, match="found 100 different rows"):
        copied = compare(*twice, methods=["ts"], draws=20, progress=False)
    ends = [(one.verdict.nll_gain.low, one.verdict.nll_gain.high) for one in (alone, copied)]
    assert ends[1] == pytest.approx(ends[0], abs=0.05)


def test_pixels_and_groups_are_not_examined(twice):
    images = twice[0].reshape(10, 20, 2)
    make_calibrator("ts").fit(images, twice[1].reshape(10, 20))
    make_calibrator("ts").fit(*twice, groups=np.repeat(np.arange(100), 2))


def test_invalid_logits_are_refused_as_without_copies(twice):
    logits = twice[0].copy()
    logits[5] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        with pytest.raises(InputError, match="found NaN"):
            make_calibrator("ts").fit(logits, twice[1])


def test_columns_that_are_mixed_up_make_no_copies():
    """Scores that have ties, and labels of the other class: equal rows agree, since nearly all are wrong."""
    rng = np.random.default_rng(0)
    risk = (1 / (1 + np.exp(-rng.normal(-4.5, 1.2, 8000)))).round(4)
    labels = (rng.uniform(size=8000) < risk).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        assert find_copies(np.stack([risk, 1 - risk], axis=1), labels, lambda p: p.max(axis=1)) is None
