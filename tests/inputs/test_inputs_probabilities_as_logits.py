"""Probabilities given as logits: they are used, with one warning."""

import warnings

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

from temperance import InputError, TemperatureScaling, compare, logits_from_probs
from temperance.cli.program import cli
from temperance.data import simulate
from temperance.errors import InputWarning
from temperance.inputs.probabilities import LowEnd
from temperance.inputs.validation import warn_of_probabilities
from temperance.study import find_tasks

TASK = simulate(n_rows=200, n_classes=3, random_state=1)
PROBS = TASK.probabilities
SAID = "found rows of numbers from 0 to 1 that sum to 1, like probabilities"
CAL = TemperatureScaling().fit(TASK.logits, TASK.labels)


def said(use):
    """Return the warnings about input, and where they point."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use()
    found = [warning for warning in caught if issubclass(warning.category, InputWarning)]
    return [str(warning.message) for warning in found], [warning.filename for warning in found]


@pytest.mark.parametrize(
    "use",
    [
        lambda: TemperatureScaling().fit(PROBS, TASK.labels),
        lambda: CAL.predict_proba(PROBS),
        lambda: CAL.transform(PROBS),
        lambda: CAL.temperature(PROBS),
        lambda: CAL.predict(PROBS),
        lambda: CAL.adapt(PROBS),
        lambda: compare(PROBS, TASK.labels, methods=["ts"], draws=5),
        lambda: compare(PROBS[:90], TASK.labels[:90], PROBS[90:], TASK.labels[90:], ["ts"], draws=5),
        lambda: compare(TASK.logits[:90], TASK.labels[:90], PROBS[90:], TASK.labels[90:], ["ts"], draws=5),
    ],
    ids=["fit", "probs", "transform", "T", "predict", "adapt", "compare", "compare two", "compare test"],
)
def test_probabilities_as_logits_give_one_warning_at_the_line_of_the_call(use):
    messages, files = said(use)
    assert len(messages) == 1
    assert SAID in messages[0]
    assert messages[0].endswith("If they are, pass logits_from_probs(...) of them.")
    assert files == [__file__]


def test_the_remedy_gives_no_warning_and_the_right_result():
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        cal = TemperatureScaling().fit(logits_from_probs(PROBS), TASK.labels)
    assert cal.temperature_ > 0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [5, len(PROBS)])
def test_probabilities_of_any_precision_are_recognised(dtype, n_rows):
    assert len(said(lambda: CAL.predict_proba(PROBS[:n_rows].astype(dtype)))[0]) == 1


def test_binary_scores_within_the_unit_interval_are_recognised_if_there_are_enough():
    scores = np.linspace(0, 1, 40)
    messages, _ = said(lambda: TemperatureScaling().fit(scores, np.arange(40) % 2))
    assert len(messages) == 1
    assert "numbers that are all from 0 to 1" in messages[0]
    assert said(lambda: TemperatureScaling().fit(scores[::4], np.arange(10) % 2))[0] == []


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
    assert not warn_of_probabilities(logits)


def test_only_the_first_rows_are_checked():
    class Counted(np.ndarray):
        rows = 0

        def __getitem__(self, key):
            part = np.asarray(super().__getitem__(key))
            Counted.rows = max(Counted.rows, len(part))
            return part

    many = np.tile(PROBS, (50, 1)).view(Counted)
    with pytest.warns(InputWarning, match=SAID):
        assert warn_of_probabilities(many)
    assert Counted.rows == 200
    Counted.rows = 0
    assert not warn_of_probabilities((np.asarray(many) * 9).view(Counted))
    assert Counted.rows == 1


def test_tensors_with_gradients_are_checked_too(torch):
    held = torch.from_numpy(PROBS).requires_grad_()
    assert len(said(lambda: CAL.predict_proba(held))[0]) == 1
    assert len(said(lambda: CAL.predict_proba(held[None]))[0]) == 1
    assert said(lambda: CAL.predict_proba(torch.from_numpy(TASK.logits).requires_grad_()))[0] == []


def test_a_fit_to_dask_arrays_warns_after_its_passes(da):
    messages, _ = said(lambda: TemperatureScaling().fit(da.from_array(PROBS, chunks=(50, 3)), TASK.labels))
    assert len(messages) == 1


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
def test_the_command_line_warns_once_and_names_its_option(files, command):
    result = CliRunner().invoke(cli, command.split())
    lines = [line for line in result.stderr.splitlines() if "like probabilities" in line]
    assert lines == [
        "warning: logits are unbounded scores; found rows of numbers from 0 to 1 that sum to 1, "
        "like probabilities. Pass --input probs."
    ]
    assert result.exit_code == 0


def test_from_probs_gives_no_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("val.npy", PROBS)
    np.save("labels.npy", TASK.labels)
    given = "--labels labels.npy -m ts -o new.json -f"
    loud = CliRunner().invoke(cli, f"fit val.npy --input logits {given}".split())
    quiet = CliRunner().invoke(cli, f"fit val.npy --input probs {given}".split())
    assert "Pass --input probs." in loud.stderr
    assert (quiet.exit_code, "like probabilities" in quiet.stderr) == (0, False)


def test_the_tasks_of_a_study_are_checked_when_they_are_found(tmp_path):
    arrays = {"labels_val": TASK.labels, "labels_test": TASK.labels}
    np.savez(tmp_path / "a.npz", logits_val=PROBS, logits_test=TASK.logits, **arrays)
    with pytest.warns(InputWarning, match=SAID):
        find_tasks([tmp_path])


def test_invalid_rows_are_still_refused():
    broken = np.tile(PROBS, (2, 1))
    broken[-1, 0] = np.nan
    with pytest.warns(InputWarning, match=SAID), pytest.raises(InputError, match="found NaN in 1 row"):
        CAL.predict_proba(broken)


def test_two_decimals_are_recognised_in_enough_rows():
    rounded = PROBS.round(2)
    assert warned_of(rounded)
    assert not warned_of(rounded[3:4])  # a single row of numbers that do not sum to 1
    assert not warned_of(PROBS + 0.02)


def warned_of(values):
    return bool(said(lambda: warn_of_probabilities(values))[0])


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
