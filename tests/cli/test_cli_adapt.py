"""`temperance adapt`: what it prints, what it writes, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest
from running import plain_and_narrow


def test_the_table_has_the_largest_changes_first(run, cal):
    done = run("adapt", "cal.json", "--priors", "0.1,0.7,0.1,0.1", "-o", "new.json").succeeded()
    plain_and_narrow(done.out)
    header, first, *_ = [line.split() for line in done.out.splitlines() if "0." in line or "at fit" in line]
    assert header == ["class", "at", "fit", "now", "\u00b1"]
    assert (first[0], first[2]) == ("1", "0.7000")
    assert "Saved to new.json" in done.out
    told = run("adapt", "cal.json", "--priors", "0.1,0.7,0.1,0.1", "-o", "other.json", "--json").json
    assert (told["file"], {row["error"] for row in told["classes"]}) == (None, {None})


def test_rows_are_adapted_to_as_in_the_library_and_labels_ignored(run, cal, judged):
    told = run("adapt", "cal.json", "test.npz", "-o", "new.json", "--json").json
    wanted = cal.adapt(judged.logits)
    assert told["labels_ignored"]
    assert told["file"] == {"path": "test.npz", "key": "logits", "rows": 200}
    by_column = {row["column"]: row for row in told["classes"]}
    for k, error in enumerate(wanted.frequency_errors_):
        ratio = np.log(by_column[k]["now"] / by_column[k]["at_fit"])
        assert ratio == pytest.approx(wanted.log_prior_ratio_[k])
        assert by_column[k]["error"] == pytest.approx(error)
    said = run("adapt", "cal.json", "test.npz", "-o", "other.json").succeeded().out
    assert "The labels in test.npz were not used." in said


def test_a_warning_is_reported_in_both_outputs(run, cal, judged):
    np.savez("few.npz", logits=judged.logits[:3])
    done = run("adapt", "cal.json", "few.npz", "-o", "new.json", "--json")
    (told,) = done.json["warnings"]
    assert done.err == f"warning: {told}\n"
    assert told.startswith("3 rows do not determine the frequency of")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "adapt takes ROWS or --priors; found neither"),
        (("test.npz", "--priors", "0.1,0.7,0.1,0.1"), "found both"),
        (("--priors", "0.1,much"), "must be numbers separated by commas"),
        (("--priors", "0.5,0.5"), "priors must be 4 class frequencies"),
    ],
)
def test_unusable_input_is_one_sentence(words, told, run, cal):
    run("adapt", "cal.json", *words, "-o", "new.json").failed(2, told)
    assert not Path("new.json").exists()


def test_names_of_classes_cannot_control_the_terminal(run, files):
    names = "\x1b[31mred,\x07bell,c,d"
    run("fit", "val.npz", "-m", "ts", "--classes", names, "-o", "named.json").succeeded()
    done = run("adapt", "named.json", "--priors", "0.1,0.7,0.1,0.1", "-o", "new.json").succeeded()
    plain_and_narrow(done.out)
    assert "\\x1b[31mred" in done.out
