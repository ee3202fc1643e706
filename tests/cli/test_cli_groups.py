"""Groups and --by on the command line: what is printed, and the numbers of the library."""

from pathlib import Path

import numpy as np
import pandas
import pytest

from temperance import compare, load, make_calibrator, metrics, monitoring


@pytest.fixture
def grouped(folder, task):
    """Write 300 rows in 30 groups as arrays and as a table; return their groups."""
    groups = np.random.default_rng(0).permutation(np.arange(300) // 10)
    np.savez("val.npz", logits=task.logits, labels=task.labels, groups=groups)
    frame = pandas.DataFrame(task.logits, columns=[f"logit_{k}" for k in range(4)])
    frame.assign(label=task.labels, patient=[f"p{g}" for g in groups]).to_csv("val.csv", index=False)
    return groups


@pytest.mark.parametrize("words", [["val.npz"], ["val.csv", "--group-column", "patient"]])
def test_fit_uses_the_groups_of_the_file_and_says_so(run, grouped, task, words):
    done = run("fit", *words, "-m", "ts", "-o", "cal.json")
    assert done.code == 0, done
    by_hand = make_calibrator("ts").fit(task.logits, task.labels, groups=grouped)
    cal = load("cal.json")
    assert cal.n_groups_ == 30
    assert cal.standard_errors_["temperature"] == pytest.approx(by_hand.standard_errors_["temperature"])
    assert f"30 groups; design effect {by_hand.design_effect_:.2g}: worth about" in done.out
    shown = run("show", "cal.json").out
    assert "30 groups; design effect" in shown


def test_the_gap_before_the_fit_is_judged_by_groups(run, folder):
    """A fifth of the groups is wrong as a whole: 20 groups do not show that 20% is above 10%; 800 rows do."""
    wrong = np.repeat(np.arange(20) % 5 == 0, 40)
    logits = np.tile([np.log(9.0), 0.0], (800, 1)) + np.random.default_rng(0).normal(0, 0.01, (800, 2))
    np.savez("alone.npz", logits=logits, labels=wrong.astype(int))
    np.savez("together.npz", logits=logits, labels=wrong.astype(int), groups=np.arange(800) // 40)
    assert "Before: P(class 1) is too low: 10.0%" in run("fit", "alone.npz", "-m", "ts", "-o", "a.json").out
    assert "Before: Too few rows to tell: " in run("fit", "together.npz", "-m", "ts", "-o", "b.json").out


def test_a_check_without_the_groups_of_the_fit_warns(run, grouped, task):
    run("fit", "val.csv", "--group-column", "patient", "-m", "ts", "-o", "cal.json").succeeded()
    new = task.logits[:200] + 0.01
    pandas.DataFrame(new, columns=[f"logit_{k}" for k in range(4)]).assign(
        label=task.labels[:200], patient=np.arange(200) // 10
    ).to_csv("new.csv", index=False)
    done = run("check", "cal.json", "new.csv")
    assert "in 30 groups; found rows without groups. Pass --group-column." in done.err
    with_groups = run("check", "cal.json", "new.csv", "--group-column", "patient", "--history", "h.jsonl")
    assert "--group-column" not in with_groups.err
    run("check", "cal.json", "new.csv", "--history", "h.jsonl").failed(
        2, "began with groups; found rows", "Pass --group-column."
    )


@pytest.fixture
def visits(folder, task):
    """Return a table of visits of 40 patients in three hospitals, and what it holds."""
    rng, n = np.random.default_rng(0), len(task.labels)
    patient = rng.integers(0, 40, n)
    hospital = np.array(["north", "south", "hill"])[np.where(patient < 20, 0, np.where(patient < 39, 1, 2))]
    logits = task.logits.astype(np.float64).round(4)
    frame = pandas.DataFrame(logits, columns=[f"logit_{k}" for k in range(logits.shape[1])])
    frame = frame.assign(label=task.labels, patient=[f"p{p}" for p in patient], hospital=hospital)
    frame.to_csv("visits.csv", index=False)
    return logits, task.labels, patient, hospital


def test_evaluate_shows_calibration_by_hospital(visits, run):
    logits, labels, patient, hospital = visits
    words = ("evaluate", "visits.csv", "--group-column", "patient", "--by", "hospital", "--draws", 50)
    done = run(*words).succeeded()
    assert "Intervals and tests are by groups: 40 groups." in done.out
    assert "Calibration by hospital" in done.out
    table = [line.split() for line in done.out.splitlines() if line.strip()]
    sizes = {row[0]: int(row[1]) for row in table if row[0] in hospital}
    assert sizes == {name: int((hospital == name).sum()) for name in set(hospital)}
    assert "Overconfident in south and north; whether values differ" in run(*words, "-q").out
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    expected = metrics.evaluate(probs, labels, groups=patient, by=hospital, draws=50)
    found = run(*words, "--json").json
    assert found["groups"] == 40
    assert found["by_group"]["by"] == "hospital"
    assert found["by_group"] == {"by": "hospital"} | approximately(expected.by_group.to_dict())
    values = [one.value for one in expected.by_group.values]
    assert [one["value"] for one in found["by_group"]["values"]] == values
    assert found["metrics"]["accuracy"] == pytest.approx(expected.to_dict()["accuracy"], rel=1e-6)
    plain = run("evaluate", "visits.csv", "--classes", "0,1,2,3", "--draws", 50, "--json")
    assert (plain.json["groups"], plain.json["by_group"]) == (None, None)


def approximately(value):
    """Compare numbers as the digits of a file allow it, and all else exactly."""
    if isinstance(value, dict):
        return {name: approximately(one) for name, one in value.items()}
    if isinstance(value, list):
        return [approximately(one) for one in value]
    return pytest.approx(value, rel=1e-5, abs=1e-9) if isinstance(value, float) else value


WEST = (
    "P(yes) is too high in West: 49.2% on average, 38.3% observed (O/E 0.78, 0.75 to 0.81). "
    "Not detectable in East, North, South. The values differ (p < 0.001)."
)


@pytest.fixture
def hospitals(folder, west):
    """Write a table of four hospitals, one of which is off, and calibrated rows to fit to."""
    p, answer, hospital = west
    rng = np.random.default_rng(0)
    z = 1.8 * rng.normal(size=20_000)
    labels = np.where(rng.uniform(size=len(z)) < 1 / (1 + np.exp(-z)), "yes", "no")
    rows = {"val.csv": (z, labels, "North"), "west.csv": (np.log(p / (1 - p)), answer, hospital)}
    for name, (odds, label, where) in rows.items():
        pandas.DataFrame({"logit_no": 0.0, "logit_yes": odds, "label": label, "hospital": where}).to_csv(
            name, index=False
        )


@pytest.mark.parametrize("command", ["evaluate", "compare", "check"])
def test_every_command_names_the_hospital_whose_risk_is_off(hospitals, run, command):
    """Its errors below and above a half cancel in the confidence."""
    run("fit", "val.csv", "-m", "ts", "-o", "cal.json").succeeded()
    words = {
        "evaluate": ("evaluate", "west.csv", "--draws", 20),
        "compare": ("compare", "val.csv", "west.csv", "-m", "ts"),
        "check": ("check", "cal.json", "west.csv"),
    }[command]
    done = run(*words, "--by", "hospital")
    assert WEST in " ".join(done.out.split())
    row = next(line.split() for line in done.out.splitlines() if line.strip().startswith("West"))
    assert row == ["West", "2,183", "837", "49.2%", "38.3%", "0.78,", "0.75", "to", "0.81", "<", "0.001"]
    found = run(*words, "--by", "hospital", "--json").json["by_group"]
    assert found["words"] == WEST
    of_west = found["values"][0]
    assert (of_west["value"], of_west["finding"]["state"]) == ("West", "level")
    assert of_west["finding"]["p_value"] == pytest.approx(8 * of_west["p_value"])


@pytest.mark.parametrize("command", ["evaluate", "compare", "check"])
def test_the_positive_class_heads_the_table(hospitals, run, command):
    run("fit", "val.csv", "-m", "ts", "-o", "cal.json", "--positive", "no").succeeded()
    words = {
        "evaluate": ("evaluate", "west.csv", "--draws", 20, "--positive", "no"),
        "compare": ("compare", "val.csv", "west.csv", "-m", "ts", "--positive", "no"),
        "check": ("check", "cal.json", "west.csv"),  # the class of the fit
    }[command]
    done = run(*words, "--by", "hospital")
    assert "P(no) is too low in West: 50.8% on average, 61.7% observed" in " ".join(done.out.split())
    head = next(line.split() for line in done.out.splitlines() if line.strip().startswith("value"))
    assert head[:3] == ["value", "rows", "no"]


def test_many_values_are_cut_in_the_table_and_whole_in_json(folder, task, run):
    rows = np.arange(len(task.labels))
    np.savez("many.npz", logits=task.logits, labels=task.labels, day=rows % 30)
    done = run("evaluate", "many.npz", "--by", "day", "--draws", 20)
    assert "10 more values: --json lists all." in done.out
    content = run("evaluate", "many.npz", "--by", "day", "--draws", 20, "--json").json
    assert len(content["by_group"]["values"]) == 30


def test_check_shows_calibration_by_hospital(visits, run):
    logits, labels, patient, hospital = visits
    run("fit", "visits.csv", "-m", "ts", "-o", "cal.json").succeeded()
    new = ("check", "cal.json", "visits.csv", "--group-column", "patient", "--by", "hospital")
    done = run(*new, "--report", "page.html")
    assert "Calibration by hospital" in done.out
    assert "Gap by group" in Path("page.html").read_text()
    found = run(*new, "--json").json["by_group"]
    cal = make_calibrator("ts").fit(logits, labels)
    with pytest.warns(UserWarning, match="rows of the fit"):
        expected = monitoring.check(cal, logits, labels, groups=patient, by=hospital).by_group
    assert found["by"] == "hospital"
    assert found["p_value"] == pytest.approx(expected.p_value, rel=1e-6)
    assert {one["value"]: one["n_groups"] for one in found["values"]} == {"north": 20, "south": 19, "hill": 1}


def test_compare_reads_the_groups_of_both_files(folder, task, run):
    n = len(task.labels) // 2
    ids, parts = np.arange(n) // 4, (slice(0, n), slice(n, 2 * n))
    rows = [(task.logits[part], task.labels[part]) for part in parts]
    for name, (logits, labels) in zip(("val", "test"), rows, strict=True):
        np.savez(f"{name}.npz", logits=logits, labels=labels, groups=ids)
    words = ("compare", "val.npz", "test.npz", "-m", "ts")
    assert f"{n:,} rows in {ids.max() + 1} groups" in run(*words).out
    found = run(*words, "--json").json
    expected = compare(*rows[0], *rows[1], ["ts"], groups=ids, test_groups=ids)
    assert found["nll_gain"]["low"] == pytest.approx(expected.verdict.nll_gain.low)
    assert (found["groups_fitted"], found["groups_judged"]) == (ids.max() + 1, ids.max() + 1)


def test_compare_shows_and_draws_the_recommended_method_by_hospital(visits, run):
    logits, labels, patient, hospital = visits
    words = ("compare", "visits.csv", "-m", "ts", "--group-column", "patient", "--by", "hospital")
    done = run(*words, "--report", "page.html").succeeded()
    assert "Calibration by hospital" in done.out
    page = Path("page.html").read_text()
    assert 'id="figure-gaps"' in page
    assert 'id="by-group"' in page
    found = run(*words, "--json").json
    ids = [f"p{one}" for one in patient]
    result = compare(logits, labels, methods=["ts"], groups=ids, by=hospital)
    expected = result.results[result.recommended].scores.by_group
    assert found["by_group"]["p_value"] == pytest.approx(expected.p_value, rel=1e-6)
    # What a user pastes: apply takes no groups, and neither it nor fit takes --by.
    assert "fit visits.csv -m ts -o cal.json --group-column patient" in page
    assert "--by" not in page
    assert page.count("--group-column") == 1
    run(*words[:2], "-m", "ts", "--report", "plain.html").succeeded()
    assert 'id="by-group"' not in Path("plain.html").read_text()
