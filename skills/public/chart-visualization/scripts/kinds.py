"""The register of chart types, and what they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from style import Style, form_axis, legend, units, wrapped

Draw = Callable[[Axes, pd.DataFrame, dict[str, Any], Style], None]
COLUMNS = (
    "x",
    "y",
    "series",
    "size_by",
    "label",
    "value",
    "low",
    "high",
    "open",
    "close",
    "start",
    "end",
    "source_by",
    "target",
    "parent",
    "error",
)


class SpecError(ValueError):
    """The specification cannot be drawn; says what to change."""


@dataclass(frozen=True)
class Kind:
    """``needs`` and ``takes``: fields of the specification; most name columns of the data."""

    draw: Draw
    needs: tuple[str, ...]
    takes: tuple[str, ...]
    about: str
    polar: bool = False
    columns: tuple[str, ...] = COLUMNS


KINDS: dict[str, Kind] = {}


def kind(name: str, needs: str, takes: str = "", *, polar: bool = False) -> Callable[[Draw], Draw]:
    """Register a function as the type ``name``; its docstring says what the type is for."""

    def register(draw: Draw) -> Draw:
        KINDS[name] = Kind(draw, tuple(needs.split()), tuple(takes.split()), (draw.__doc__ or "").strip(), polar)
        return draw

    return register


def as_list(value: Any) -> list[str]:
    return list(value) if isinstance(value, list) else [value]


def wide(frame: pd.DataFrame, spec: dict[str, Any]) -> pd.DataFrame:
    """A column for each series, a row for each x, both in the order of the data. Rows of one x are summed."""
    x, ys = spec["x"], as_list(spec["y"])
    if spec.get("series"):
        if len(ys) > 1:
            raise SpecError("give either several y or series, not both")
        table = frame.pivot_table(index=x, columns=spec["series"], values=ys[0], aggfunc="sum", sort=False)
        table = table[list(dict.fromkeys(frame[spec["series"]]))]
        table = table.reindex(list(dict.fromkeys(frame[x])))
    else:
        for y in ys:
            if not pd.api.types.is_numeric_dtype(frame[y]):
                raise SpecError(f"y: the column {y!r} holds texts, not numbers")
        table = frame.groupby(x, sort=False)[ys].sum(min_count=1)
    if spec.get("sort") in ("ascending", "descending"):
        table = table.loc[table.sum(axis=1).sort_values(ascending=spec["sort"] == "ascending").index]
    return table


def positions(index: pd.Index) -> tuple[Any, bool]:
    """Where values of x stand, and whether they are categories. Texts that are all dates become dates."""
    if pd.api.types.is_numeric_dtype(index) or pd.api.types.is_datetime64_any_dtype(index):
        return index, False
    texts = [str(value) for value in index]
    if all(len(text) >= 8 and text[:4].isdigit() and text[4] in "-/" for text in texts):
        try:
            return pd.to_datetime(texts), False
        except ValueError:
            pass
    return range(len(index)), True


def name_categories(axes: Axes, labels: list[str], *, vertical: bool = False) -> None:
    """Names of categories; many or long ones are wrapped or turned so that they do not overlap."""
    texts = [str(label) for label in labels]
    if vertical:
        axes.set_yticks(range(len(texts)), [wrapped(text, 26) for text in texts])
        return
    room = axes.figure.get_size_inches()[0] * axes.get_position().width * 11.5 / max(len(texts), 1)
    if max(map(units, texts), default=0) <= room:
        axes.set_xticks(range(len(texts)), texts)
    elif room >= 9 and max(units(word) for text in texts for word in wrapped(text, 1).split("\n")) <= room:
        axes.set_xticks(range(len(texts)), [wrapped(text, room) for text in texts])
    elif len(texts) > 36:
        step = len(texts) // 12
        axes.set_xticks(range(0, len(texts), step), texts[::step])
    else:
        axes.set_xticks(range(len(texts)), texts, rotation=38, ha="right", rotation_mode="anchor")


def finish(axes: Axes, spec: dict[str, Any], style: Style, series: int = 1, *, grid: str = "y") -> None:
    """Labels, numbers, grid, limits and legend as the specification asks."""
    if grid:
        axes.grid(axis=grid)
    for side in {"y": ["left"], "x": ["bottom"], "both": []}.get(grid, []):
        axes.spines[side].set_visible(False)
    for axis, letter in ((axes.xaxis, "x"), (axes.yaxis, "y")):
        if spec.get(f"{letter}_format") or (
            grid in (letter, "both") and type(axis.get_major_formatter()).__name__ == "ScalarFormatter"
        ):
            form_axis(axis, spec.get(f"{letter}_format"))
    axes.set(xlabel=spec.get("x_label", ""), ylabel=spec.get("y_label", ""))
    if spec.get("y_range"):
        axes.set_ylim(*spec["y_range"])
    if spec.get("x_range"):
        axes.set_xlim(*spec["x_range"])
    for line in spec.get("lines", []):
        along = axes.axvline if "x" in line else axes.axhline
        value = line["x"] if "x" in line else line["y"]
        along(value, color=style.muted, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1.5)
        if line.get("label") and "x" in line:
            axes.annotate(
                line["label"],
                (value, 1),
                xycoords=("data", "axes fraction"),
                xytext=(5, -4),
                textcoords="offset points",
                size=9.5,
                color=style.muted,
                va="top",
            )
        elif line.get("label"):
            axes.annotate(
                line["label"],
                (1, value),
                xycoords=("axes fraction", "data"),
                xytext=(0, 4),
                textcoords="offset points",
                size=9.5,
                color=style.muted,
                ha="right",
            )
    legend(axes, series, style)


def blank(axes: Axes) -> None:
    """No axes at all: the chart brings its own."""
    axes.set_axis_off()
