"""A calibrator knows how the rows of its fit were read: as probabilities or logits, along which axis."""

import json

import numpy as np
import pandas
import pytest
from click.testing import CliRunner
from scipy.special import softmax
from sklearn.naive_bayes import GaussianNB

import temperance
from temperance import InputError, logits_from_probs, monitoring, probability_floor, serving
from temperance.cli.program import cli
from temperance.data import simulate
from temperance.report.snippets import Snippets, python_lines

TASK = simulate(n_rows=300, n_classes=3, random_state=1)
PROBS = TASK.probabilities.round(2)  # some are 0
PROBS[:, 0] = 1 - PROBS[:, 1:].sum(axis=1).round(2)
PROBS = PROBS.clip(0)
LABELS = TASK.labels
ZERO = np.array([[0.7, 0.3, 0.0]])
METHODS = ["predict_proba", "transform", "predict", "temperature"]


def by_fit():
    return temperance.EntropyTemperatureScaling().fit(PROBS, LABELS, from_probs=True)


def by_command():
    np.savez("val.npz", probs=PROBS, labels=LABELS)
    done = CliRunner().invoke(cli, ["fit", "val.npz", "-m", "hts", "-o", "made.json", "-f"])
    assert done.exit_code == 0, done.stderr
    return temperance.load("made.json")


def by_classifier():
    wrapped = temperance.CalibratedClassifier(GaussianNB(), calibrator="hts", cv="prefit")
    wrapped.estimator.fit(TASK.logits, TASK.labels)
    return wrapped.fit(TASK.logits, TASK.labels).calibrator_


@pytest.fixture(params=[by_fit, by_command, by_classifier])
def fitted(request, tmp_path, monkeypatch):
    """Return a calibrator that was fitted on probabilities, which is also in the file cal.json."""
    monkeypatch.chdir(tmp_path)
    cal = request.param()
    assert cal.fitted_on_.kind == "probabilities"
    cal.save("cal.json")
    return cal


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("read", [temperance.load, serving.load])
def test_probabilities_are_taken_as_such_and_refused_as_logits(fitted, read, method):
    use = getattr(read("cal.json"), method)
    for rows in (PROBS, PROBS[:1], ZERO, pandas.DataFrame(PROBS)):
        wanted = getattr(fitted, method)(logits_from_probs(rows, fitted.fitted_on_.floor))
        np.testing.assert_array_equal(use(rows, from_probs=True), wanted)
        with pytest.raises(InputError, match=r"fitted on probabilities.*sum to 1\. Pass from_probs=True\."):
            use(rows)
        assert use(rows, from_probs=False).shape == wanted.shape  # the user insists


def test_check_and_adapt_refuse_them_too(fitted):
    logits = logits_from_probs(PROBS, fitted.fitted_on_.floor)
    wanted, found = fitted.adapt(logits), fitted.adapt(PROBS, from_probs=True)
    np.testing.assert_array_equal(wanted.log_prior_ratio_, found.log_prior_ratio_)
    one, other = monitoring.check(fitted, logits), monitoring.check(fitted, PROBS, from_probs=True)
    assert one.to_dict() == other.to_dict()
    for use in (fitted.adapt, lambda rows: monitoring.check(fitted, rows)):
        with pytest.raises(InputError, match=r"Pass from_probs=True\."):
            use(PROBS)


def test_a_fit_in_python_is_that_of_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, other = by_fit(), by_command()
    assert one.fitted_on_ == other.fitted_on_
    assert one.fitted_on_.floor == probability_floor(PROBS)
    assert {name: value.tolist() for name, value in one.parameters().items()} == {
        name: value.tolist() for name, value in other.parameters().items()
    }


def test_logits_from_probs_and_from_probs_fit_together(tmp_path):
    cal = temperance.TemperatureScaling().fit(logits_from_probs(PROBS), LABELS)
    above = PROBS[(PROBS > 0).all(axis=1)]
    wanted = by_ts().predict_proba(above, from_probs=True)
    for one in (cal, by_ts()):
        np.testing.assert_allclose(one.predict_proba(above, from_probs=True), wanted, rtol=1e-12)
        np.testing.assert_allclose(one.predict_proba(logits_from_probs(above)), wanted, rtol=1e-12)
    # The softmax of a classifier has the same logits but for a constant.
    cal = temperance.TemperatureScaling().fit(TASK.logits, LABELS)
    found = cal.predict_proba(softmax(TASK.logits, axis=1), from_probs=True)
    np.testing.assert_allclose(found, cal.predict_proba(TASK.logits), rtol=1e-9)


