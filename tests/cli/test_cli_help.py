"""Help, with examples that run; completion in the shell; the version."""

import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx_models import linear_classifier
from test_cli_json import small_demo  # noqa: F401  for the example of the demo

from temperance import CALIBRATORS
from temperance.cli.program import cli

COMMANDS = [
    *("demo", "compare", "methods", "fit", "show", "apply", "evaluate", "automate", "check", "adapt"),
    *("export", "study", "completion"),
]
STUDY = [("study", name) for name in cli.commands["study"].commands]


def examples(*words):
    """Return the example commands in the help of a command, without what is said beside them."""
    text = cli_help(*words)
    block = re.search(r"\n  Examples:\n((?:    .*\n)+)", text)
    assert block, text
    return [re.split(r" {3,}", line.strip())[0] for line in block[1].splitlines()]


def cli_help(*words):
    from click.testing import CliRunner

    done = CliRunner().invoke(cli, [*words, "--help"], prog_name="temperance")
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS), *STUDY], ids=" ".join)
def test_help_has_examples_and_80_columns(words, run):
    done = run(*words, "--help").succeeded()
    assert done.out == run(*words, "-h").out
    assert done.out.startswith(" ".join(["Usage: temperance", *words]))
    assert max(map(len, done.out.splitlines())) <= 80
    assert len(examples(*words)) >= 2


def test_without_a_command_the_help_is_printed(run):
    assert run().succeeded().out == run("--help").out


def test_help_lists_the_commands_in_the_order_of_their_use(run):
    lines = run("--help").out.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in lines] == COMMANDS == list(cli.commands)


# Those of a study are run by its own tests.
EXAMPLES = [line for name in COMMANDS if name != "study" for line in examples(name)]
EXAMPLES += [line for line in examples() if line not in EXAMPLES and " study " not in line]


@pytest.mark.parametrize("line", EXAMPLES)
@pytest.mark.usefixtures("files", "calibrator", "small_demo")
def test_every_example_runs(line, run, task, judged, monkeypatch):
    np.savez("new.npz", logits=judged.logits)
    np.savez("week42.npz", logits=judged.logits, labels=judged.labels)
    weekly = [
        f"{','.join(map(str, row))},{y},p{i % 12},{'ab'[i % 2]}"
        for i, (row, y) in enumerate(zip(judged.logits, judged.labels, strict=True))
    ]
    Path("week42.csv").write_text(
        "\n".join(["logit_0,logit_1,logit_2,logit_3,label,patient,hospital", *weekly])
    )
    np.savez(
        "pixels.npz", logits=task.logits.reshape(5, 60, 4).swapaxes(1, 2), labels=task.labels.reshape(5, 60)
    )
    np.savez("probs.npz", probs=np.full((4, 2), 0.5), labels=[0, 1, 1, 0])
    Path("new.csv").write_text("logit_0,logit_1,logit_2,logit_3\n1,2,3,4\n4,2,3,1\n")
    visits = [f"{'north' if i % 2 else 'south'},p{i % 12},0.{i % 9},0,{i % 7 % 2}" for i in range(60)]
    Path("visits.csv").write_text("\n".join(["hospital,patient,logit_0,logit_1,label", *visits]))
    for name in ("val", "logits"):
        np.save(f"{name}.npy", task.logits)
    np.save("labels.npy", task.labels)
    np.savetxt("costs.csv", 1 - np.eye(4), delimiter=",")
    linear_classifier("classifier.onnx", np.eye(4))
    first, *_ = re.split(r" (?:\||>>?) ", line)
    program, *words = shlex.split(first)
    assert program == "temperance"
    if "-o" in words or words[0] == "export":
        words.append("--force")
    if words[0] == "automate" and "-o" in words:
        words += ["--max-error", "0.4"]  # these rows support no rule with few errors
    if words[0] == "compare" and "-m" not in words:
        words += ["-m", "ts"]
    run(*words).succeeded()


# ---- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell, run):
    script = run("completion", shell).succeeded().out
    assert f"_TEMPERANCE_COMPLETE={shell}_complete" in script
    assert re.search(r"complete .*temperance|compdef \S+ temperance", script)


def test_bash_accepts_the_script(run):
    script = run("completion", "bash").out
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


COMPLETIONS = {
    "methods": (("fit", "val.npz", "-m", ""), list(CALIBRATORS)),
    "some methods": (("fit", "val.npz", "--method", "h"), ["hts", "hnlts", "hts-sgd", "hnlts-sgd"]),
    "methods after a comma": (("compare", "val.npz", "-m", "ts,e"), ["ts,ets", "ts,ets-brier"]),
    "methods after two commas": (("compare", "val.npz", "-m", "ts,hts,bt"), ["ts,hts,bts"]),
    "commands": (("com",), ["compare", "completion"]),
    "options": (("evaluate", "test.npz", "--dr"), ["--draws"]),
    "choices": (("evaluate", "test.npz", "--input", ""), ["logits", "probs"]),
    "shells": (("completion", "z"), ["zsh"]),
    "methods of a study": (("study", "run", "tasks", "-m", "ts,hts"), ["ts,hts", "ts,hts-sgd"]),
}


@pytest.mark.parametrize(("words", "wanted"), COMPLETIONS.values(), ids=COMPLETIONS.keys())
def test_tab_completes(words, wanted, run, monkeypatch):
    monkeypatch.setenv("_TEMPERANCE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["temperance", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    lines = run().succeeded().out.splitlines()
    assert sorted(line.split(",", 1) for line in lines) == sorted(["plain", word] for word in wanted)
