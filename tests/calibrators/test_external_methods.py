"""Methods and metrics of other packages, in everything that accepts methods."""

import sys
from functools import partial

import numpy as np
import pytest
import sklearn
from compared import COMPARED
from sklearn.linear_model import LogisticRegression

import temperance
from temperance import CALIBRATORS, CalibratedClassifier, InputError, TemperatureScaling, compare
from temperance.adapters import SklearnCalibration
from temperance.calibrators.external_methods import find_method, find_methods
from temperance.data import simulate
from temperance.study import Results, find_tasks, run_study
from temperance.study.tables import make_table

STRANGER = '''
"""A package that knows nothing of temperance."""
import numpy as np


class Shrunk:
    """The softmax, mixed with the frequencies of the labels."""

    def __init__(self, share=0.2):
        self.share = share

    def fit(self, logits, labels):
        self.rows = len(labels)
        self.frequencies = np.bincount(labels, minlength=logits.shape[1]) / len(labels)

    def predict_proba(self, logits):
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        return (1 - self.share) * e / e.sum(axis=1, keepdims=True) + self.share * self.frequencies


class Weighted(Shrunk):
    def fit(self, logits, labels, sample_weight=None):
        self.weights = sample_weight
        super().fit(logits, labels)


class Broken(Shrunk):
    def predict_proba(self, logits):
        raise RuntimeError("not today")


def error_rate(probs, labels):
    return np.mean(probs.argmax(axis=1) != labels)
'''
ENTRY = "[temperance.calibrators]\nannounced = stranger:Shrunk\n"


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Return the module of a package that registers a calibrator."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "stranger.py").write_text(STRANGER)
    about = folder / "stranger-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY)
    sys.path.insert(0, str(folder))
    yield __import__("stranger")
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def rows():
    return simulate(300, 4, random_state=1), simulate(500, 4, random_state=2)


@pytest.fixture(scope="module")
def compared(rows):
    """Return `compare` for these rows, of which it takes the methods, the metrics and options."""
    val, test = rows
    return partial(compare, val.logits, val.labels, test.logits, test.labels)


def test_any_object_can_be_compared_and_is_copied_for_every_fit(stranger, rows, compared):
    test, mine = rows[1], stranger.Shrunk()
    result = compared(["ts", mine], [stranger.error_rate])
    assert list(result.results) == ["none", "ts", "Shrunk"]
    assert not hasattr(mine, "frequencies")
    fitted = result.results["Shrunk"].calibrator
    assert fitted.rows == 300
    probs = fitted.predict_proba(test.logits)
    assert result.results["Shrunk"].scores["nll"].value == pytest.approx(
        temperance.metrics.nll(probs, test.labels)
    )
    score = result.results["Shrunk"].scores["error_rate"]
    assert score.value == stranger.error_rate(probs, test.labels)
    assert np.isnan([score.low, score.high]).all()
    assert "error_rate" in str(result)
    assert result.to_dict()["methods"]["Shrunk"]["scores"]["error_rate"]["value"] == score.value


def test_a_method_that_fails_is_a_row_that_says_so(stranger, compared):
    class OneColumn(stranger.Shrunk):
        def predict_proba(self, logits):
            return super().predict_proba(logits)[:, :1]

    result = compared({"b": stranger.Broken(), "column": OneColumn(), "ts": "ts"})
    assert result.failures["b"] == "RuntimeError: not today"
    assert "must return an array of the shape of the logits" in result.failures["column"]
    assert "b failed: RuntimeError: not today" in str(result)
    assert result.to_dict()["failures"] == result.failures
    assert result.recommended == "ts"


def test_a_metric_may_keep_what_it_is_given_has_an_interval_on_request_and_is_named_if_it_fails(compared):
    kept = []

    def keeping(probs, labels):
        kept.append(probs)
        return float(probs[:50, 0].mean())

    score = (
        compared(["ts"], {"keeping": keeping}, metric_intervals=True, draws=50)
        .results["ts"]
        .scores["keeping"]
    )
    assert score.low < score.value < score.high
    assert any(not np.array_equal(kept[0], other) for other in kept[1:])
    with pytest.raises(InputError, match="the metric bad failed: ZeroDivisionError"):
        compared(["ts"], {"bad": lambda p, y: 1 / 0})