def by_ts():
    return temperance.TemperatureScaling().fit(PROBS, LABELS, from_probs=True)


@pytest.mark.parametrize("zero", [ZERO, np.array([0.3, 0.0])], ids=["three classes", "one score"])
def test_what_0_is_has_to_be_said_to_a_calibrator_of_logits(zero):
    task = simulate(n_rows=300, n_classes=3 if zero.ndim == 2 else 2, random_state=1)
    cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
    with pytest.raises(InputError, match=r"fitted on logits.*found 0 in 1 row .*probability_floor"):
        cal.predict_proba(zero, from_probs=True)
    assert cal.predict_proba(logits_from_probs(zero, 0.01)).shape == (len(zero), task.logits.shape[1])


def test_compare_takes_probabilities_as_its_command_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("val.npz", probs=PROBS[:200], labels=LABELS[:200])
    np.savez("test.npz", probs=PROBS[200:], labels=LABELS[200:])
    done = CliRunner().invoke(cli, ["compare", "val.npz", "test.npz", "-m", "ts", "--json"])
    assert done.exit_code == 0, done
    frames = [pandas.DataFrame(rows, columns=["a", "b", "c"]) for rows in (PROBS[:200], PROBS[200:])]
    names = np.array(["a", "b", "c"])
    found = temperance.compare(
        frames[0], names[LABELS[:200]], frames[1], names[LABELS[200:]], ["ts"], from_probs=True
    )
    wanted = json.loads(done.stdout)["methods"]["ts"]["scores"]["nll"]["value"]
    assert found.results["ts"].scores["nll"].value == pytest.approx(wanted, rel=1e-9)
    fitted_on = found.results["ts"].calibrator.fitted_on_
    assert (fitted_on.kind, fitted_on.floor) == ("probabilities", probability_floor(PROBS[:200]))
    assert found.floor == fitted_on.floor
    assert found.class_names == ("a", "b", "c")
    with pytest.raises(InputError, match="the columns must match the fit's, in their order"):
        temperance.compare(frames[0], LABELS[:200], frames[1][["b", "a", "c"]], LABELS[200:], from_probs=True)
    lines = "\n".join(python_lines(found, Snippets(), "ts"))
    assert "fit(val_probs, val_labels, from_probs=True, classes=" in lines
    assert "predict_proba(classifier_probs, from_probs=True)" in lines


def test_a_file_without_the_kind_of_its_rows_takes_either(tmp_path):
    path = tmp_path / "cal.json"
    by_fit().save(path)
    content = json.loads(path.read_text())
    del content["fitted_on"]
    path.write_text(json.dumps(content))
    cal = temperance.load(path)
    expected = cal.predict_proba(logits_from_probs(PROBS, floor=0.0), from_probs=False)
    np.testing.assert_array_equal(cal.predict_proba(PROBS, from_probs=True), expected)


def test_one_score_of_two_classes():
    """Log-odds from 0 to 1 may be honest: from_probs=False says so."""
    scores = np.linspace(0.01, 0.99, 60)
    cal = temperance.TemperatureScaling().fit(
        scores, (np.arange(60) % 7 < scores * 7).astype(int), from_probs=True
    )
    wanted = cal.predict_proba(logits_from_probs(scores))
    np.testing.assert_array_equal(cal.predict_proba(scores, from_probs=True), wanted)
    with pytest.raises(InputError, match="Pass from_probs=True or from_probs=False"):
        cal.predict_proba(scores)
    near = np.linspace(0.51, 0.73, 40)
    wanted = cal.predict_proba(logits_from_probs(near), from_probs=False)
    np.testing.assert_array_equal(cal.predict_proba(near, from_probs=True), wanted)


