"""The mutants themselves: what is changed, that names do not depend on lines, and that the changes run."""

import ast
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).with_name("mutants")))

from forking import KILLED, SURVIVED, Outcome, Trial, code_of
from operators import mutants_of
from runner import Results, faults, figures

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
    assert found["Holder.keep.twice:sign or not: -x -> x"].function == "Holder.keep"


def test_every_mutant_is_another_module_that_compiles(module):
    plain = ast.unparse(ast.parse(SOURCE))
    for mutant in mutants_of(module, module.parents[1]):
        assert ast.unparse(mutant.tree()) != plain, mutant.id
        compile(mutant.tree(), "part", "exec")


def test_the_code_of_a_mutant_takes_the_place_of_the_function(module):
    names = {}
    exec(compile(SOURCE, str(module), "exec"), names)
    mutant = changes(module)["clipped:opposite: max -> min"]
    before = names["clipped"](3.0)
    names["clipped"].__code__ = code_of(mutant)
    assert (before, names["clipped"](3.0)) == ((-3.0, True), (3.0, True))


def test_names_stay_where_lines_move(module):
    before = set(changes(module))
    module.write_text(SOURCE.replace("LIMIT = 10.0", "# a line more\n\nLIMIT = 10.0"))
    assert set(changes(module)) == before


def test_a_survivor_needs_a_reason_and_a_reason_a_survivor(module, tmp_path):
    results = Results(tmp_path / "results.jsonl", no_tests)
    first, second, third = mutants_of(module, module.parents[1])[:3]
    results.add(Trial(first, []), Outcome(SURVIVED))
    results.add(Trial(second, []), Outcome(KILLED, "tests/test_errors.py::test_one"))
    sample = {"part": [first, second, third]}
    found = figures(sample, results, {first.id: "why"})
    counts = {"sampled": 3, "killed": 1, "survived_explained": 1, "survived_unexplained": 0, "untried": 1}
    assert counts.items() <= found.items()
    assert found["killed in"] == {"part": "1 of 3"}
    assert faults(sample, results, {}) == [f"survived, and is not explained: {first.id}"]
    assert faults(sample, results, {first.id: "why"}) == []
    reasons = {first.id: "why", second.id: "why", "gone": "why"}
    assert [fault.split(":")[0] for fault in faults(sample, results, reasons)] == [
        "is explained, but killed",
        "is explained, but not in the sample",
    ]


def test_a_result_is_kept_until_the_code_or_its_tests_change(module, tmp_path):
    mutant = mutants_of(module, module.parents[1])[0]
    Results(tmp_path / "results.jsonl", no_tests).add(Trial(mutant, []), Outcome(SURVIVED))
    assert Results(tmp_path / "results.jsonl", no_tests).outcome(mutant) == SURVIVED
    assert Results(tmp_path / "results.jsonl", one_test).outcome(mutant) is None
    line = json.loads((tmp_path / "results.jsonl").read_text())
    assert line["id"] == mutant.id
    module.write_text(SOURCE + "\n")
    assert Results(tmp_path / "results.jsonl", no_tests).outcome(mutant) is None
