"""Probabilities given as logits: refused, unless they are few; these give one warning."""

import warnings

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

from temperance import InputError, TemperatureScaling, compare, logits_from_probs
from temperance.cli.output import as_option
from temperance.cli.program import cli
from temperance.data import simulate
from temperance.errors import InputWarning
from temperance.inputs.probabilities import LowEnd
from temperance.inputs.validation import like_probabilities
from temperance.study import find_tasks

TASK = simulate(n_rows=200, n_classes=3, random_state=1)
PROBS = TASK.probabilities
SAID = "found rows of numbers from 0 to 1 that sum to 1, like probabilities"
CAL = TemperatureScaling().fit(TASK.logits, TASK.labels)


USES = {
    "fit": lambda **said: TemperatureScaling().fit(PROBS, TASK.labels, **said),
    "probs": lambda **said: CAL.predict_proba(PROBS, **said),
    "transform": lambda **said: CAL.transform(PROBS, **said),
    "T": lambda **said: CAL.temperature(PROBS, **said),
    "predict": lambda **said: CAL.predict(PROBS, **said),
    "adapt": lambda **said: CAL.adapt(PROBS, **said),
    "automate": lambda **said: CAL.automate(PROBS, TASK.labels, max_error=0.5, **said),
    "compare": lambda **said: compare(PROBS, TASK.labels, methods=["ts"], draws=5, **said),
    "compare two": lambda **said: compare(
        PROBS[:90], TASK.labels[:90], PROBS[90:], TASK.labels[90:], ["ts"], draws=5, **said
    ),
}