def test_the_commands_take_scores_near_one_half(tmp_path, monkeypatch):
    """Their log-odds lie between 0 and 1, like probabilities; the file says what they are."""
    monkeypatch.chdir(tmp_path)
    scores = np.linspace(0.01, 0.99, 60)
    np.savez("val.npz", probs=scores, labels=(np.arange(60) % 7 < scores * 7).astype(int))
    np.savez("near.npz", probs=np.linspace(0.51, 0.73, 40), labels=np.arange(40) % 2)
    for command in (
        "fit val.npz -m bayes -o cal.json",
        "apply cal.json near.npz -o out.npz",
        "evaluate near.npz -c cal.json --draws 2",
        "adapt cal.json near.npz -o adapted.json",
        "check cal.json near.npz",
    ):
        done = CliRunner().invoke(cli, command.split())
        assert done.exit_code in (0, 3), done.stderr
        assert "like probabilities" not in done.stderr


def test_names_of_columns_are_kept():
    frame = pandas.DataFrame(PROBS, columns=["ant", "bee", "cow"])
    cal = temperance.TemperatureScaling().fit(frame, frame.columns[LABELS], from_probs=True)
    assert cal.class_names_ == ("ant", "bee", "cow")
    assert cal.predict_proba(frame, from_probs=True).shape == (300, 3)
    with pytest.raises(InputError, match="columns must match the fit's"):
        cal.predict_proba(frame[["bee", "ant", "cow"]], from_probs=True)


def test_containers(torch, da):
    cal = by_fit()
    wanted = cal.predict_proba(PROBS, from_probs=True)
    for rows in (torch.from_numpy(PROBS), torch.from_numpy(PROBS).requires_grad_()):
        np.testing.assert_allclose(cal.predict_proba(rows, from_probs=True).detach(), wanted, rtol=1e-12)
        with pytest.raises(InputError, match=r"Pass from_probs=True\."):
            cal.predict_proba(rows)
    rows = da.from_array(PROBS, chunks=(100, 3))
    np.testing.assert_array_equal(cal.predict_proba(rows, from_probs=True).compute(), wanted)
    with pytest.raises(InputError, match=r"Pass from_probs=True\."):
        cal.predict_proba(rows).compute()
    ratio = cal.adapt(rows, from_probs=True).log_prior_ratio_
    np.testing.assert_allclose(ratio, cal.adapt(PROBS, from_probs=True).log_prior_ratio_, rtol=1e-9)
    lazily = temperance.EntropyTemperatureScaling().fit(rows, LABELS, from_probs=True)
    assert lazily.fitted_on_ == cal.fitted_on_


PIXELS = TASK.logits.reshape(5, 4, 15, 3).transpose(0, 3, 1, 2)[:, :, :3, :3]  # as many columns as classes
PIXEL_LABELS = TASK.labels.reshape(5, 4, 15)[:, :3, :3]


@pytest.mark.filterwarnings("ignore:check needs rows that the fit has not seen")
def test_pixels_are_read_as_at_the_fit(tmp_path, torch):
    cal = temperance.BayesianTemperatureScaling().fit(PIXELS, PIXEL_LABELS, dim=1)
    cal.save(tmp_path / "cal.json")
    for read in (temperance.load, serving.load):
        loaded = read(tmp_path / "cal.json")
        for method in METHODS:
            np.testing.assert_array_equal(
                getattr(loaded, method)(PIXELS), getattr(cal, method)(PIXELS, dim=1)
            )
        rows = np.moveaxis(PIXELS, 1, -1).reshape(-1, 3)
        np.testing.assert_array_equal(loaded.predict_proba(rows), cal.predict_proba(rows, dim=-1))
    np.testing.assert_array_equal(cal.adapt(PIXELS).log_prior_ratio_, cal.adapt(rows).log_prior_ratio_)
    one, other = (
        monitoring.check(cal, PIXELS, PIXEL_LABELS),
        monitoring.check(cal, rows, PIXEL_LABELS.ravel(), groups=np.repeat(range(5), 9)),
    )
    assert one.to_dict() == other.to_dict()
    held = torch.from_numpy(PIXELS.copy())
    np.testing.assert_allclose(cal.to_torch()(held), cal.transform(PIXELS, dim=1), rtol=1e-9)
    np.testing.assert_allclose(cal.predict_proba(held), cal.predict_proba(PIXELS, dim=1), rtol=1e-9)


def test_another_axis_wins_if_it_is_named():
    cal = temperance.TemperatureScaling().fit(PIXELS, PIXEL_LABELS, dim=1)
    last = np.moveaxis(PIXELS, 1, -1)
    np.testing.assert_array_equal(
        np.moveaxis(cal.predict_proba(PIXELS), 1, -1), cal.predict_proba(last, dim=-1)
    )
