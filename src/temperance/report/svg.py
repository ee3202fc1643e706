"""Drawing: one plot as an SVG that needs no script, no font file and no picture file.

matplotlib is not used here: its SVG does not follow the page into the dark, cannot show and hide a method,
and would make a plotting library necessary for a page that two hundred lines can draw.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.report.markup import element, text
from temperance.report.scales import Scale

LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 52


class Plot:
    """Axes with marks in them; every mark may belong to a method, by which the page shows and hides it."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        labels: tuple[str, str],
        *,
        size: tuple[int, int] = (640, 400),
        log: tuple[bool, bool] = (False, False),
        x_ticks: list[tuple[float, str]] | None = None,
    ) -> None:
        self.size, self.labels = size, labels
        self.x = Scale(*x, LEFT, size[0] - RIGHT, log[0])
        self.y = Scale(*y, size[1] - BOTTOM, TOP, log[1])
        self.x_ticks = x_ticks or [(tick, self.x.label(tick)) for tick in self.x.ticks()]
        self._marks: list[str] = []
        self._notes: list[str] = []  # on top of all marks

    def line(self, x: Vector, y: Vector, colour: str, method: str = "", dash: str | None = None) -> None:
        """Draw a line through the points; where a number is missing the line breaks."""
        for part in _runs(np.isfinite(x) & np.isfinite(y)):
            points = self._path(x[part], y[part])
            mark = element("polyline", class_="line", stroke=colour, stroke_dasharray=dash, points=points)
            self._add(mark, method)

    def band(self, x: Vector, low: Vector, high: Vector, colour: str, method: str = "") -> None:
        """Fill between two lines."""
        for part in _runs(np.isfinite(x) & np.isfinite(low) & np.isfinite(high)):
            around = np.concatenate([x[part], x[part][::-1]]), np.concatenate([high[part], low[part][::-1]])
            self._add(element("polygon", class_="band", fill=colour, points=self._path(*around)), method)

    def points(
        self, x: Vector, y: Vector, colour: str, tips: Iterable[str] = (), method: str = "", radius: float = 3
    ) -> None:
        """Draw dots; a tip is what the dot says when it is pointed at."""
        told = [*tips] or [""] * len(x)
        for a, b, tip in zip(self.x.place(x), self.y.place(y), told, strict=True):
            if np.isfinite(a + b):
                dot = {"cx": float(a), "cy": float(b), "r": radius}
                shade = "dot" if radius > 2 else "speck"
                self._add(element("circle", _tip(tip), class_=shade, fill=colour, **dot), method)

    def rings(self, x: Vector, y: Vector, colour: str, tips: Iterable[str]) -> None:
        """Draw hollow dots, which do not hide what is below them."""
        for a, b, tip in zip(self.x.place(x), self.y.place(y), tips, strict=True):
            if np.isfinite(a + b):
                ring = {"cx": float(a), "cy": float(b), "r": 6}
                self._add(element("circle", _tip(tip), class_="ring dot", stroke=colour, **ring))

    def whiskers(self, x: Vector, low: Vector, high: Vector, colour: str, method: str = "") -> None:
        """Draw upright intervals."""
        for a, b, c in zip(self.x.place(x), self.y.place(low), self.y.place(high), strict=True):
            if np.isfinite(a + b + c):
                ends = {"x1": float(a), "x2": float(a), "y1": float(b), "y2": float(c)}
                self._add(element("line", class_="whisker", stroke=colour, **ends), method)

    def bars(
        self,
        edges: Vector,
        low: Vector,
        high: Vector,
        colour: str,
        tips: Iterable[str] = (),
        shade: str = "bar",
    ) -> None:
        """Draw bars between neighbouring edges, from `low` to `high`."""
        told = [*tips] or [""] * len(low)
        left, right = self.x.place(edges[:-1]), self.x.place(edges[1:])
        for a, b, c, d, tip in zip(left, right, self.y.place(high), self.y.place(low), told, strict=True):
            if d > c:
                place = {"x": float(a) + 0.5, "width": max(float(b - a) - 1, 0.5)}
                height = {"y": float(c), "height": max(float(d - c), 0.5)}
                self._add(element("rect", _tip(tip), class_=shade, fill=colour, **place, **height))

    def rule(self, y: float, words: str) -> None:
        """Draw a dashed line across the plot, with a word on it."""
        height = float(self.y.place(y))
        if self.y.stop <= height <= self.y.start:
            ends = {"x1": self.x.start, "x2": self.x.stop, "y1": height, "y2": height}
            note = {"x": self.x.stop - 4, "y": height - 5}
            self._add(element("line", class_="rule", **ends))
            self._notes.append(element("text", text(words), class_="note", text_anchor="end", **note))

    def diagonal(self) -> None:
        """Draw the line on which both axes agree."""
        ends = np.array([max(self.x.low, self.y.low), min(self.x.high, self.y.high)])
        (a, c), (b, d) = self.x.place(ends).tolist(), self.y.place(ends).tolist()
        self._add(element("line", class_="rule", x1=a, y1=b, x2=c, y2=d))

    def svg(self, name: str, title: str, description: str) -> str:
        """Return the picture; the description is for those who cannot see it, the name unique in the page."""
        inside = {
            "x": LEFT - 4,
            "y": TOP - 4,
            "width": self.x.stop - LEFT + 8,
            "height": self.y.start - TOP + 8,
        }
        return element(
            "svg",
            element("title", text(title), id=f"{name}-title"),
            element("desc", text(description), id=f"{name}-text"),
            element("clipPath", element("rect", **inside), id=f"{name}-clip"),
            *self._axes(),
            element("g", *self._marks, *self._notes, clip_path=f"url(#{name}-clip)"),
            viewBox=f"0 0 {self.size[0]} {self.size[1]}",
            role="img",
            aria_labelledby=f"{name}-title {name}-text",
        )

    def _path(self, x: Vector, y: Vector) -> str:
        places = zip(self.x.place(x), self.y.place(y), strict=True)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in places)

    def _add(self, mark: str, method: str = "") -> None:
        self._marks.append(element("g", mark, data_method=method) if method else mark)

    def _axes(self) -> list[str]:
        left, right, top, bottom = self.x.start, self.x.stop, self.y.stop, self.y.start
        parts = []
        for tick in self.y.ticks():
            y = float(self.y.place(tick))
            parts.append(element("line", class_="grid", x1=left, x2=right, y1=y, y2=y))
            words = text(self.y.label(tick))
            parts.append(element("text", words, class_="tick", x=left - 8, y=y + 4, text_anchor="end"))
        for tick, label in self.x_ticks:
            x = float(self.x.place(tick))
            parts.append(element("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom))
            parts.append(
                element("text", text(label), class_="tick", x=x, y=bottom + 18, text_anchor="middle")
            )
        across, up = {"x": (left + right) / 2, "y": self.size[1] - 10}, (top + bottom) / 2
        parts.append(element("text", text(self.labels[0]), class_="label", text_anchor="middle", **across))
        turned = {"transform": f"rotate(-90 16 {up:.0f})", "text_anchor": "middle"}
        parts.append(element("text", text(self.labels[1]), class_="label", x=16, y=up, **turned))
        return parts


def _tip(words: str) -> str:
    return element("title", text(words)) if words else ""


def _runs(there: NDArray[np.bool_]) -> list[slice]:
    """Return the stretches without a gap."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], there, [False]]).astype(np.int8)))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
