"""The same rows in another form give the same answer, or a sentence that says why not, at every entry.

A cell is an entry and a form of the rows. It gives the same numbers, or is refused if REFUSED has it, or is
not compared if ELSEWHERE says why. FAILS has the cells that do neither yet, each with a reason.
"""

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import temperance
from temperance import InputError, TemperatureScaling, metrics, monitoring, serving
from temperance.data import simulate
from temperance.decisions import evaluate_costs

pd = pytest.importorskip("pandas", reason="pandas is an extra")

TASK, NEW = (simulate(n_rows=300, n_classes=3, random_state=seed) for seed in (1, 2))
NAMES = ("ant", "bee", "cat")
COSTS = 1 - np.eye(3)  # the same in any order of the classes
PATIENTS = np.array([f"patient {row % 30}" for row in range(300)])


@dataclass(frozen=True)
class Rows:
    """Rows as a user hands them over, and the names of the classes at the fit."""

    scores: Callable[[np.ndarray], Any]
    labels: Any
    weights: Any = None
    groups: Any = None
    names: tuple[Any, ...] = NAMES
    chosen: Any = None
    """Which rows of the task these are; None if all."""

    def of(self, numbers):
        """Return logits or probabilities of the task in the form of these rows."""
        return self.scores(numbers if self.chosen is None else numbers[self.chosen])

    @property
    def beside(self):
        """The weights and groups, by the names of the arguments, if there are any."""
        given = {"sample_weight": self.weights, "groups": self.groups}
        return {name: values for name, values in given.items() if values is not None}


@cache
def fitted(names):
    return TemperatureScaling().fit(
        pd.DataFrame(TASK.logits, columns=list(names)), np.array(names)[TASK.labels]
    )


@cache
def saved(names):
    folder = Path(tempfile.mkdtemp())
    fitted(names).save(folder / "cal.json")
    return folder / "cal.json"


def probabilities(rows):
    return rows.of(fitted(NAMES).predict_proba(NEW.logits))


def fit(rows):
    cal = TemperatureScaling().fit(rows.of(NEW.logits), rows.labels, **rows.beside)
    return [cal.temperature_, *cal.class_counts_[np.argsort(cal.classes_)] / cal.class_counts_.sum()]


def predict(method):
    return lambda rows: getattr(fitted(rows.names), method)(rows.of(NEW.logits))


def served(rows):
    return serving.load(saved(rows.names)).predict_proba(rows.of(NEW.logits))


def evaluate(rows):
    found = metrics.evaluate(probabilities(rows), rows.labels, draws=2, **rows.beside)
    return [found[name].value for name in ("nll", "accuracy", "brier")]


def reliability(rows):
    found = metrics.reliability(probabilities(rows), rows.labels, **rows.beside)
    return np.nan_to_num(found.gap)


def by(rows):
    halves = np.resize(["north", "south"], len(rows.labels))
    found = metrics.evaluate(probabilities(rows), rows.labels, draws=2, by=halves, **rows.beside)
    return [found["nll"].value, found["accuracy"].value]


def compare(rows):
    found = temperance.compare(
        pd.DataFrame(TASK.logits, columns=list(rows.names)),
        np.array(rows.names)[TASK.labels],
        rows.of(NEW.logits),
        rows.labels,
        ["ts"],
        draws=2,
        **({} if rows.groups is None else {"test_groups": rows.groups}),
    )
    return found.results["ts"].scores["nll"].value


def check(rows):
    found = monitoring.check(fitted(rows.names), rows.of(NEW.logits), rows.labels, **rows.beside)
    return [found.gaps[0].gap, found.action == "keep"]


def automate(rows):
    rule = fitted(rows.names).automate(rows.of(NEW.logits), rows.labels, 0.3, **rows.beside).automation_
    return [rule.error, rule.share, rule.bound]


def automate_probabilities(rows):
    given = {} if rows.labels.dtype.kind in "iu" and rows.names is NAMES else {"positive": rows.names[1]}
    rule = temperance.automate(
        probabilities(rows), rows.labels, 0.3, **({"positive": 1} | given), **rows.beside
    )
    names = rule.class_names or rows.names
    return [rule.error, rule.share, rule.bound, str(names[rule.positive]) == str(rows.names[1])]


def decide(rows):
    return fitted(rows.names).decide(rows.of(NEW.logits), COSTS)


