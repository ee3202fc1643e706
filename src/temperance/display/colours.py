"""One colour and one marker for each method, the same in every figure, from the registry."""

from __future__ import annotations

from temperance.calibrators import CALIBRATORS, UNCALIBRATED, method_style

COLOURS: dict[str, str] = {key: method_style(key).colour for key in (UNCALIBRATED, *CALIBRATORS)}
"""Colour of "none", the classifier itself, and of each key of the registry."""

MARKERS: dict[str, str] = {key: method_style(key).marker for key in (UNCALIBRATED, *CALIBRATORS)}
"""Markers in matplotlib's notation."""


def colour_of(name: str) -> str:
    """Return the colour of a method; another name always has the same one of three other colours.

    Parameters
    ----------
    name : str
        A key of `CALIBRATORS`, or any other name.

    Examples
    --------
    >>> colour_of("ts"), colour_of("my own") == colour_of("my own")
    ('#6987e1', True)
    """
    return method_style(name).colour


def marker_of(name: str) -> str:
    """Return the marker of a method, or of any other name.

    Parameters
    ----------
    name : str
        A key of `CALIBRATORS`, or any other name.

    Examples
    --------
    >>> marker_of("my own") == marker_of("my own")
    True
    """
    return method_style(name).marker
