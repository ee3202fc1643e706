"""Decisions by a rule and by costs, in the library, a file and a service; thresholds for two classes."""

import json

import numpy as np
import pytest

import temperance
from temperance import serving
from temperance.data import demo_task, simulate
from temperance.decisions import evaluate_costs
from temperance.errors import InputError, InputWarning
from temperance.formulas.automation import least_cost

NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@pytest.fixture(scope="module")
def task():
    return demo_task()


@pytest.fixture(scope="module")
def fitted(task):
    return temperance.make_calibrator("bayes").fit(task.val_logits, task.val_labels, classes=NAMES)


@pytest.fixture(scope="module")
def automated(task, fitted):
    return fitted.automate(task.test_logits[:5000], task.test_labels[:5000], 0.05)


def test_a_rule_gives_the_class_above_its_threshold_or_asks_a_person(task, fitted, automated):
    new, probs = task.test_logits[5000:], fitted.predict_proba(task.test_logits[5000:])
    decisions = automated.decide(new)
    wanted = np.where(probs.max(axis=1) > automated.automation_.threshold, probs.argmax(axis=1), -1)
    np.testing.assert_array_equal(decisions, wanted)
    decided = decisions >= 0
    assert 0.6 < decided.mean() < 0.9
    assert (decisions[decided] != task.test_labels[5000:][decided]).mean() < 0.05


def test_the_rule_is_that_of_the_calibrated_probabilities(task, fitted, automated):
    rule = temperance.automate(fitted.predict_proba(task.test_logits[:5000]), task.test_labels[:5000], 0.05)
    assert rule.to_dict() == automated.automation_.to_dict()
    assert not hasattr(fitted, "automation_")


def test_a_file_and_a_service_decide_alike(task, automated, tmp_path):
    automated.save(tmp_path / "cal.json")
    wanted = automated.decide(task.test_logits)
    predictor = serving.load(tmp_path / "cal.json")
    np.testing.assert_array_equal(predictor.decide(task.test_logits), wanted)
    np.testing.assert_array_equal(temperance.load(tmp_path / "cal.json").decide(task.test_logits), wanted)
    assert predictor.automation.words == automated.automation_.words
    assert predictor.automation.curve is None
    assert automated.automation_.words in " ".join(temperance.load(tmp_path / "cal.json").summary().split())


def test_a_positive_class_is_named_in_the_file_too(task, fitted, tmp_path):
    labels = np.array(NAMES)[task.test_labels]
    automated = fitted.automate(task.test_logits, labels, 0.1, positive="ship")
    automated.save(tmp_path / "cal.json")
    rule = serving.load(tmp_path / "cal.json").automation
    assert rule.words == automated.automation_.words
    assert "P(ship)" in rule.words
    assert set(automated.decide(task.test_logits).tolist()) == {8, -1}


