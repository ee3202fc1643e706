"""One colour and one marker for each method, the same in every picture: those of the registry."""

from __future__ import annotations

from temperance.calibrators import CALIBRATORS, UNCALIBRATED, method_style

COLOURS: dict[str, str] = {key: method_style(key).colour for key in (UNCALIBRATED, *CALIBRATORS)}
"""Of "none", the classifier itself, and of each key of the registry."""

MARKERS: dict[str, str] = {key: method_style(key).marker for key in (UNCALIBRATED, *CALIBRATORS)}
"""In matplotlib's letters."""


def colour_of(name: str) -> str:
    """Return the colour of a method; a name that is not a method's has one of three others, always the same.

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
