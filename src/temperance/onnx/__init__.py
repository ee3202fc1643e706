"""A fitted calibrator as an ONNX graph: on its own, or at the end of a classifier.

Importing this module imports ONNX; nothing else of the package does. onnxruntime is not needed to write.
"""

from __future__ import annotations

try:
    from onnx import checker as _checker  # noqa: F401  a folder that is called onnx is not enough
except ImportError as error:
    raise ImportError('to_onnx needs ONNX: pip install "temperance[onnx]"') from error

from temperance.onnx.append import append_to_onnx

__all__ = ["append_to_onnx"]