def test_the_report_says_what_a_method_from_outside_does(stranger, compared, tmp_path):
    result = compared({"sure": stranger.Shrunk(0.01), "broken": stranger.Broken()}, draws=5)
    assert result.recommended == "sure"
    result.save_report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert result.results["sure"].changed_share == 0
    assert "can change predictions, but changes none on these rows." in page
    assert "broken failed: RuntimeError: not today" in page
    assert "temperance fit" not in page  # which could not save it


def test_masked_rows_and_weights_are_passed_only_to_a_method_that_takes_them(stranger, rows, compared):
    val, test = rows
    logits = np.where(np.arange(4) == (val.labels[:, None] + 1) % 4, -np.inf, val.logits)

    class Able(stranger.Shrunk):
        supports_masked_classes = True

    result = compare(logits, val.labels, test.logits, test.labels, {"no": stranger.Shrunk(), "yes": Able()})
    assert list(result.results) == ["none", "yes"]
    assert "masked classes" in result.failures["no"]
    given, weights = {"plain": stranger.Shrunk(), "weighted": stranger.Weighted()}, np.arange(1, 301.0)
    result = compared(given, sample_weight=weights)
    np.testing.assert_array_equal(result.results["weighted"].calibrator.weights, weights)


def test_a_method_is_found_by_its_entry_point_and_by_its_import_path(stranger):
    assert isinstance(find_method("announced")(), stranger.Shrunk)
    assert isinstance(find_method("stranger:Weighted")(), stranger.Weighted)
    assert find_method("stranger:Weighted").style.label == "Weighted"
    bins = find_methods({"few": temperance.BinwiseTemperatureScaling(bins=5)})["few"]
    assert bins().bins == 5
    assert bins(bins=7).bins == 7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["best"], "no method 'best'.* Name package.module:Class, or one of ts, .*announced"),
        (["stranger:Nobody"], "'stranger:Nobody' must name an object"),
        ([object()], "object has no fit"),
        ("ts", r"such as \['ts'\]"),
        ([TemperatureScaling(), TemperatureScaling()], "TemperatureScaling twice"),
        ({"ts": LogisticRegression()}, "'ts' is the key of another method"),
    ],
)
def test_an_invalid_method_is_refused_with_a_message(stranger, given, message):
    with pytest.raises(InputError, match=message):
        find_methods(given)


@pytest.fixture(scope="module")
def task(rows, tmp_path_factory):
    val, test = rows
    path = tmp_path_factory.mktemp("tasks") / "data__model.npz"
    arrays = {"logits_val": val.logits, "labels_val": val.labels}
    np.savez(path, **arrays, logits_test=test.logits, labels_test=test.labels)
    return path


def test_a_study_fits_and_scores_what_comes_from_outside(stranger, task, tmp_path, quick_workers):
    results = run_study(
        find_tasks([task]), tmp_path / "study", methods=["stranger:Broken", "stranger:Shrunk", "ts"],
        metrics=["stranger:error_rate"], sizes=[50], draws=2,
    )  # fmt: skip
    assert results.methods == ["ts", "stranger:Broken", "stranger:Shrunk"]
    assert results.metrics[-1] == "error_rate"
    assert set(results.failures()["method"]) == {"stranger:Broken"}
    again = Results(tmp_path / "study")  # as stored
    assert again.summary("error_rate", 50).loc["data__model", "stranger:Shrunk"]["draws"] == 2
    (line,) = make_table(again, "error_rate", 50).data.to_dict("records")
    assert 0 < line["ts"] == line["none"] < 1  # a temperature keeps every decision


def test_the_command_line_accepts_methods_and_metrics_by_import_path(stranger, task, tmp_path, monkeypatch):
    from click.testing import CliRunner

    from temperance.cli.program import cli

    monkeypatch.setattr("temperance.study.runner.run_on_workers", lambda units, jobs: map_here(units))
    out = str(tmp_path / "study")
    options = ["-m", "ts,stranger:Shrunk", "--sizes", "50", "--draws", "1"]
    options += ["--metrics", "stranger:error_rate"]
    assert CliRunner().invoke(cli, ["study", "run", str(task), "--out", out, *options]).exit_code == 0
    shown = CliRunner().invoke(cli, ["study", "table", out, "--metric", "error_rate"])
    assert "Shrunk" in shown.output
    compared = CliRunner().invoke(cli, ["compare", str(task), "-m", "stranger:Shrunk,stranger:Broken"])
    assert compared.exit_code == 0
    assert "stranger:Broken failed: RuntimeError: not today" in compared.output + compared.stderr


