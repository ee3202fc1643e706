"""One colour and one marker for each method, the same in every picture.

The colours were chosen by a search: as far apart as possible (CIELAB) to normal eyes and to three kinds of
colour blindness (Machado et al., 2009), among those with a contrast of 3:1 or more both to white paper and
to the report's dark ground #1b1f24. That leaves a narrow range of lightness, so markers differ as well.
"""

from __future__ import annotations

from zlib import crc32

__all__ = ["COLOURS", "MARKERS", "colour_of", "marker_of"]

COLOURS: dict[str, str] = {
    "none": "#767b82",
    "ts": "#6987e1",
    "lts": "#ff1e4b",
    "hts": "#969600",
    "hnlts": "#b478b4",
    "pts": "#c31eb4",
    "pts-ece": "#a500ff",
    "bts": "#699669",
    "ets": "#9669ff",
    "bayes": "#00872d",
}
"""Of "none", the classifier itself, and of each key of the registry."""

MARKERS: dict[str, str] = {
    "none": "o",
    "ts": "s",
    "lts": "v",
    "hts": "^",
    "hnlts": "D",
    "pts": "P",
    "pts-ece": "X",
    "bts": "<",
    "ets": ">",
    "bayes": "*",
}
"""In matplotlib's letters."""

_OTHERS = (("#b0622e", "p"), ("#16868f", "h"), ("#4f7f2a", "d"))


def colour_of(name: str) -> str:
    """Return the colour of a method; a name that is not a method's has one of three others, always the same.

    Examples
    --------
    >>> colour_of("ts"), colour_of("my own") == colour_of("my own")
    ('#6987e1', True)
    """
    return COLOURS.get(name, _other(name)[0])


def marker_of(name: str) -> str:
    """Return the marker of a method, or of any other name."""
    return MARKERS.get(name, _other(name)[1])


def _other(name: str) -> tuple[str, str]:
    # A checksum, since the hash of a string differs between runs.
    return _OTHERS[crc32(name.encode()) % len(_OTHERS)]