def test_without_a_threshold_a_person_decides_on_every_row(task, fitted, tmp_path):
    automated = fitted.automate(task.test_logits[:100], task.test_labels[:100])
    assert automated.automation_.threshold is None
    automated.save(tmp_path / "cal.json")
    assert (serving.load(tmp_path / "cal.json").decide(task.test_logits[:50]) == -1).all()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("threshold", 1.5, "automation.threshold must be a number from 0 to 1"),
        ("positive", 10, "automation.positive must be a whole number and at most 9"),
        ("rows", 0, "automation.rows must be a whole number and at least 1"),
        ("rows_needed", 0, "automation.rows_needed must be a whole number and at least 1"),
        ("max_error", None, "automation.max_error must be a number from 0 to 1"),
    ],
)
def test_a_damaged_rule_is_refused(automated, tmp_path, field, value, message):
    automated.save(tmp_path / "cal.json")
    content = json.loads((tmp_path / "cal.json").read_text())
    content["automation"][field] = value
    (tmp_path / "cal.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        serving.load(tmp_path / "cal.json")


def test_adapting_and_fitting_again_drop_the_rule(task, automated):
    assert not hasattr(automated.adapt(priors=np.full(10, 0.1)), "automation_")
    again = temperance.make_calibrator("ts").fit(task.val_logits, task.val_labels)
    again = again.automate(task.test_logits, task.test_labels, 0.1)
    assert not hasattr(again.fit(task.val_logits, task.val_labels), "automation_")


def test_the_rows_of_the_fit_are_recognised(task, fitted):
    with pytest.warns(InputWarning, match="rows that the fit has not seen; found the rows of the fit"):
        fitted.automate(task.val_logits, task.val_labels)


def test_whole_numbers_as_class_names_are_not_taken_for_columns():
    task = simulate(n_rows=2000, n_classes=3)
    names, rows = np.array([7, 1, 0]), slice(1000, None)
    cal = temperance.TemperatureScaling().fit(task.logits[:1000], names[task.labels[:1000]], classes=names)
    rule = cal.automate(task.logits[rows], names[task.labels[rows]], 0.3).automation_
    wanted = temperance.automate(cal.predict_proba(task.logits[rows]), task.labels[rows], 0.3)
    assert rule.threshold == wanted.threshold is not None


def test_pixels_are_groups_by_image():
    task = simulate(n_rows=8000, n_classes=3, sharpness=8.0)
    shaped = [a.reshape(2, 40, 10, 10, *a.shape[1:]) for a in (task.logits, task.labels)]
    logits, labels = shaped[0].transpose(0, 1, 4, 2, 3), shaped[1]
    cal = temperance.TemperatureScaling().fit(logits[0], labels[0], dim=1)
    kept = np.random.default_rng(0).random(4000) > 0.2
    automated = cal.automate(
        logits[1], np.where(kept.reshape(40, 10, 10), labels[1], 255), 0.3, ignore_index=255
    )
    flat = temperance.TemperatureScaling().fit(task.logits[:4000], task.labels[:4000])
    rows, groups = np.flatnonzero(kept) + 4000, np.flatnonzero(kept) // 100
    wanted = flat.automate(task.logits[rows], task.labels[rows], 0.3, groups=groups)
    assert automated.automation_.groups == 40
    assert automated.automation_.threshold == pytest.approx(wanted.automation_.threshold)
    decisions = automated.decide(logits[1])
    assert decisions.shape == (40, 10, 10)
    np.testing.assert_array_equal(decisions.reshape(-1), wanted.decide(task.logits[4000:]))


def test_tensors_are_decided_on():
    torch = pytest.importorskip("torch")
    task = simulate(n_rows=500, n_classes=3)
    cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
    costs = 1 - np.eye(3)
    np.testing.assert_array_equal(
        cal.decide(torch.tensor(task.logits), torch.tensor(costs)), cal.predict(task.logits)
    )


@pytest.mark.parametrize("max_error", [0.03, 0.05, 0.07])
def test_onnx_and_a_file_with_six_digits_decide_alike(max_error, tmp_path):
    """Many of the rows of a forest of 20 trees are at one score, the next below the threshold."""
    pytest.importorskip("onnxruntime")
    from onnx_models import serve

    rng = np.random.default_rng(0)
    share = rng.binomial(20, 1 / (1 + np.exp(-rng.normal(0, 3, 4000)))) / 20
    odds = np.log((share + 0.01) / (1.01 - share))
    logits, labels = np.column_stack([-odds / 2, odds / 2]), (rng.random(4000) < share).astype(int)
    cal = temperance.make_calibrator("bayes").fit(logits[:1000], labels[:1000])
    cal = cal.automate(logits[1000:], labels[1000:], max_error)
    wanted = cal.decide(logits)
    assert 0.1 < (wanted < 0).mean() < 0.8
    cal.to_onnx(tmp_path / "cal.onnx")
    served = serve(tmp_path / "cal.onnx", logits.astype(np.float32))
    for probs in (served, served.astype(np.float64)):
        np.testing.assert_array_equal(cal.automation_.decide(probs), wanted)
    np.savetxt(tmp_path / "rows.csv", logits, fmt="%.6g", delimiter=",")
    np.testing.assert_array_equal(cal.decide(np.loadtxt(tmp_path / "rows.csv", delimiter=",")), wanted)
    np.testing.assert_array_equal(cal.decide(logits.astype(np.float32)), wanted)


def test_positions_have_no_positive_class():
    task = simulate(n_rows=500, n_classes=3)
    cal = temperance.TemperatureScaling().fit(task.logits, task.labels, positions=True)
    with pytest.raises(InputError, match="positive is for classes"):
        cal.automate(task.logits, task.labels, positive=0)


def test_of_positions_none_is_lost():
    rng = np.random.default_rng(0)
    odds = rng.normal(-5, 1, 3000)
    logits, labels = (
        np.column_stack([0 * odds, odds]),
        (rng.random(3000) < 1 / (1 + np.exp(-odds))).astype(int),
    )
    cal = temperance.TemperatureScaling()
    places = cal.fit(logits[:1000], labels[:1000], positions=True).automate(
        logits[1000:], labels[1000:], 0.05
    )
    assert places.automation_.threshold is not None
    with pytest.raises(InputError, match="answering class 0 to every row"):
        cal.fit(logits[:1000], labels[:1000]).automate(logits[1000:], labels[1000:], 0.05)


COSTS = np.array([[0.0, 1.0, 4.0, 0.5], [2.0, 0.0, 1.0, 0.5], [9.0, 3.0, 0.0, 0.5]])


def test_the_decision_has_the_least_expected_cost(tmp_path):
    task = simulate(n_rows=500, n_classes=3)
    cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
    cal.save(tmp_path / "cal.json")
    decisions, expected = cal.decide(task.logits, COSTS, return_costs=True)
    for p, decision, cost in zip(cal.predict_proba(task.logits), decisions, expected, strict=True):
        each = [sum(p[k] * COSTS[k, d] for k in range(3)) for d in range(4)]
        assert each[decision] == min(each) == pytest.approx(cost)
    assert set(decisions.tolist()) == {0, 1, 2, 3}
    np.testing.assert_array_equal(serving.load(tmp_path / "cal.json").decide(task.logits, COSTS), decisions)


def test_realised_and_expected_costs_agree_where_probabilities_are_true():
    task = simulate(n_rows=20_000, n_classes=3)
    result = evaluate_costs(task.probabilities, task.labels, COSTS)
    realised = COSTS[task.labels, (task.probabilities @ COSTS).argmin(axis=1)].mean()
    assert result.realised.value == pytest.approx(realised)
    assert result.realised.low < result.expected.value < result.realised.high
    assert sum(result.shares) == pytest.approx(1)
    too_sure = task.probabilities**3 / (task.probabilities**3).sum(axis=1, keepdims=True)
    assert evaluate_costs(too_sure, task.labels, COSTS).realised.value > realised


def tied_at_the_top(n_rows, n_classes, rng):
    """Return probabilities whose largest is tied: summing the others, in any order, gives nearly the same."""
    weight = rng.gamma(1.0, size=(n_rows, n_classes))
    first, second = np.sort(rng.random((n_rows, n_classes)).argsort(axis=1)[:, :2], axis=1).T
    at = np.arange(n_rows)
    weight[at, first] = weight[at, second] = 1.1 * weight.max(axis=1)
    return weight / weight.sum(axis=1, keepdims=True), first


@pytest.mark.parametrize("n_classes", [2, 3, 10, 40])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tied_costs_are_decided_for_the_top_class_whatever_is_beside_the_row(n_classes, dtype):
    rng = np.random.default_rng(n_classes)
    probs, first = tied_at_the_top(700, n_classes, rng)
    probs = probs.astype(dtype).astype(np.float64)
    costs = 0.1 * (1 - np.eye(n_classes, n_classes + 2))  # two decisions beside the classes are dear
    costs[:, n_classes:] = 0.3
    decisions, expected = least_cost(probs, costs)
    np.testing.assert_array_equal(decisions, first)
    for rows in (slice(0, 1), slice(5, 8), slice(3, 700, 2), slice(None, None, -1)):
        again, cost = least_cost(probs[rows], costs)
        np.testing.assert_array_equal(again, first[rows])
        np.testing.assert_array_equal(cost, expected[rows])  # to the last bit
    shaped, cost = least_cost(probs.reshape(7, 100, n_classes), costs)
    np.testing.assert_array_equal(shaped, first.reshape(7, 100))
    np.testing.assert_array_equal(cost, expected.reshape(7, 100))


def test_of_tied_decisions_without_the_top_class_the_first_is_taken():
    costs = np.array([[0.0, 9.0, 1.0, 1.0], [9.0, 0.0, 1.0, 1.0]])
    decisions, expected = least_cost(np.array([[0.6, 0.4]]), costs)
    assert (decisions.tolist(), expected.tolist()) == ([2], [pytest.approx(1.0)])


@pytest.mark.parametrize("dear", [1.0, 50.0])
def test_costs_of_rows_without_errors_are_not_certain(dear):
    probs = np.tile([[0.99, 0.01], [0.04, 0.96]], (50, 1))
    costs = np.array([[0.0, 1.0], [dear, 0.0]])
    result = evaluate_costs(probs, np.tile([0, 1], 50), costs)
    assert (result.realised.value, result.realised.low) == (0, 0)
    assert 0.02 < result.realised.high <= costs.max()
    assert result.realised.high > result.expected.value
    certain = evaluate_costs(np.tile([[1.0, 0.0]], (100, 1)), np.zeros(100, int), costs)
    assert certain.realised.high > 0.02


def test_groups_widen_the_intervals_of_costs():
    rng = np.random.default_rng(0)
    p = np.repeat(rng.beta(1, 4, 40), 25)
    labels = np.repeat(rng.random(40), 25) < p
    probs, costs, groups = np.column_stack([1 - p, p]), [[0, 1], [3, 0]], np.arange(1000) // 25
    alone = evaluate_costs(probs, labels.astype(int), costs, groups=np.arange(len(labels)))
    grouped = evaluate_costs(probs, labels.astype(int), costs, groups=groups)
    assert grouped.realised.value == alone.realised.value
    for name in ("realised", "expected"):
        widths = [getattr(found, name).high - getattr(found, name).low for found in (alone, grouped)]
        assert widths[1] > 2 * widths[0]


def test_two_costs_give_the_threshold_of_the_cheaper_decision():
    task = simulate(n_rows=2000, n_classes=2)
    cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
    threshold = temperance.threshold_from_costs(false_positive=1, false_negative=4)
    assert threshold == 0.2
    by_costs = cal.decide(task.logits, [[0, 1], [4, 0]])
    np.testing.assert_array_equal(by_costs == 1, cal.predict_proba(task.logits)[:, 1] > threshold)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "decide needs a rule or costs, and the calibrator has no rule"),
        ({"return_costs": True}, "return_costs needs costs"),
        (
            {"costs": np.eye(2)},
            r"costs must be a matrix with 3 rows, one per true class.* found shape \(2, 2\)",
        ),
        ({"costs": np.ones((3, 2))}, r"one column per decision, the classes first; found shape \(3, 2\)"),
        ({"costs": [[np.inf] * 3] * 3}, "all finite; found inf"),
        ({"costs": [["a"] * 3] * 3}, "found <U1"),
    ],
)
def test_decisions_need_a_rule_or_a_matrix_of_costs(arguments, message):
    task = simulate(n_rows=200, n_classes=3)
    cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
    with pytest.raises(InputError, match=message):
        cal.decide(task.logits, **arguments)


