"""A pytest plugin that tries mutants on a suite that is collected once.

For each mutant the process forks. The child gives the changed function its new code (whoever imported the
function sees it), runs the tests that are given, and ends at the first failure. Code that runs at import
cannot be changed that way: a mutant of it needs a new process, in which `ChangedModule` imports it.
"""

import ast
import gc
import importlib
import importlib.abc
import importlib.util
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from operators import Mutant, mutants_of
from sample import ROOT, SOURCE

KILLED, TIMED_OUT, SURVIVED, BROKEN = "killed", "timed out", "survived", "broke off"
FOLDER = ROOT / "build" / "mutants"
QUIET = [
    "-qqq",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-p",
    "no:cov",
    f"--basetemp={FOLDER / 'temporary'}",
]
# A test may take some times longer than without the mutant, and longer still the first time that it runs.
PATIENCE, SECONDS = 10, 15
WALL_SECONDS = 3600  # for a test that waits
NOT_RUN = 99  # the exit code of a child that could not do its work


@dataclass(frozen=True)
class Trial:
    """A mutant, and the tests to run with their usual seconds, in this order."""

    mutant: Mutant
    tests: list[tuple[str, float]]


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant, and the test that noticed it."""

    result: str
    test: str | None = None


Report = Callable[[Trial, Outcome], None]
_Item = tuple[pytest.Item, float]


class Reproducible:
    """The hook that makes Hypothesis draw the same cases each time, and store none."""

    def pytest_configure(self) -> None:
        """Choose the settings once pytest has loaded the plugin of Hypothesis."""
        from hypothesis import settings

        settings.register_profile("mutants", derandomize=True, database=None, deadline=None)
        settings.load_profile("mutants")


class Forks(Reproducible):
    """The hooks: collect all tests, then run some of them for each mutant."""

    def __init__(self, trials: Sequence[Trial], modules: Sequence[str], report: Report) -> None:
        self.trials, self.modules, self.report = trials, modules, report
        self._sound: dict[str, bool] = {}
        fastest = sorted({test for trial in trials for test in trial.tests}, key=lambda test: test[1])
        # One test of each file: what it imports and compiles, the children need not.
        self.first = list({name.partition("::")[0]: name for name, _ in reversed(fastest)}.values())

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try all mutants, in place of running the suite."""
        for module in self.modules:
            importlib.import_module(module)
        items = {item.nodeid: item for item in session.items}
        _warm_up([items[name] for name in self.first if name in items])
        functions = _functions()
        gc.freeze()  # so that the children copy less
        for trial in self.trials:
            found = functions.get(
                (str(trial.mutant.path), trial.mutant.function, trial.mutant.first_line), []
            )
            self.report(trial, self._try(trial, found, items))
        return True

    def _try(self, trial: Trial, found: list[FunctionType], items: dict[str, pytest.Item]) -> Outcome:
        """Run the tests on the mutant, again without a test that fails without the mutant, too."""
        code = code_of(trial.mutant)
        known = [test for test in trial.tests if test[0] in items and self._sound.get(test[0], True)]
        if found and all(len(one.__code__.co_freevars) == len(code.co_freevars) for one in found):
            chosen = [(items[name], seconds) for name, seconds in known]
            outcome = _in_child(partial(_run, found, code, chosen))
        else:
            outcome = try_in_new_process(Trial(trial.mutant, known))
        if outcome.result != KILLED or outcome.test is None or self._is_sound(items[outcome.test]):
            return outcome
        return self._try(trial, found, items)

    def _is_sound(self, item: pytest.Item) -> bool:
        """Whether a test that noticed a mutant passes without one."""
        if item.nodeid not in self._sound:
            outcome = _in_child(partial(_run, [], None, [(item, float(WALL_SECONDS))]))
            self._sound[item.nodeid] = outcome.result == SURVIVED
        return self._sound[item.nodeid]


def _warm_up(items: list[pytest.Item]) -> None:
    """Run some tests, and forget what the library cached. A doctest runs but once."""
    items = [item for item in items if isinstance(item, pytest.Function)]
    for i, item in enumerate(items):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=items[i + 1] if i + 1 < len(items) else None)
    for cached in gc.get_objects():
        if type(cached) is type(lru_cache(len)) and cached.__module__.startswith("temperance"):
            cached.cache_clear()


