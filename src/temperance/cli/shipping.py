"""The commands that ship the recommended method, with the files and options of the comparison."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from temperance.cli.inputs import RowOptions
from temperance.cli.output import on_one_line

if TYPE_CHECKING:
    from temperance.report.snippets import Snippets


@dataclass(frozen=True)
class ComparedFiles:
    """The files of a comparison as the user named them, and how they are read."""

    val: Path
    test: Path | None
    options: RowOptions
    test_labels: Path | None
    classes: str | None
    """As the user wrote them: names separated by commas, or @FILE."""
    from_probs: bool

    def shipping(self, method: str) -> Snippets:
        """Return the commands for a method; a method from outside cannot be fitted by a command."""
        from temperance.calibrators import CALIBRATORS
        from temperance.report.snippets import Snippets

        if method not in CALIBRATORS:
            return Snippets(from_probs=self.from_probs)
        return Snippets(self._commands(method), self._export(), self.from_probs)

    def _commands(self, method: str) -> list[str]:
        new = self.test or Path(f"new{self.val.suffix}")
        return [
            "# Fit to the validation rows:",
            _command("fit", self.val, "-m", method, "-o", "cal.json", *self._options(self.options.labels)),
            "# Calibrate the test rows, or others:"
            if self.test
            else f"# Calibrate the rows of a file, {new}:",
            _command("apply", "cal.json", new, "-o", "probs.npz", *self._options(self.test_labels)),
        ]

    def _export(self) -> list[str]:
        takes = ["# They take the logarithms of the probabilities."] if self.from_probs else []
        return [*takes, *(_command("export", "cal.json", model) for model in ("cal.onnx", "cal.pt2"))]

    def _options(self, labels: Path | None) -> list[object]:
        """Return the options that a file of rows is read with."""
        table = self.options.table
        given = {
            "--input": self.options.kind,
            "--labels": labels,
            "--label-column": table.label_column,
            "--id-column": table.id_column,
            "--classes": self.classes,
        }
        words: Sequence[object] = [
            word for option, value in given.items() if value is not None for word in (option, value)
        ]
        return [*words, "--length-normalised"] if self.options.length_normalised else [*words]


def _command(*words: object) -> str:
    return on_one_line(shlex.join(["temperance", *map(str, words)]))