def costs(rows):
    weights = {} if rows.weights is None else {"sample_weight": rows.weights}
    found = evaluate_costs(probabilities(rows), rows.labels, COSTS, **weights)
    return [found.realised.value, found.expected.value]


def adapt(rows):
    return np.exp(fitted(rows.names).adapt(rows.of(NEW.logits)).log_prior_ratio_)


def torch(rows):
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")
    given = rows.of(NEW.logits)
    found = fitted(NAMES).to_torch(output="probabilities")(torch.as_tensor(np.asarray(given)))
    return found.numpy()


def onnx(rows):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is no dependency")
    given, path = np.asarray(rows.of(NEW.logits)), Path(tempfile.mkdtemp()) / "cal.onnx"
    fitted(NAMES).to_onnx(path, dtype=given.dtype.name)
    return runtime.InferenceSession(path).run(None, {"logits": given})[0]


ENTRIES = {
    "fit": fit,
    "predict": predict("predict"),
    "predict_proba": predict("predict_proba"),
    "transform": predict("transform"),
    "serving": served,
    "evaluate": evaluate,
    "reliability": reliability,
    "by": by,
    "compare": compare,
    "check": check,
    "automate": automate,
    "automate probabilities": automate_probabilities,
    "decide": decide,
    "costs": costs,
    "adapt": adapt,
    "torch": torch,
    "onnx": onnx,
}
PREDICT = {"predict", "predict_proba", "transform", "serving", "decide", "adapt"}
"""Entries that take logits alone."""
ARRAYS = {"torch", "onnx"}
"""Entries that take arrays alone."""
LABELS, TEXT = np.array(NAMES)[NEW.labels], lambda names: np.array(names)[NEW.labels]


def framed(numbers, names=NAMES):
    return pd.DataFrame(numbers, columns=list(names))


def polars(numbers):
    return pytest.importorskip("polars", reason="polars is no dependency").DataFrame(numbers, list(NAMES))


def arrow(numbers):
    library = pytest.importorskip("pyarrow", reason="pyarrow is an extra")
    return library.table(dict(zip(NAMES, numbers.T, strict=True)))


def batches(numbers):
    return [numbers[:120], numbers[120:240], numbers[240:]]


PLAIN = Rows(framed, LABELS)
TWICE = np.tile(np.arange(300), 2)
FORMS = {
    "names in another order": replace(PLAIN, scores=lambda p: framed(p)[["cat", "ant", "bee"]]),
    "whole-number names": Rows(lambda p: framed(p, (3, 5, 7)), TEXT((3, 5, 7)), names=(3, 5, 7)),
    "whole-number names out of order": Rows(lambda p: framed(p, (2, 0, 1)), TEXT((2, 0, 1)), names=(2, 0, 1)),
    "duplicate names": replace(PLAIN, scores=lambda p: framed(p, ("ant", "ant", "cat"))),
    "polars": replace(PLAIN, scores=polars),
    "pyarrow": replace(PLAIN, scores=arrow),
    "sparse": Rows(csr_matrix, NEW.labels),
    "list of batches": Rows(batches, NEW.labels),
    "float32": replace(PLAIN, scores=lambda p: framed(p.astype(np.float32))),
    "groups": replace(PLAIN, groups=PATIENTS),
    "missing ids": replace(PLAIN, groups=np.where(np.arange(300) == 7, None, PATIENTS)),
    "zero weights": replace(
        PLAIN,
        labels=np.r_[LABELS, np.roll(LABELS, 1)],
        weights=np.repeat([1.0, 0.0], 300),
        chosen=TWICE,
    ),
    "fractional weights": replace(PLAIN, weights=np.full(300, 0.25)),
    "copies of rows": replace(PLAIN, labels=np.r_[LABELS, LABELS], chosen=TWICE),
}
OF_ROWS = {"zero weights", "copies of rows"}
"""Forms with more rows: predictions are one per row, so they are not compared."""
BESIDE = {"groups", "missing ids", "zero weights", "fractional weights"}
"""Forms of what is beside the logits."""
AUTOMATE = ("automate", "automate probabilities")


def cells(form, entries, words):
    """Return the words of some cells of one form."""
    return {(form, entry): words for entry in entries}


