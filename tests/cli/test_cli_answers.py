"""The answer comes first: fit, show, methods and evaluate for people; errors name the likely remedy."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_cli_help import cli_help
from test_cli_terminal import on_terminal  # noqa: F401  a fixture

from temperance import CALIBRATORS, load
from temperance.data.read_options import ReadOptions
from temperance.errors import percent

EVALUATE = ("evaluate", "test.npz", "--draws", 20)


def test_fit_says_what_was_fitted_what_was_wrong_where_it_is_and_what_to_do(run, files, task):
    what, *before, saved, next_command = (
        run("fit", "val.npz", "-m", "ts", "-o", "cal.json").succeeded().out.splitlines()
    )
    before = " ".join(" ".join(before).split())
    assert what == "Fitted ts to 300 rows of logits, 4 classes: val.npz"
    probs = np.exp(task.logits) / np.exp(task.logits).sum(axis=1, keepdims=True)
    confidence, accuracy = probs.max(axis=1).mean(), (probs.argmax(axis=1) == task.labels).mean()
    assert before.startswith(f"Before: Overconfident by {100 * (confidence - accuracy):.1f} points (")
    assert f": confidence {percent(confidence)}, accuracy {percent(accuracy)}." in before
    told = run("fit", "val.npz", "-m", "ts", "-o", "again.json", "--json").json
    assert before == f"Before: {told['finding']['words']}"
    assert before[len("Before: ") :] in " ".join(run("evaluate", "val.npz", "--draws", 9).out.split())
    assert saved == "Saved to cal.json. Details: temperance show cal.json"
    for told in (saved, next_command):
        run(*told.partition(": temperance ")[2].split()).succeeded()


def test_the_next_command_reads_the_file_alike(run, files, task):
    told = run("fit", "task.npz", "-m", "ts", "-o", "cal.json").succeeded().out.splitlines()
    assert told[-1] == "Next: temperance evaluate task.npz -c cal.json"
    np.save("a.npy", task.logits)
    np.save("labels.npy", task.labels)
    words = ("--labels", "labels.npy", "--input", "logits", "-m", "ts", "-o", "new cal.json")
    told = run("fit", "a.npy", *words).succeeded().out.splitlines()
    assert told[-1] == "Next: temperance apply 'new cal.json' new.npy -o probs.npz --input logits"


def test_without_a_method_fit_takes_the_default_for_the_classes_and_says_so(run, files):
    first, second, *_ = run("fit", "val.npz", "-o", "cal.json").succeeded().out.splitlines()
    assert first == "bayes is the default for more than two classes; -m chooses another method."
    assert second.startswith("Fitted bayes to 300 rows")
    logits = np.log(np.tile([0.75, 0.25], (40, 1)))
    np.savez("two.npz", logits=logits, labels=np.arange(40) % 4 == 0)
    told = run("fit", "two.npz", "-o", "two.json", "--json").json
    assert (told["method"], load("two.json").class_bias) == ("bayes-bias", "auto")
    shown = " ".join(run("fit", "two.npz", "-o", "b.json").succeeded().out.split())
    assert shown.startswith("bayes-bias is the default for two classes; -m chooses another method. Fitted")
    assert "Before: Too few rows to tell: P(class 1) 25.0% on average, 10 of 40 observed" in shown
    assert re.search(r"After, on the rows of the fit: P\(class 1\) [^ ]* on average, 25.0% observed\.", shown)


def test_fit_judges_the_positive_class_and_warns_of_swapped_columns(run):
    rng = np.random.default_rng(0)
    z = rng.normal(-3, 2, 500)
    happens = rng.random(500) < 1 / (1 + np.exp(-z))
    rows = [
        f"{p:.9f},{1 - p:.9f},{'ill' if y else 'well'}"
        for p, y in zip(1 / (1 + np.exp(-z)), happens, strict=True)
    ]
    for name, head in (("a.csv", "prob_ill,prob_well,label"), ("swapped.csv", "prob_well,prob_ill,label")):
        Path(name).write_text("\n".join([head, *rows]))
    told = run("fit", "a.csv", "-m", "bayes-bias", "-o", "cal.json", "--positive", "ill", "--json").json
    assert told["finding"]["words"].startswith("No miscalibration is detectable: P(ill) ")
    told = run("compare", "a.csv", "--positive", "ill", "--json").json
    assert (told["before"]["finding"]["class"], told["after"]["finding"]["class"]) == ("ill", "ill")
    told = run("compare", "a.csv", "--positive", "ill", "-q").out
    assert re.match(r"[A-Z].*\.\n(P\(ill\) before: .* for .* observed|No .*: P\(ill\))", told)
    reversed_ = "Higher P(ill) goes with fewer ill. Check the columns and labels before you calibrate."
    told = run("fit", "swapped.csv", "-m", "bayes-bias", "-o", "b.json", "--positive", "ill")
    assert f"warning: {reversed_}" in told.err
    told = run("compare", "swapped.csv", "--positive", "ill", "-q").out
    assert " ".join(told.split()) == f"Check the labels and the order of the columns. {reversed_}"


def test_show_has_the_summary_and_the_notes(run, files):
    words = ("fit", "val.npz", "-m", "hts", "-o", "cal.json", "--metadata", "classifier=resnet50")
    details = run(*words, "--details").succeeded().out
    shown = run("show", "cal.json").succeeded().out
    assert shown == f'{load("cal.json").summary()}\nclassifier: "resnet50"\n'
    assert shown in details


def test_methods_lists_the_registry_one_on_each_line(run):
    lines = run("methods").succeeded().out.splitlines()
    for key, method in CALIBRATORS.items():
        (line,) = (line for line in lines if line.split()[:1] == [key])
        assert ("can change" in line) != method.keeps_class
        assert "…" not in line
    assert "loss=nll" in next(line for line in lines if line.split()[:1] == ["ets"])


def test_evaluate_prints_a_sentence_and_five_metrics(run, files):
    told = run(*EVALUATE, "--json").json["metrics"]
    verdict, size, *table = run(*EVALUATE).succeeded().out.splitlines()
    gap, accuracy = told["overconfidence"], told["accuracy"]["value"]
    points, low, high = (f"{100 * gap[end]:.1f}" for end in ("value", "low", "high"))
    numbers = f"confidence {percent(accuracy + gap['value'])}, accuracy {percent(accuracy)}"
    assert verdict == f"Overconfident by {points} points ({low} to {high}): {numbers}."
    assert size == "200 predictions, 4 classes, ECE with 15 bins"
    names = [re.split(r" {2,}", line.strip())[0] for line in table if " to " in line]
    assert names == ["accuracy", "log loss", "Brier score", "ECE", "overconfidence"]
    everything = run(*EVALUATE, "--all").out
    assert "smooth ECE" in everything
    assert "kuiper" in everything


def test_evaluate_shows_the_base_rate_of_the_positive_of_two_classes(run):
    Path("a.csv").write_text(
        "prob_ham,prob_spam,label\n0.9,0.1,ham\n0.6,0.4,spam\n0.8,0.2,ham\n0.9,0.1,ham\n"
    )
    out = run("evaluate", "a.csv", "--draws", 10).succeeded().out
    assert "Too few rows to tell: P(spam) 20.0% on average, 1 of 4 observed (O/E " in out
    finding = run("evaluate", "a.csv", "--draws", 10, "--json").json["finding"]
    assert (finding["class"], finding["mean"], finding["rate"]) == ("spam", pytest.approx(0.2), 0.25)
    other = run("evaluate", "a.csv", "--draws", 10, "--positive", "ham", "--json").json["finding"]
    assert (other["class"], other["mean"], other["rate"]) == ("ham", pytest.approx(0.8), 0.75)
    assert other["p_value"] == pytest.approx(finding["p_value"], rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_sentence_never_contradicts_the_table(seed, share, run):
    """Calibrated on average, and within groups that are wrong by `share` in both directions."""
    rng = np.random.default_rng(seed)
    stated = rng.choice([0.6, 0.9], size=800)
    true = np.where(stated == 0.6, stated + share, stated - share)
    np.savez("a.npz", probs=np.stack([stated, 1 - stated], axis=1), labels=rng.uniform(size=800) > true)
    told = run("evaluate", "a.npz", "--draws", 50, "--json").json["finding"]
    sentence = run("evaluate", "a.npz", "--draws", 50, "-q").out
    assert " ".join(sentence.split()) == told["words"]
    if share:
        assert told["p_value"] < 1e-6
        assert sentence.startswith("Higher P(class 1) goes with fewer")
    elif sentence.startswith("No miscalibration is detectable"):
        assert told["p_value"] > 0.05
        assert all(told[name]["low"] <= 1 <= told[name]["high"] for name in ("ratio", "slope"))
    else:
        assert not all(told[name]["low"] <= 1 <= told[name]["high"] for name in ("ratio", "slope"))


# ---- what is printed where


def test_a_table_without_a_terminal_is_not_cut(run, files, calibrator, task):
    names = [f"{'a class with a very long name ' * 4}{k}" for k in range(4)]
    np.savez("named.npz", logits=task.logits, labels=task.labels, classes=names)
    run("fit", "named.npz", "-m", "bayes-bias", "-o", "named.json").succeeded()
    out = run("adapt", "named.json", "named.npz", "-o", "new.json").succeeded().out
    assert "…" not in out
    assert all(any(line.startswith(f" {name}") for line in out.splitlines()) for name in names)


@pytest.mark.parametrize("columns", [80, 120])
def test_a_table_on_a_terminal_is_not_cut_either(columns, run, on_terminal):  # noqa: F811
    shown, _ = on_terminal("methods", columns=str(columns))
    assert "…" not in shown
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).splitlines()
    assert max(map(len, lines)) <= columns


def test_the_bar_of_a_fit_tells_its_steps(files, on_terminal):  # noqa: F811
    shown, _ = on_terminal("fit", "val.npz", "-o", "cal.json", stdout=False)
    assert re.search(r"Fitting bayes: step [1-9]", shown)


def test_options_about_reading_files_are_in_a_group_of_their_own():
    for name in ("compare", "fit", "apply", "evaluate", "automate", "check", "adapt"):
        options, reading = cli_help(name).split("Reading files:\n")
        for one in ReadOptions.described():
            spelled = "--input" if one.name == "kind" else f"--{one.name.replace('_', '-')}"
            is_target = (name, spelled) == ("automate", "--positive")  # of the rule, not of the rows
            assert is_target or not re.search(rf"^ *{spelled}\b", options, re.MULTILINE)
        assert "--classes" in reading
        assert "--json" in options


# ---- errors


def test_an_error_on_a_terminal_wraps_at_words(run, on_terminal, monkeypatch):  # noqa: F811
    from temperance.cli import output

    name = "a-very-long-name-of-a-file-" * 5
    monkeypatch.setattr(output.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    err = run("evaluate", f"{name}.npz").err
    assert " ".join(err.split()) == f"error: {name}.npz: there is no such file. Check its name and folder."
    assert max(len(line) for line in err.splitlines() if name not in line) <= 60


@pytest.mark.parametrize("words", ["fit no.npz -o a.json", "check no.json no.npz", "compare no.npz"])
def test_a_wrong_file_name_is_reported_before_scipy_is_imported(words, folder):
    code = (
        "import sys; from temperance.cli.program import run; code = run(sys.argv[1:])\n"
        "sys.exit(code if not {'numpy', 'scipy', 'sklearn'} & set(sys.modules) else 'imported')"
    )
    done = subprocess.run([sys.executable, "-c", code, *words.split()], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(r"error: no\.\w+: there is no such file\.", done.stderr)


def test_a_name_in_the_folder_that_was_probably_meant(run, files):
    run("evaluate", "tets.npz").failed(2, "there is no such file. Did you mean 'test.npz'?")
    run("evaluate", "other.npz").failed(2, "there is no such file. Check its name and folder.")


def test_evaluate_says_that_the_rows_are_those_of_the_fit(run, files):
    run("fit", "val.npz", "-m", "ts", "-o", "cal.json").succeeded()
    seen = run("evaluate", "val.npz", "-c", "cal.json", "--draws", 20)
    assert "evaluate needs rows that the fit has not seen; found the rows of the fit." in seen.err
    assert seen.code == 0
    assert "rows of the fit" in " ".join(run("check", "cal.json", "val.npz").err.split())
    run(*EVALUATE, "-c", "cal.json").succeeded()
    run("evaluate", "val.npz", "--draws", 20).succeeded()


def test_commands_say_that_rows_are_copies(run, files, task):
    np.savez("twice.npz", logits=np.repeat(task.logits, 2, axis=0), labels=np.repeat(task.labels, 2))
    for words in (
        ("evaluate", "--draws", 20),
        ("compare", "-m", "ts"),
        ("fit", "-m", "ts", "-o", "cal.json"),
    ):
        told = run(words[0], "twice.npz", *words[1:])
        assert told.code == 0
        assert "They are copies, since labels of equal rows agree more often" in " ".join(told.err.split())


def test_a_quiet_comparison_prints_the_answer(run, files):
    words = ("compare", "val.npz", "-m", "ts")
    told = run(*words, "-q").succeeded().out
    assert told.startswith("Calibrate with ts.")
    assert run(*words).out.startswith(told)


def test_an_invalid_date_is_blamed_where_another_library_fails_first(monkeypatch):
    from temperance.cli.program import _explain

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "nan")
    message, code = _explain(ValueError("invalid literal for int() with base 10: 'nan'"))
    assert message.startswith("the environment variable SOURCE_DATE_EPOCH must be a number of seconds")
    assert code == 2


def test_a_site_that_is_off_comes_before_all_rows_together(run):
    rng = np.random.default_rng(0)
    risk, site = rng.uniform(0.02, 0.2, 6000), np.repeat(["North", "South"], [5000, 1000])
    true = np.where(site == "South", 2.2 * risk, 0.93 * risk)
    rows = zip(risk, site, rng.uniform(size=6000) < true, strict=True)
    lines = [f"{p:.6f},{where},{'died' if y else 'alive'}" for p, where, y in rows]
    Path("a.csv").write_text("\n".join(["prob_died,site,label", *lines]) + "\n")
    words = ("evaluate", "a.csv", "--by", "site", "--classes", "alive,died", "--draws", 10)
    told = run(*words, "-q").succeeded().out
    assert " ".join(told.split()).startswith("P(died) is too low in South: ")
    assert told.index("South") < told.index("All rows together:")
    assert run("evaluate", "a.csv", "--draws", 10).code == 2  # a second class has no name yet
    assert "pass the columns' names in their order" in run("evaluate", "a.csv", "--draws", 10).err


def test_a_fit_of_copies_judges_the_classifier_by_different_rows(run, task):
    np.savez("once.npz", logits=task.logits, labels=task.labels)
    np.savez("twice.npz", logits=np.repeat(task.logits, 2, axis=0), labels=np.repeat(task.labels, 2))
    once, twice = (
        run("fit", f"{name}.npz", "-m", "ts", "-o", f"{name}.json", "--json").json
        for name in ("once", "twice")
    )
    widths = [found["finding"]["gap"]["high"] - found["finding"]["gap"]["low"] for found in (once, twice)]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)


def test_a_log_loss_that_calibration_makes_finite_is_told_without_infinities(run):
    stated = np.repeat([60, 90, 100], 40)
    right = np.arange(120) % 10 < np.repeat([4, 7, 9], 40)
    lines = [f"{one},{int(hit)}" for one, hit in zip(stated, right, strict=True)]
    Path("a.csv").write_text("\n".join(["confidence,correct", *lines]) + "\n")
    assert run("fit", "a.csv", "-m", "ts", "-o", "cal.json").code == 0
    told = run("evaluate", "a.csv", "-c", "cal.json", "--draws", 10, "-q").out
    assert told.startswith("Calibration makes the log loss finite: 0.")
    assert "inf" not in told.replace("finite", "")


def test_apply_shows_the_mean_of_the_class_that_is_named(run, files):
    run("fit", "val.npz", "-m", "ts", "-o", "cal.json").succeeded()
    found = run("apply", "cal.json", "test.npz", "-o", "p.npy", "--positive", "1", "--json").json
    assert found["mean_positive"] == pytest.approx(np.load("p.npy")[:, 1].mean(), rel=1e-5)
    assert run("apply", "cal.json", "test.npz", "-o", "q.npy", "--json").json["mean_positive"] is None
