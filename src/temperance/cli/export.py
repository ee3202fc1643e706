"""`temperance export`: a calibrator file -> a model that onnxruntime or PyTorch runs without temperance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from temperance.cli import options
from temperance.cli.output import Output
from temperance.cli.rows import calibrator_for_json
from temperance.data.read_options import KINDS
from temperance.errors import InputError, on_one_line

EXAMPLES = """\b
Examples:
  temperance export cal.json cal.onnx
  temperance export cal.json cal.pt2
  temperance export cal.json calibrated.onnx --append classifier.onnx

\b
.onnx is for onnxruntime, .pt2 for torch.export.load. Both take float32 logits
(batch, K), or probabilities if the calibrator was fitted to such, and return
probabilities (batch, K), or calibrated logits. With --append, the model has
the inputs of the classifier.
"""


@click.command(
    cls=options.Command, epilog=EXAMPLES, short_help="Write a calibrator as an ONNX or PyTorch model."
)
@click.argument("calibrator", type=options.INPUT)
@click.argument("out", type=options.OUTPUT)
@click.option(
    "--append", type=options.INPUT, metavar="CLASSIFIER", help="ONNX classifier to append the calibrator to."
)
@click.option(
    "--dim",
    type=click.Choice(["1", "-1"]),
    help="Axis of the classes: 1 for pixels (N, K, H, W), -1 for the last.  [default: as in the fit]",
)
@click.option(
    "--output",
    "gives",
    type=click.Choice(["probabilities", "logits"]),
    default="probabilities",
    help="What the model returns.",
)
@click.option(
    "--classifier-output",
    metavar="NAME",
    help="The classifier's output with the logits.  [default: the only one, or logits]",
)
@click.option(
    "--input",
    "kind",
    type=click.Choice(KINDS),
    help="What that output holds, if it is not called logits.",
)
@click.option(
    "--floor",
    type=click.FloatRange(0, 1, max_open=True),
    help="Raise smaller probabilities to this value.  [default: as in the fit]",
)
@options.force
@options.output_options
def export(
    calibrator: Path,
    out: Path,
    append: Path | None,
    dim: str | None,
    gives: str,
    force: bool,
    output: Output,
    **of_classifier: Any,
) -> None:
    """Write the calibrator file CALIBRATOR as a model, OUT: .onnx or .pt2."""
    from temperance.calibrator_file import load
    from temperance.calibrators.registry import key_of
    from temperance.formulas.model import axis_of_classes

    suffix = out.suffix.lower()
    if suffix not in (".onnx", ".pt2"):
        raise InputError(f"the model to write must end in .onnx or .pt2; found {out}.")
    if append is not None and suffix == ".pt2":
        raise InputError(
            f"--append is for .onnx; found {out}. In PyTorch: Sequential(model, cal.to_torch())."
        )
    if append is None and any(value is not None for value in of_classifier.values()):
        raise InputError("--classifier-output, --input and --floor need a classifier. Name it with --append.")
    if append is not None and dim is not None:
        raise InputError("--dim is for a calibrator alone; found --append too. Leave one of them out.")
    axis = None if dim is None else int(dim)
    fitted = load(calibrator)
    name = gives
    if append is not None:
        from temperance.onnx import append_to_onnx

        name = append_to_onnx(fitted, append, out, output=gives, overwrite=force, **of_classifier)
    elif suffix == ".onnx":
        from temperance.onnx.model import name_for

        name = name_for(gives, fitted.model_)
        fitted.to_onnx(out, dim=axis, output=gives, overwrite=force)
    else:
        from temperance.torch.module import save_program

        save_program(fitted, out, dim=axis, output=gives, overwrite=force)
    of_pixels = append is None and axis_of_classes(fitted.model_, axis) == 1
    shape = f"(batch, {fitted.n_classes_}{', H, W' if of_pixels else ''})"
    own = f"{'probabilities' if fitted.model_.of_probabilities else 'logits'} {shape}"
    takes = f"the inputs of {on_one_line(append)}" if append else own
    output.say(f"{key_of(fitted)}: from {takes} to {name} {shape}")
    output.say(f"Saved to {on_one_line(out)}")
    output.result(
        calibrator=calibrator_for_json(calibrator, fitted),
        out=str(out),
        classifier=None if append is None else str(append),
        output=name,
        classes=fitted.n_classes_,
    )
