"""How charts look: fonts, colours, numbers, titles."""

from __future__ import annotations

import re
from typing import Any

import matplotlib
import matplotlib.font_manager as fonts
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure

PALETTES = {
    "default": [
        "#2f6db5",
        "#e8833a",
        "#3a9d78",
        "#c8506b",
        "#7b62b3",
        "#b8993a",
        "#4aa8c4",
        "#8a6a55",
        "#6b7785",
        "#d58fb4",
    ],
    "warm": ["#c8443c", "#e8833a", "#efb84a", "#8c4a3a", "#d98c7a", "#a8723a", "#6e3b4f", "#cf9f6a"],
    "cool": ["#1f4e8c", "#3f87c6", "#4fb3bf", "#2f8f83", "#7a88c9", "#5c6f91", "#8fc1e3", "#274b5f"],
    "mono": ["#1f2d3d", "#50647a", "#8296aa", "#b3c1cf", "#3a4a5c", "#6b7f94", "#9aadbf", "#cdd7e0"],
}
THEMES = {
    "light": {"ink": "#1f2933", "muted": "#66727f", "grid": "#e4e8ec", "back": "#ffffff"},
    "dark": {"ink": "#eef2f5", "muted": "#9fb0bf", "grid": "#33414e", "back": "#18222c"},
}
WANTED = [
    *("Inter", "Noto Sans", "Open Sans", "Source Sans 3", "Liberation Sans", "DejaVu Sans"),
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Microsoft YaHei", "PingFang SC", "WenQuanYi Zen Hei"),
    *("Noto Sans CJK JP", "Noto Sans JP", "Noto Sans CJK KR", "Noto Sans Arabic", "Noto Sans Devanagari"),
]


class Style:
    """Colours and helpers that every kind of chart uses."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.theme = THEMES[spec.get("theme", "light")]
        palette = spec.get("palette", "default")
        self.palette: list[str] = PALETTES[palette] if isinstance(palette, str) else list(palette)
        self.ink, self.muted, self.grid, self.back = (self.theme[key] for key in ("ink", "muted", "grid", "back"))

    def color(self, index: int) -> str:
        return self.palette[index % len(self.palette)]

    def sequential(self) -> LinearSegmentedColormap:
        return LinearSegmentedColormap.from_list(
            "s", [mix(self.color(0), self.back, 0.08), self.color(0), mix(self.color(0), "#000000", 0.6)]
        )

    def diverging(self) -> LinearSegmentedColormap:
        return LinearSegmentedColormap.from_list("d", [self.color(1), mix(self.ink, self.back, 0.06), self.color(0)])

    def use(self) -> None:
        """Set matplotlib's defaults; the fonts that exist here, one after the other for each letter."""
        known = {font.name for font in fonts.fontManager.ttflist}
        matplotlib.rcParams.update(
            {
                "font.family": [name for name in WANTED if name in known] or ["sans-serif"],
                "font.size": 11,
                "text.color": self.ink,
                "axes.labelcolor": self.muted,
                "axes.edgecolor": mix(self.muted, self.back, 0.6),
                "axes.facecolor": self.back,
                "figure.facecolor": self.back,
                "savefig.facecolor": self.back,
                "axes.grid": False,
                "axes.axisbelow": True,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.unicode_minus": False,
                "grid.color": self.grid,
                "grid.linewidth": 0.9,
                "xtick.color": self.muted,
                "ytick.color": self.muted,
                "xtick.major.size": 0,
                "ytick.major.size": 0,
                "lines.linewidth": 2.2,
                "lines.solid_capstyle": "round",
                "legend.frameon": False,
                "date.converter": "concise",
                "svg.fonttype": "none",
                "svg.hashsalt": "chart",
                "path.simplify": True,
            }
        )


def mix(color: str, other: str, share: float) -> tuple[float, float, float]:
    """``share`` of the first colour, the rest of the second."""
    return tuple(share * a + (1 - share) * b for a, b in zip(to_rgb(color), to_rgb(other), strict=True))  # type: ignore[return-value]


def on(color: Any) -> str:
    """A text colour that can be read on ``color``."""
    red, green, blue = to_rgb(color)
    return "#ffffff" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.62 else "#1f2933"


def number(value: float, form: str | None = None) -> str:
    """A number as people read it: 1.2M, 45%, $3,400. ``form``: ``%``, a format such as ``,.1f``, or one with text, ``${:,.0f}``."""
    if value is None or not np.isfinite(value):
        return ""
    if form == "%":
        return f"{value * 100:.1f}".rstrip("0").rstrip(".") + "%"
    if form and "{" in form:
        return ("-" if value < 0 else "") + form.format(abs(value))
    if form:
        return format(round(value) if form.endswith("d") else value, form)
    for limit, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "K")):
        if abs(value) >= limit:
            scaled = value / (1e3 if unit == "K" else limit)
            return f"{scaled:.1f}".rstrip("0").rstrip(".") + unit
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.2f}".rstrip("0").rstrip(".") if abs(value) >= 0.01 else f"{value:.2g}"


def form_axis(axis: Any, form: str | None) -> None:
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: number(round(value, 10), form)))


def units(text: str) -> float:
    """How wide a text is, in letters: those of Chinese, Japanese and Korean count twice."""
    return sum(
        2 if re.match(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60]", char) else 1
        for char in text
    )


def wrapped(text: str, width: float) -> str:
    """Lines of at most ``width`` letters, between words or, where there are no spaces, between signs."""
    lines, line = [], ""
    for piece in re.findall(
        r"[\u2e80-\u9fff\uac00-\ud7af\uff00-\uff60]|[^\s\u2e80-\u9fff\uac00-\ud7af\uff00-\uff60]+\s*|\s+", text
    ):
        if line and units(line + piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece
    return "\n".join([*lines, line.rstrip()])


def headings(figure: Figure, spec: dict[str, Any], style: Style) -> tuple[float, float]:
    """Title, subtitle and source of a figure; returns which part of its height they leave, bottom and top."""
    width, height = figure.get_size_inches()
    left, top = 0.28 / width, 1 - 0.26 / height
    for key, size, weight, color, letters in (
        ("title", 16, "bold", style.ink, width * 8.3),
        ("subtitle", 11.5, "normal", style.muted, width * 12),
    ):
        if text := spec.get(key):
            lines = wrapped(str(text), letters)
            figure.text(left, top, lines, size=size, weight=weight, color=color, ha="left", va="top", linespacing=1.25)
            top -= (lines.count("\n") + 1) * size * 1.42 / 72 / height
    bottom = 0.14 / height
    if text := spec.get("source"):
        lines = wrapped(str(text), width * 14)
        figure.text(left, bottom, lines, size=9, color=style.muted, ha="left", va="bottom")
        bottom += (lines.count("\n") + 1) * 14 / 72 / height
    return bottom, top - 0.08 / height


def legend(axes: Axes, count: int, style: Style, **options: Any) -> None:
    """A legend in one line above the chart where it has several series."""
    if count > 1:
        settings = {
            "loc": "lower left",
            "bbox_to_anchor": (0, 1.005),
            "ncols": min(count, 5),
            "labelcolor": style.muted,
        }
        settings |= {
            "handlelength": 1.1,
            "handleheight": 0.9,
            "columnspacing": 1.4,
            "borderaxespad": 0.2,
            "borderpad": 0,
        }
        axes.legend(**{**settings, **options})