def map_here(units):
    """Yield the results of the work units, computed in this process."""
    from temperance.study.protocol import run_work_unit

    yield from map(run_work_unit, units)


def test_a_calibrated_classifier_accepts_any_method(stranger, rows):
    val, test = rows
    for calibrator in (stranger.Shrunk(), "stranger:Shrunk"):
        model = CalibratedClassifier(LogisticRegression(), calibrator, cv=3).fit(val.logits, val.labels)
        probs = model.predict_proba(test.logits)
        np.testing.assert_allclose(probs.sum(axis=1), 1)
        np.testing.assert_array_equal(model.predict(test.logits), probs.argmax(axis=1))
        np.testing.assert_allclose(np.exp(model.predict_log_proba(test.logits)), probs)


@pytest.mark.parametrize("key", ["sklearn-sigmoid", "sklearn-isotonic"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_methods_of_scikit_learn_are_available(key, n_classes):
    val, test = simulate(400, n_classes, random_state=1), simulate(200, n_classes, random_state=2)
    result = compare(val.logits, val.labels, test.logits, test.labels, ["ts", key])
    assert not result.failures
    kept = val.labels != n_classes - 1  # the last class has no rows
    if key == "sklearn-sigmoid" and n_classes == 4:
        probs = find_method(key)().fit(val.logits[kept], val.labels[kept]).predict_proba(val.logits)
        assert probs.shape == (400, 4)
        assert (probs[:, 3] == 0).all()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_temperature_of_scikit_learn_is_ours_by_another_solver(n_classes):
    val = simulate(400, n_classes, random_state=1)
    result = compare(
        val.logits, val.labels, methods={"ours": "ts", "theirs": SklearnCalibration("temperature")}
    )
    ours, theirs = (result.results[name].scores["nll"].value for name in ("ours", "theirs"))
    assert theirs == pytest.approx(ours, rel=1e-4)


@pytest.mark.parametrize("key", ["sklearn-sigmoid", "sklearn-isotonic"])
@pytest.mark.parametrize("routing", [False, True])
def test_weights_of_scikit_learns_methods_repeat_rows_without_a_warning(key, routing):
    val, weights = simulate(200, 3, random_state=1), np.arange(200) % 3 + 1
    with sklearn.config_context(enable_metadata_routing=routing):  # a warning is an error here
        weighted = find_method(key)().fit(val.logits, val.labels, sample_weight=weights)
    repeated = find_method(key)().fit(val.logits.repeat(weights, 0), val.labels.repeat(weights))
    np.testing.assert_allclose(
        weighted.predict_proba(val.logits), repeated.predict_proba(val.logits), atol=1e-4
    )


def test_compare_leaves_out_methods_without_support_for_masks_and_refuses_nan(rows):
    val, test = rows
    logits = val.logits.copy()
    logits[(val.labels != 3) & (np.arange(300) % 5 == 0), 3] = -np.inf
    result = compare(logits, val.labels, methods="all", draws=20)
    assert list(result.results) == [
        "none",
        *(key for key in COMPARED if CALIBRATORS[key].supports_masked_classes),
    ]
    assert "-inf" in result.failures["lts"]
    with pytest.raises(InputError, match=r"-inf in \d+ rows"):
        compare(logits, val.labels, methods=["lts"])
    spoiled = test.logits.copy()
    spoiled[7, 2] = np.nan
    with pytest.raises(InputError, match=r"NaN in 1 row \(first: row 7\)"):
        compare(val.logits, val.labels, spoiled, test.labels, draws=20)


@pytest.mark.parametrize("key", ["svs", "sms"])
@pytest.mark.parametrize("named", [True, False])
def test_the_methods_of_probmetrics_are_available_named_or_not(key, named, compared, benchmark_script):
    pytest.importorskip("probmetrics", reason="probmetrics is not installed")
    script = benchmark_script("probmetrics_methods")
    methods = [f"probmetrics_methods:{key}"] if named else {"theirs": script.ProbmetricsCalibration(key)}
    assert not compared(methods).failures
