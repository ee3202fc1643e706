"""How to use the recommended method, as commands to paste: a block for the shell and one for Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from temperance.calibrators import UNCALIBRATED, Calibrator
from temperance.comparison import Comparison
from temperance.report.markup import element

_PLAIN = (str, int, float, bool, tuple, type(None))  # types of options that can be written as code
_EXPORT = (
    'calibrator.to_onnx("cal.onnx")  # for onnxruntime',
    "module = calibrator.to_torch()  # for PyTorch",
)


@dataclass(frozen=True)
class Snippets:
    """What is known about the files and names behind a comparison.

    Attributes
    ----------
    shell : mapping from name of a method to sequence of str
        Commands that fit the method, save it as cal.json and use it; none if there are no files.
    export : sequence of str
        Commands that write cal.json as a model that other programs run.
    setup : sequence of str
        Lines of Python that define `val_logits` and `val_labels`.
    """

    shell: Mapping[str, Sequence[str]] = field(default_factory=dict)
    export: Sequence[str] = ()
    setup: Sequence[str] = ()


def snippet_blocks(comparison: Comparison, snippets: Snippets) -> Markup:
    """Return the blocks of commands; nothing if no calibration is recommended."""
    verdict = comparison.verdict
    if verdict.method == UNCALIBRATED:
        return Markup("")
    shell = snippets.shell.get(verdict.method)
    blocks = [_block("Shell", shell)] if shell else []
    blocks.append(_block("Python", python_lines(comparison, snippets, verdict.method)))
    if isinstance(comparison.calibrator, Calibrator):
        blocks.append(_block("Export to ONNX or PyTorch", snippets.export or _EXPORT))
    other = verdict.alternative
    if other is not None and other != UNCALIBRATED:
        lines = snippets.shell.get(other) or python_lines(comparison, snippets, other)
        blocks.append(_block(f"If all predictions must stay the same: {other}", lines))
    again = "Fit again when the classifier or the source of its rows changes."
    return element("div", *blocks, class_="commands") + element("p", again)


def _block(title: str, lines: Sequence[str]) -> Markup:
    code = element("pre", element("code", "\n".join(lines)), tabindex="0")
    copy = element("button", "Copy", type="button", class_="copy", aria_label=f"Copy {title}")
    return element("div", element("h3", title), copy, code, class_="command")


def python_lines(comparison: Comparison, snippets: Snippets, method: str) -> list[str]:
    """Return the lines that fit, save and use a method; if the shell commands fit it, they only use it."""
    calibrator = comparison.results[method].calibrator
    reuse = f"calibrator = comparison.results[{method!r}].calibrator  # fitted to all validation rows"
    if not isinstance(calibrator, Calibrator):  # a third-party method, by its name if Python can import it
        found = re.fullmatch(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)", method)
        fit = [reuse]
        if found is not None:
            module, kind = found.groups()
            fit = [f"from {module} import {kind}", "", f"calibrator = {kind}().fit(val_logits, val_labels)"]
        return [*fit, "probs = calibrator.predict_proba(logits)"]
    lines = ["import temperance", ""]
    if method not in snippets.shell:
        fit = _fit(comparison, calibrator) or [reuse]
        lines += [*snippets.setup, *fit, 'calibrator.save("cal.json")', ""]
    rows = "classifier_probs, from_probs=True" if calibrator.model_.of_probabilities else "logits"
    return [
        *lines,
        "# In the service, which needs only NumPy:",
        'predictor = temperance.serving.load("cal.json")',
        f"probs = predictor.predict_proba({rows})",
    ]


def _fit(comparison: Comparison, calibrator: Calibrator) -> list[str]:
    """Return the lines that repeat the comparison's fit; none if an option is not a plain value."""
    if not all(type(value) in _PLAIN for value in calibrator.get_params().values()):
        return []
    arguments = ["val_logits", "val_labels"]
    if calibrator.model_.of_probabilities:
        arguments = ["val_probs", "val_labels", "from_probs=True"]
    if comparison.fitted.weights is not None:
        arguments.append("sample_weight=val_weights")
    if comparison.class_names is not None:
        names = list(comparison.class_names)
        # More names would not fit on a line.
        arguments.append(f"classes={names}" if len(names) <= 10 else "classes=class_names")
    if (positive := comparison.fitted.positive) is not None:
        found = comparison.class_names
        arguments.append(f"positive={positive if found is None else found[positive]!r}")
    if comparison.fitted.positions:
        arguments.append("positions=True")
    return [
        f"calibrator = temperance.{calibrator!r}",
        f"calibrator.fit({', '.join(arguments)})  # the rows given to compare",
    ]
