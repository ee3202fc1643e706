"""What a lower layer uses from a higher one, and what is imported by name: on first use.

A calibrator can save itself, become a PyTorch or ONNX model and accept Dask arrays; a comparison can write a
report. The layers that do this import calibrators and comparisons, so importing them there would be circular.
`tests/project/test_architecture.py` checks that each entry is used from below, and draws it as a dotted line.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from temperance.errors import InputError

LOADERS: dict[str, tuple[str, str]] = {
    "automate": ("temperance.decisions", "automate"),
    "moved threshold": ("temperance.decisions", "moved_threshold"),
    "save": ("temperance.calibrator_file", "save"),
    "calibrator html": ("temperance.report.notebook", "calibrator_html"),
    "comparison html": ("temperance.report.notebook", "comparison_html"),
    "evaluation html": ("temperance.report.notebook", "evaluation_html"),
    "report": ("temperance.report.page", "write_report"),
    "dask apply": ("temperance.dask.lazy", "apply"),
    "dask fit data": ("temperance.dask.fit_data", "open_fit_data"),
    "dask probability rows": ("temperance.dask.lazy", "DaskProbabilityRows"),
    "dask probabilities": ("temperance.dask.lazy", "map_probabilities"),
    "dask floor": ("temperance.dask.lazy", "floor_of"),
    "torch apply": ("temperance.torch.module", "apply"),
    "torch module": ("temperance.torch.module", "to_module"),
    "onnx model": ("temperance.onnx.model", "to_onnx"),
    "onnx append": ("temperance.onnx.append", "append_to_onnx"),
}
"""Name of a capability: the module that has it, and its name there."""


def load(capability: str) -> Any:
    """Return the function or class that provides a capability."""
    module, name = LOADERS[capability]
    return getattr(import_module(module), name)


def load_object(name: str) -> Any:
    """Return the object that `package.module:name` names."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{name!r} must name an object as package.module:name; found {error}.") from error


class MissingPackageError(InputError, ImportError):
    """A package is not installed; the message says how to install it."""


def import_optional(module: str, extra: str, user: str) -> ModuleType:
    """Return a module of another package, or raise an error that names the extra which `user` needs."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f'{user} needs the package {package}: pip install "temperance[{extra}]"'
        ) from error