def code_of(mutant: Mutant) -> CodeType:
    """Return the code of the changed function."""
    waiting = [compile(mutant.tree(), str(mutant.path), "exec", dont_inherit=True)]
    while waiting:
        code = waiting.pop()
        if (code.co_qualname, code.co_firstlineno) == (mutant.function, mutant.first_line):
            return code
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    raise LookupError(f"{mutant.id} is in no function")


def _functions() -> dict[tuple[str, str, int], list[FunctionType]]:
    """Return all functions there are, by file, name and first line."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for function in gc.get_objects():
        if type(function) is FunctionType:  # some objects answer isinstance with a warning
            code = function.__code__
            found.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(function)
    return found


def _in_child(work: Callable[[int], None]) -> Outcome:
    """Fork, let the child work, and return how it ended and what it wrote."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        _work_and_end(work, send)
    os.close(send)
    with os.fdopen(receive) as pipe:
        test = pipe.read() or None
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        timed_out = os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM)
        return Outcome(TIMED_OUT if timed_out else KILLED, test)
    if os.WEXITSTATUS(status) == NOT_RUN:
        return Outcome(BROKEN, test)
    return Outcome(KILLED if os.WEXITSTATUS(status) else SURVIVED, test)


def _work_and_end(work: Callable[[int], None], output: int) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    try:
        work(output)
        os._exit(0)
    except BaseException:
        os.write(output, traceback.format_exc().encode())
        os._exit(NOT_RUN)


class FirstFailure:
    """The hook that ends the process at the first failure, and writes the name of the test."""

    def __init__(self, output: int) -> None:
        self.output = output

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Name the test that failed."""
        if report.failed:
            os.write(self.output, report.nodeid.encode())
            os._exit(1)


def _run(functions: list[FunctionType], code: CodeType | None, items: list[_Item], output: int) -> None:
    for function in functions:
        function.__code__ = code
    signal.alarm(WALL_SECONDS)
    for i, (item, seconds) in enumerate(items):
        if i == 0:
            item.config.pluginmanager.register(FirstFailure(output))
            reporter = item.config.pluginmanager.get_plugin("terminalreporter")
            reporter._tw._file = Path(os.devnull).open("w")  # noqa: SIM115  in place of its own copy
        following = items[i + 1][0] if i + 1 < len(items) else None
        signal.setitimer(signal.ITIMER_PROF, SECONDS + PATIENCE * seconds)
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)


def try_in_new_process(trial: Trial) -> Outcome:
    """Run the tests in a process that imports the changed module."""
    return _in_child(partial(_start_anew, trial)) if trial.tests else Outcome(SURVIVED)


def _start_anew(trial: Trial, output: int) -> None:
    os.set_inheritable(output, True)
    signal.alarm(WALL_SECONDS)
    signal.setitimer(signal.ITIMER_PROF, SECONDS + PATIENCE * sum(seconds for _, seconds in trial.tests))
    # For a doctest, pytest imports its module from the file again, without the change.
    tests = [name for name, _ in trial.tests if not name.startswith("src/")]
    os.execv(sys.executable, [sys.executable, __file__, str(output), trial.mutant.id, *tests])


class ChangedModule(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """What imports one module from a changed syntax tree, and all others as ever."""

    def __init__(self, path: Path, tree: ast.Module, name: str) -> None:
        self.path, self.tree, self.name = path, tree, name

    def find_spec(self, name, path=None, target=None):
        """Find the one module."""
        if name == self.name:
            return importlib.util.spec_from_file_location(name, self.path, loader=self)
        return None

    def get_filename(self, name: str) -> str:
        """Return the file of the module."""
        return str(self.path)

    def get_data(self, path: str) -> bytes:
        """Return the text as it is: that of doctests."""
        return Path(path).read_bytes()

    def get_code(self, name: str) -> CodeType:
        """Return the code of the changed module; none is stored."""
        return compile(self.tree, str(self.path), "exec", dont_inherit=True)


def main(output: int, name: str, tests: list[str]) -> None:
    """Run tests with one mutant in place from the start."""
    module = name.split(":")[0]
    path = SOURCE / Path(*module.split(".")).with_suffix(".py")
    path = path if path.exists() else path.with_suffix("") / "__init__.py"
    (mutant,) = (one for one in mutants_of(path, SOURCE) if one.id == name)
    sys.meta_path.insert(0, ChangedModule(path, mutant.tree(), module.removesuffix(".__init__")))
    code = pytest.main([*QUIET, *tests], plugins=[Reproducible(), FirstFailure(output)])
    sys.exit(code if code <= pytest.ExitCode.INTERRUPTED else NOT_RUN)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
