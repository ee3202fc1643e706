"""`temperance methods`: the table of methods, for people."""

from __future__ import annotations

import click
from rich import box
from rich.table import Table

from temperance.cli.output import Output

EXAMPLES = """\b
Examples:
  temperance methods
  temperance methods | grep "may change"
"""

NOTES = """The default of fit is bayes; fit --set NAME=VALUE sets an option.
Methods that end in -sgd are trained as in the paper, which takes much longer."""


@click.command(epilog=EXAMPLES, short_help="List the methods.")
def methods() -> None:
    """List the methods: what each computes, its options, and whether it can change predictions."""
    from temperance.calibrators import CALIBRATORS

    table = Table("method", "what it computes", "options", "predictions", box=box.SIMPLE_HEAD, pad_edge=False)
    table.columns[0].no_wrap = True
    plain = {method.estimator: key for key, method in CALIBRATORS.items() if not method.options}
    for key, method in CALIBRATORS.items():
        _, _, computes = method.summary.partition(": ")
        options = [f"{name}={value}" for name, value in method().get_params().items()]
        if method.options:
            fixed = ", ".join(f"{name}={value}" for name, value in method.options.items())
            computes, options = f"{plain[method.estimator]} with {fixed}", []
        changes = "unchanged" if method.keeps_class else "may change"
        table.add_row(key, computes, ", ".join(options), changes)
    output = Output("methods")
    output.say(table)
    output.say(NOTES)