REFUSED = {
    **cells("names in another order", [*PREDICT, "check", "automate", "compare"], "another order"),
    **cells("duplicate names", ENTRIES, "must name each class once"),
    **cells("missing ids", ENTRIES, "found rows without one in 1 row"),
    **cells("sparse", ENTRIES, r"Pass \.toarray\(\)"),
}
COPIES = "copies of rows count as independent rows"
FAILS = {**cells("copies of rows", ["check"], COPIES)}
ELSEWHERE = {
    **{(form, entry): "it takes arrays" for form in FORMS for entry in ARRAYS if form != "float32"},
    **{(form, entry): "one prediction per row" for form in OF_ROWS | BESIDE for entry in PREDICT},
    **cells("groups", AUTOMATE, "rows that are not independent promise less"),
    **cells("copies of rows", AUTOMATE, "rows that are not independent promise less"),
    **cells("groups", ["costs"], "it has no such argument"),
    **cells("missing ids", ["costs"], "it has no such argument"),
    **cells("zero weights", ["compare"], "test rows have no weights"),
    **cells("fractional weights", ["compare"], "test rows have no weights"),
}
CELLS = [
    pytest.param(
        form,
        entry,
        marks=[pytest.mark.xfail(strict=True, reason=FAILS[form, entry])] if (form, entry) in FAILS else [],
    )
    for form in FORMS
    for entry in ENTRIES
    if (form, entry) not in ELSEWHERE
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("form", "entry"), CELLS)
def test_the_same_rows_in_another_form_give_the_same_answer_or_a_sentence(form, entry):
    use, rows = ENTRIES[entry], FORMS[form]
    words = REFUSED.get((form, entry))
    if words is not None:
        with pytest.raises(InputError, match=words):
            use(rows)
        return
    expected = np.asarray(use(PLAIN), float)
    if rows.names == (2, 0, 1) and entry == "fit":
        expected = expected[[0, 2, 3, 1]]  # the classes in the order of their names
    np.testing.assert_allclose(np.asarray(use(rows), float), expected, rtol=2e-5, atol=1e-6)


COMMANDS = {
    "fit": ("fit", "{rows}", "-m", "ts", "-o", "{out}"),
    "apply": ("apply", "{cal}", "{rows}", "-o", "{out}"),
    "evaluate": ("evaluate", "{rows}", "-c", "{cal}", "--draws", "2", "--positive", "{positive}"),
    "compare": ("compare", "{rows}", "-m", "ts"),
    "check": ("check", "{cal}", "{rows}"),
    "automate": ("automate", "{cal}", "{rows}", "--max-error", "0.3", "--positive", "{positive}"),
    "adapt": ("adapt", "{cal}", "{rows}", "-o", "{out}"),
}
ANSWERS = {
    "evaluate": lambda found: [found["finding"]["mean"], found["finding"]["rate"]],
    "compare": lambda found: [found["after"]["nll"], found["before"]["nll"]],
    "check": lambda found: found["gaps"][0]["gap"],
    "automate": lambda found: [found["error"], found["share"], found["bound"]],
}
IN_FILES = ["names in another order", "whole-number names", "whole-number names out of order", "groups"]


def written(path, rows):
    """Write rows as a table, or as JSON Lines with the scores by class."""
    table, beside = rows.of(NEW.logits), {"label": rows.labels}
    if rows.groups is not None:
        beside["groups"] = rows.groups
    if path.suffix == ".csv":
        table.add_prefix("logit_").assign(**beside).to_csv(path, index=False)
        return path
    records = [
        {"logits": {str(name): score for name, score in scores.items()}}
        | {key: str(values[row]) for key, values in beside.items()}
        for row, scores in enumerate(table.to_dict("records"))
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    return path


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("form", IN_FILES)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_same_rows_in_another_file_give_the_same_answer(command, form, suffix, tmp_path, run_command):
    if form == "groups" and command in ("automate", "compare"):
        pytest.skip("groups change the promise, and the folds")

    def answer(rows, name):
        out = tmp_path / (f"{name}.npy" if command == "apply" else f"{name}.json")
        suits = {"rows": written(tmp_path / f"{name}{suffix}", rows), "cal": saved(rows.names), "out": out}
        words = [word.format(**suits, positive=rows.names[1]) for word in COMMANDS[command]]
        code, printed, error = run_command(*words, "--json")
        assert code == 0, error
        if command == "apply":
            return np.load(out)
        if command == "fit":
            return temperance.load(out).temperature_
        if command == "adapt":
            return np.exp(temperance.load(out).log_prior_ratio_)
        return ANSWERS[command](json.loads(printed))

    expected = np.asarray(answer(PLAIN, "plain"), float)
    np.testing.assert_allclose(np.asarray(answer(FORMS[form], "other"), float), expected, rtol=2e-5)