def said(use):
    """Return the warnings about input, and where they point."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use()
    found = [warning for warning in caught if issubclass(warning.category, InputWarning)]
    return [str(warning.message) for warning in found], [warning.filename for warning in found]


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_probabilities_as_logits_are_refused_with_a_remedy_that_works(use):
    with pytest.raises(InputError, match=rf"{SAID}\. Pass from_probs=True or from_probs=False\."):
        use()
    for word in (True, False):
        assert said(lambda word=word: use(from_probs=word))[0] == []


def test_probabilities_among_the_test_rows_are_refused():
    with pytest.raises(InputError, match=SAID):
        compare(TASK.logits[:90], TASK.labels[:90], PROBS[90:], TASK.labels[90:], ["ts"], draws=5)


@pytest.mark.parametrize("use", [lambda: CAL.predict_proba(PROBS[:5]), lambda: few_fitted()])
def test_a_few_give_one_warning_at_the_line_of_the_call(use):
    """They can be logits by chance."""
    messages, files = said(use)
    assert len(messages) == 1
    assert SAID in messages[0]
    assert messages[0].endswith("If they are, pass from_probs=True.")
    assert files == [__file__]


def few_fitted():
    return TemperatureScaling().fit(PROBS[:8], TASK.labels[:8])


def test_the_remedy_gives_no_warning_and_the_right_result():
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        cal = TemperatureScaling().fit(logits_from_probs(PROBS), TASK.labels)
    assert cal.temperature_ == TemperatureScaling().fit(PROBS, TASK.labels, from_probs=True).temperature_


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_probabilities_of_any_precision_are_recognised(dtype):
    with pytest.raises(InputError, match=SAID):
        CAL.predict_proba(PROBS.astype(dtype))
    assert len(said(lambda: CAL.predict_proba(PROBS[:5].astype(dtype)))[0]) == 1


@pytest.mark.filterwarnings("ignore:The labels agree with the logits no better")
def test_binary_scores_within_the_unit_interval_are_refused_by_a_fit_if_there_are_enough():
    """Before, every row got 0.500."""
    scores, labels = np.linspace(0, 1, 40), np.arange(40) % 2
    with pytest.raises(InputError, match=r"numbers that are all from 0 to 1, .*from_probs=True or"):
        TemperatureScaling().fit(scores, labels)
    assert TemperatureScaling().fit(scores, labels, from_probs=False).n_rows_ == 40
    assert said(lambda: TemperatureScaling().fit(scores[::5], labels[::5]))[0] == []


def test_binary_scores_within_the_unit_interval_only_warn_where_a_calibrator_is_used():
    """The rows of a batch can be those that are nearly undecided."""
    two = simulate(n_rows=200, n_classes=2, random_state=1)
    cal = TemperatureScaling().fit(two.logits, two.labels)
    assert len(said(lambda: cal.predict_proba(np.linspace(0, 1, 40)))[0]) == 1


@pytest.mark.parametrize(
    "logits",
    [
        np.zeros((30, 3)),
        np.full((30, 3), 0.5),
        np.array([[0.2, 0.8, 0.0]] * 29 + [[0.2, 0.8, 0.1]]),
        -np.log(PROBS),
        logits_from_probs(np.eye(3)),
        np.array([[0.0, 0.4]]),
        np.empty((0, 3)),
    ],
    ids=["zeros", "halves", "one row is not", "logs", "masked", "one score", "none"],
)
def test_other_small_numbers_are_not_mistaken_for_probabilities(logits):
    assert not like_probabilities(logits)


def test_only_the_first_rows_are_checked():
    class Counted(np.ndarray):
        rows = 0

        def __getitem__(self, key):
            part = np.asarray(super().__getitem__(key))
            Counted.rows = max(Counted.rows, len(part))
            return part

    many = np.tile(PROBS, (50, 1)).view(Counted)
    assert like_probabilities(many)
    assert Counted.rows == 200
    Counted.rows = 0
    assert not like_probabilities((np.asarray(many) * 9).view(Counted))
    assert Counted.rows == 1


def test_tensors_with_gradients_are_checked_too(torch):
    held = torch.from_numpy(PROBS).requires_grad_()
    for rows in (held, held[None]):
        with pytest.raises(InputError, match=SAID):
            CAL.predict_proba(rows)
    assert said(lambda: CAL.predict_proba(torch.from_numpy(TASK.logits).requires_grad_()))[0] == []


def test_a_fit_to_dask_arrays_refuses_them(da):
    probs = da.from_array(PROBS, chunks=(50, 3))
    with pytest.raises(InputError, match=SAID):
        TemperatureScaling().fit(probs, TASK.labels)
    assert said(lambda: TemperatureScaling().fit(probs, TASK.labels, from_probs=False))[0] == []


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("val.npz", logits=PROBS, labels=TASK.labels)
    np.savez("test.npz", logits=PROBS[::-1][:90] * 1.0, labels=TASK.labels[::-1][:90])
    CAL.save("cal.json")


@pytest.mark.parametrize(
    "command",
    [
        "fit val.npz -m ts -o new.json",
        "evaluate val.npz --draws 5",
        "evaluate val.npz -c cal.json --draws 5",
        "apply cal.json val.npz -o probs.npz",
        "adapt cal.json val.npz -o new.json",
        "compare val.npz -m ts",
    ],
)
def test_the_command_line_refuses_them_with_a_remedy_that_works(files, command):
    result = CliRunner().invoke(cli, command.split())
    assert result.exception.worded(as_option) == (
        f"val.npz, logits: logits are unbounded scores; {SAID}. If they are, name the array probs. "
        "If they are logits, say so. Pass --input logits."
    )
    result = CliRunner().invoke(cli, [*command.split(), "--input", "logits"])
    assert (result.exit_code, "like probabilities" in result.stderr) == (0, False), result.stderr


def test_a_few_rows_of_a_file_give_a_warning(files):
    np.savez("few.npz", logits=PROBS[:8], labels=TASK.labels[:8])
    for command in ("fit few.npz -m ts -o new.json", "apply cal.json few.npz -o probs.npz"):
        result = CliRunner().invoke(cli, command.split())
        assert result.exit_code == 0
        lines = [line for line in result.stderr.splitlines() if "like probabilities" in line]
        assert lines == [f"warning: logits are unbounded scores; {SAID}. Pass --input probs."]


def test_from_probs_gives_no_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("val.npy", PROBS)
    np.save("labels.npy", TASK.labels)
    for kind in ("logits", "probs"):  # a file without names has to be told
        given = f"fit val.npy --input {kind} --labels labels.npy -m ts -o new.json -f"
        quiet = CliRunner().invoke(cli, given.split())
        assert (quiet.exit_code, "like probabilities" in quiet.stderr) == (0, False)


def test_the_tasks_of_a_study_are_checked_when_they_are_found(tmp_path):
    arrays = {"labels_val": TASK.labels, "labels_test": TASK.labels}
    np.savez(tmp_path / "a.npz", logits_val=PROBS, logits_test=TASK.logits, **arrays)
    with pytest.raises(InputError, match=SAID + r".*say so\.$"):
        find_tasks([tmp_path])


def test_invalid_rows_are_still_refused():
    broken = np.tile(PROBS, (2, 1))
    broken[-1, 0] = np.nan
    with pytest.raises(InputError, match="found NaN in 1 row"):
        CAL.predict_proba(broken, from_probs=False)


def test_two_decimals_are_recognised_in_enough_rows():
    rounded = PROBS.round(2)
    assert like_probabilities(rounded)
    assert not like_probabilities(rounded[3:4])  # a single row of numbers that do not sum to 1
    assert not like_probabilities(PROBS + 0.02)


@pytest.mark.parametrize("n_rows", [1, 5, 40])
def test_a_calibrator_of_probabilities_asks_what_any_number_of_binary_scores_are(n_rows):
    scores = np.linspace(0.05, 0.95, 60)
    cal = TemperatureScaling().fit(
        scores, (scores > 0.4).astype(int) ^ (np.arange(60) % 7 == 0), from_probs=True
    )
    few = np.linspace(0.1, 0.9, n_rows)
    with pytest.raises(InputError, match=r"fitted on probabilities.*from_probs=True or from_probs=False"):
        cal.predict_proba(few)
    assert not np.allclose(cal.predict_proba(few, from_probs=True), cal.predict_proba(few, from_probs=False))


def test_percentages_of_a_binary_classifier_are_named():
    with pytest.raises(InputError, match=r"must be from 0 to 1; found 95\. Divide percentages by 100"):
        LowEnd.of(np.array([0.5, 95.0, 20.0]))
