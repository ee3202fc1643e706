"""The mutants themselves: what is changed, that names do not depend on lines, and that the changes run."""

import ast
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).with_name("mutants")))

import runner
from operators import mutants_of
from runner import KILLED, SURVIVED, TIMED_OUT, Outcome, Results, faults, figures, try_mutant
from sample import all_mutants
from suite_map import SuiteMap

SOURCE = '''"""Text."""

LIMIT = 10.0


def clipped(x: float, low: int = 0) -> tuple[float, bool]:
    """Text."""
    if not x or x >= LIMIT:
        raise ValueError("too large")
    x -= max(low, 2 * x)
    return x, True


class Holder:
    """Text."""

    def keep(self, x):
        def twice():
            return -x

        self.kept = twice()
        self.kept.sort()
'''
KINDS = "arithmetic, and or, comparison, condition, constant, deleted, opposite, return, sign or not"


@pytest.fixture
def module(tmp_path):
    (tmp_path / "package").mkdir()
    path = tmp_path / "package" / "part.py"
    path.write_text(SOURCE)
    return path


def no_tests(mutant):
    return []


def one_test(mutant):
    return [("tests/test_errors.py::test_one", 0.1)]


def changes(path):
    return {one.id.removeprefix("package.part:"): one for one in mutants_of(path, path.parents[1])}


def test_each_kind_of_change_is_made_where_it_can_be(module):
    found = changes(module)
    assert {
        "<module>:constant: 10.0 -> 11.0",
        "<module>:constant: 0 -> 1",
        "clipped:and or: not x or x >= LIMIT -> not x and x >= LIMIT",
        "clipped:comparison: x >= LIMIT -> x > LIMIT",
        "clipped:sign or not: not x -> x",
        "clipped:deleted: raise ValueError('too large') -> pass",
        "clipped:arithmetic: x -= max(low, 2 * x) -> x += max(low, 2 * x)",
        "clipped:arithmetic: 2 * x -> 2 / x",
        "clipped:opposite: max -> min",
        "clipped:return: return (x, True) -> return (True, x)",
        "clipped:constant: True -> False",
        "Holder.keep.twice:sign or not: -x -> x",
        "Holder.keep:deleted: self.kept = twice() -> pass",
    } <= set(found)
    assert {name.split(":")[1] for name in found} == set(KINDS.split(", "))
    assert not any("Text" in name for name in found)
    assert {name for name, one in found.items() if one.at_import} == {
        "<module>:constant: 10.0 -> 11.0",
        "<module>:constant: 0 -> 1",
    }


def test_every_mutant_is_another_module_that_compiles(module):
    plain = ast.unparse(ast.parse(SOURCE))
    for mutant in mutants_of(module, module.parents[1]):
        assert mutant.source() != plain, mutant.id
        compile(mutant.source(), "part", "exec")


def test_a_mutant_is_killed_by_a_test_that_fails_and_leaves_the_copy_as_it_was(module, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    copy = runner.copy_project(tmp_path / "build" / "copy")
    (copy / "package" / "test_part.py").write_text(
        "from part import clipped\n\ndef test_part():\n    assert clipped(3.0) == (-3.0, True)\n"
    )
    tests, found = [("package/test_part.py::test_part", 0.1)], changes(module)
    killed = try_mutant(found["clipped:opposite: max -> min"], tests, copy)
    assert killed == Outcome(KILLED, "package/test_part.py::test_part")
    survived = try_mutant(found["clipped:comparison: x >= LIMIT -> x > LIMIT"], tests, copy)
    assert survived == Outcome(SURVIVED)
    assert (copy / "package" / "part.py").read_text() == SOURCE


def test_the_tests_in_the_folder_of_a_module_come_before_faster_ones(tmp_path, monkeypatch):
    mutant = next(one for one in all_mutants("calibrator_file") if not one.at_import)
    own, other = "tests/calibrator_file/test_reading.py::test_one", "tests/cli/test_cli_fit.py::test_one"
    suite = SuiteMap(tmp_path, tmp_path, [])
    monkeypatch.setattr(suite, "_seconds", {own: 2.0, other: 1.0})
    monkeypatch.setattr(suite, "_contexts", {mutant.path: {mutant.lines[0]: {own, other}}})
    assert suite.tests_of(mutant, budget=9.0) == [(own, 2.0), (other, 1.0)]
    assert suite.tests_of(mutant, budget=2.5) == [(own, 2.0)]


def test_names_stay_where_lines_move(module):
    before = set(changes(module))
    module.write_text(SOURCE.replace("LIMIT = 10.0", "# a line more\n\nLIMIT = 10.0"))
    assert set(changes(module)) == before


def test_a_survivor_needs_a_reason_and_a_reason_a_survivor(module):
    first, second, third = mutants_of(module, module.parents[1])[:3]
    sample = {"part": [first, second], "other": [third]}
    outcomes = {first.id: SURVIVED, second.id: KILLED, third.id: TIMED_OUT}
    found = figures(sample, outcomes, {first.id: "why"})
    counts = {"sampled": 3, "killed": 1, "timed_out": 1, "survived_explained": 1, "survived_unexplained": 0}
    assert counts.items() <= found.items()
    assert found["killed in"] == {"part": "1 of 2", "other": "0 of 1"}
    existing = {*outcomes, "not drawn"}
    assert faults(outcomes, {}, existing) == [f"survived, and is not explained: {first.id}"]
    assert faults(outcomes, {first.id: "why", "not drawn": "why"}, existing) == []
    assert faults(outcomes, {first.id: "why", second.id: "why", "gone": "why"}, existing) == [
        f"is explained, but killed: {second.id}",
        "is explained, but is no mutant: gone",
    ]


def test_a_result_is_kept_until_the_code_or_its_tests_change(module, tmp_path):
    mutant = mutants_of(module, module.parents[1])[0]
    Results(tmp_path / "results.jsonl", no_tests).add(mutant, Outcome(SURVIVED))
    assert Results(tmp_path / "results.jsonl", no_tests).outcome(mutant) == SURVIVED
    assert Results(tmp_path / "results.jsonl", one_test).outcome(mutant) is None
    line = json.loads((tmp_path / "results.jsonl").read_text())
    assert line["id"] == mutant.id
    module.write_text(SOURCE + "\n")
    assert Results(tmp_path / "results.jsonl", no_tests).outcome(mutant) is None
