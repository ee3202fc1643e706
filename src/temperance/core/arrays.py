"""Array types, named by what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[Any]
"""Numbers of any type."""
Floats = NDArray[np.floating[Any]]
"""Numbers in the type that the logits are computed in."""
Vector = NDArray[np.float64]
"""One number per row, class or parameter."""
Matrix = NDArray[np.float64]
"""Two axes. Type checkers do not see shapes, so this name is for the reader."""
Indices = NDArray[np.intp]
"""Indices of rows or columns."""
