"""Sums over rows, which can be added up over sets of rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self


@dataclass(frozen=True, eq=False)
class Sums:
    """Numbers and arrays, each a sum over rows."""

    def __add__(self, other: Self) -> Self:
        names = [item.name for item in fields(self)]
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in names})
