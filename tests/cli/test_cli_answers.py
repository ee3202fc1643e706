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
    what, before, saved, next_command = (
        run("fit", "val.npz", "-m", "ts", "-o", "cal.json").succeeded().out.splitlines()
    )
    assert what == "Fitted ts to 300 rows of logits, 4 classes: val.npz"
    probs = np.exp(task.logits) / np.exp(task.logits).sum(axis=1, keepdims=True)
    confidence, accuracy = probs.max(axis=1).mean(), (probs.argmax(axis=1) == task.labels).mean()
    numbers = f"mean confidence {percent(confidence)}, accuracy {percent(accuracy)}"
    assert before == f"Before: overconfident by {100 * (confidence - accuracy):.1f} points; {numbers}."
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


def test_a_gap_within_the_noise_is_not_given_a_sign(run):
    logits = np.log(np.tile([0.75, 0.25], (40, 1)))
    np.savez("val.npz", logits=logits, labels=np.arange(40) % 4 == 0)
    assert "Before: no clear gap; mean confidence 75.0%, accuracy 75.0%." in (
        run("fit", "val.npz", "-m", "ts", "-o", "cal.json").out.splitlines()
    )


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


@pytest.mark.parametrize("seed", [*range(5), 10])  # 10: Cox's test alone finds a slope of chance
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_sentence_never_contradicts_the_table(seed, share, run):
    """Calibrated on average, and within groups that are wrong by `share` in both directions."""
    rng = np.random.default_rng(seed)
    stated = rng.choice([0.6, 0.9], size=800)
    true = np.where(stated == 0.6, stated + share, stated - share)
    np.savez("a.npz", probs=np.stack([stated, 1 - stated], axis=1), labels=rng.uniform(size=800) > true)
    told = run("evaluate", "a.npz", "--draws", 50, "--json").json
    sentence = run("evaluate", "a.npz", "--draws", 50, "-q").out
    gap, ece = told["metrics"]["overconfidence"], told["metrics"]["ece"]
    p_value = min(test["p_value"] for test in told["tests"].values())
    if sentence.startswith("No miscalibration"):
        assert (gap["low"] <= 0 <= gap["high"], ece["low"]) == (True, 0.0)
        assert p_value > 0.05 / 4
        assert told["tests"]["cox"]["p_value"] > 0.05  # compare would say "still detectably miscalibrated"
        assert share == 0
    elif sentence.startswith("Miscalibrated, but not on average"):
        assert gap["low"] <= 0 <= gap["high"]
        assert ece["low"] > 0 or p_value < 0.05 / 4 or told["tests"]["cox"]["p_value"] < 0.05
    else:
        assert sentence.startswith("Overconfident" if gap["low"] > 0 else "Underconfident")
        assert gap["low"] > 0 or gap["high"] < 0


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
            assert not re.search(rf"^ *{spelled}\b", options, re.MULTILINE)
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
