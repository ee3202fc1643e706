"""Pages of the reference that are made from the code: commands with their options, public names, metrics."""

import importlib
import inspect
import pkgutil

import click

import temperance
from temperance.cli.program import cli
from temperance.metrics import METRICS

WIDTH = 88
CONSTANTS = {
    "temperance.CALIBRATORS": 'mapping of keys, such as `"ts"`, to a `Method` that builds it',
    "temperance.metrics.METRICS": "mapping of the name of each metric to its label, unit, range and meaning",
}


def help_of(command, name, parent=None):
    """Yield a heading and the help text of a command, and of the commands below it."""
    settings = command.context_settings  # without them, click keeps a help option that has no -h
    context = click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH, **settings)
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    for child, below in getattr(command, "commands", {}).items():
        yield from help_of(below, child, context)


def write_command_reference(path):
    """Add the help texts to the end of the page of the command line, in place of a comment that says so."""
    text = path.read_text(encoding="utf-8")
    before, comment, _ = text.partition("<!-- commands:")
    if not comment:
        raise ValueError(f"{path} must end with a comment `<!-- commands: ... -->`")
    path.write_text(before + "\n".join(help_of(cli, "temperance")), encoding="utf-8")


def public_modules():
    """Return the modules that list public names in `__all__`, the package itself first."""
    names = sorted(module.name for module in pkgutil.iter_modules(temperance.__path__, "temperance."))
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    return [temperance, *(module for module in modules if hasattr(module, "__all__"))]


def public_names():
    """Yield (module, names of its classes and functions); a name counts in the first module that has it."""
    seen = []
    for module in public_modules():
        values = {name: getattr(module, name) for name in module.__all__}
        new = [
            name
            for name, value in values.items()
            if (inspect.isclass(value) or inspect.isfunction(value)) and value not in seen
        ]
        seen += [values[name] for name in new]
        if new:
            yield module, sorted(new, key=str.lower)


def section(module, names):
    """Return the part of the page about one module."""
    purpose = inspect.getdoc(module).splitlines()[0]
    listed = "\n".join(f"   {name}" for name in names)
    return (
        f"## {module.__name__}\n\n{purpose}\n\n```{{eval-rst}}\n.. currentmodule:: {module.__name__}\n\n"
        f".. autosummary::\n   :toctree: generated\n\n{listed}\n```\n"
    )


def write_name_reference(path):
    """Write the page of all public names; Sphinx makes a page for each of them."""
    intro = "# Python API\n\nEvery public class and function. Each has an example that the tests run.\n\n"
    constants = "## Constants\n\n" + "\n".join(f"- `{name}`: {what}" for name, what in CONSTANTS.items())
    parts = [section(*found) for found in public_names()]
    path.write_text("\n".join([intro, *parts, constants]) + "\n", encoding="utf-8")


def write_metric_reference(path):
    """Write the page of the metrics that an evaluation has, from their table."""
    lines = [
        "# Metrics\n\nWhat `temperance.metrics.evaluate` computes. That function explains the intervals; "
        "[their coverage](../benchmarks/coverage.md) was simulated.\n",
        "| name | written as | what it is | range | best | interval |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, metric in METRICS.items():
        low, high = metric.range
        cells = f"`{name}`", metric.heading(), metric.help, f"{low} to {high}", metric.best, metric.interval
        lines.append(f"| {' | '.join(cells)} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