@pytest.mark.parametrize("cost", [0, -1, np.nan, "1"])
def test_costs_of_errors_are_above_0(cost):
    with pytest.raises(InputError, match="false_positive must be a number > 0"):
        temperance.threshold_from_costs(cost, 1)


@pytest.mark.parametrize("key", ["ts", "lts", "hts", "hnlts", "pts", "ets", "mono", "bayes", "bayes-bias"])
@pytest.mark.parametrize("old", [0.03, 0.5, 0.9])
def test_a_threshold_survives_recalibration(key, old):
    task = simulate(n_rows=2000, n_classes=2, random_state=1)
    cal = temperance.make_calibrator(key).fit(task.logits, task.labels)
    new = cal.threshold_for(old)
    own = 1 / (1 + np.exp(task.logits[:, 0] - task.logits[:, 1]))
    np.testing.assert_array_equal(own > old, cal.predict_proba(task.logits)[:, 1] > new)
    assert cal.threshold_for(new, inverse=True) == pytest.approx(old, abs=1e-9)


def test_no_threshold_decides_alike_where_probabilities_do_not_rise():
    task = simulate(n_rows=2000, n_classes=2, random_state=1)
    cal = temperance.make_calibrator("bts").fit(task.logits, task.labels)
    with pytest.raises(InputError, match="must rise with the classifier's"):
        cal.threshold_for(0.9)
    with pytest.warns(UserWarning, match="no better than chance"):
        upside_down = temperance.make_calibrator("bayes-bias").fit(task.logits, 1 - task.labels)
    with pytest.raises(InputError, match="must rise with the classifier's"):
        upside_down.threshold_for(0.9)
    with pytest.raises(InputError, match="must be a calibrated probability that occurs"):
        upside_down.threshold_for(0.9, inverse=True)


def test_a_threshold_is_examined_where_probabilities_occur():
    """A forest of 20 trees says nothing below 1 in 80, where the map of bayes bends."""
    rng = np.random.default_rng(0)
    own = rng.binomial(20, 1 / (1 + np.exp(-rng.normal(-2, 1.5, 2000)))) / 20
    probs = np.column_stack([1 - own, own])
    labels = (rng.uniform(size=2000) < 0.03 + 0.9 * own).astype(int)
    cal = temperance.make_calibrator("bayes").fit(probs, labels, from_probs=True)
    for old in (0.03, 0.08, 0.93):
        new = cal.threshold_for(old)
        np.testing.assert_array_equal(own > old, cal.predict_proba(probs, from_probs=True)[:, 1] > new)
        assert cal.threshold_for(new, inverse=True) == pytest.approx(old, abs=1e-9)


def test_thresholds_are_for_two_classes():
    task = simulate(n_rows=200, n_classes=3)
    cal = temperance.TemperatureScaling().fit(task.logits, task.labels)
    with pytest.raises(InputError, match=r"threshold_for is for two classes.*found 3 classes"):
        cal.threshold_for(0.5)
    with pytest.raises(InputError, match="threshold must be a number between 0 and 1"):
        cal.threshold_for(1.0)
