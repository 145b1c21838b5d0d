"""Lines, areas, bars, parts of a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from kinds import SpecError, as_list, finish, kind, name_categories, positions, wide
from matplotlib.axes import Axes
from style import Style, form_axis, legend, number, on, wrapped

Spec = dict[str, Any]


def ends(axes: Axes, table: pd.DataFrame, where: Any, style: Style) -> bool:
    """Names at the ends of lines where these are far enough apart; better than a legend."""
    last = table.ffill().iloc[-1]
    low, high = float(np.nanmin(table.values)), float(np.nanmax(table.values))
    gaps = np.diff(np.sort(last.to_numpy(dtype=float)))
    if not 1 < len(last) <= 6 or (high > low and len(gaps) and gaps.min() < 0.055 * (high - low)):
        return False
    for index, (name, value) in enumerate(last.items()):
        axes.annotate(
            str(name),
            (where[-1], value),
            xytext=(7, 0),
            textcoords="offset points",
            color=style.color(index),
            weight="bold",
            va="center",
            size=10.5,
            annotation_clip=False,
        )
    return True


def lines(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style, step: bool = False) -> None:
    table = wide(frame, spec)
    where, categories = positions(table.index)
    named = False
    for index, name in enumerate(table.columns):
        options = {"color": style.color(index), "label": str(name), "drawstyle": "steps-post" if step else "default"}
        axes.plot(
            where,
            table[name],
            marker="o" if spec.get("markers", len(table) <= 14 and not step) else None,
            markersize=5,
            **options,
        )
        if spec.get("labels"):
            for x, value in zip(where, table[name], strict=True):
                axes.annotate(
                    number(value, spec.get("y_format")),
                    (x, value),
                    xytext=(0, 7),
                    textcoords="offset points",
                    ha="center",
                    size=9.5,
                    color=style.color(index),
                )
    if categories:
        name_categories(axes, list(table.index))
    named = ends(axes, table, where, style)
    finish(axes, spec, style, 1 if named else len(table.columns))
    axes.margins(x=0.03, y=0.1)
    if np.nanmin(table.values) >= 0 and spec.get("from_zero") and not spec.get("y_range"):
        axes.set_ylim(bottom=0)


@kind("line", "x y", "series labels markers from_zero")
def line(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """How values develop; y may be a list of columns."""
    lines(axes, frame, spec, style)


@kind("step", "x y", "series")
def step(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Values that hold until they change: prices, rates, stock."""
    lines(axes, frame, spec, style, step=True)


@kind("area", "x y", "series")
def area(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Volume over time; several series overlap."""
    table = wide(frame, spec)
    where, categories = positions(table.index)
    for index, name in enumerate(table.columns):
        axes.fill_between(where, table[name], color=style.color(index), alpha=0.18, linewidth=0)
        axes.plot(where, table[name], color=style.color(index), label=str(name))
    if categories:
        name_categories(axes, list(table.index))
    axes.margins(x=0.01)
    axes.set_ylim(bottom=min(0, float(np.nanmin(table.values))))
    finish(axes, spec, style, len(table.columns))


@kind("stacked_area", "x y", "series percent")
def stacked_area(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Parts of a total over time; percent: true shows shares."""
    table = wide(frame, spec).fillna(0)
    if spec.get("percent"):
        table = table.div(table.sum(axis=1), axis=0)
        spec = {"y_format": "%", **spec}
    where, categories = positions(table.index)
    colors = [style.color(index) for index in range(len(table.columns))]
    axes.stackplot(
        where,
        table.T.values,
        labels=[str(name) for name in table.columns],
        colors=colors,
        edgecolor=style.back,
        linewidth=0.8,
    )
    if categories:
        name_categories(axes, list(table.index))
    axes.margins(x=0, y=0)
    finish(axes, spec, style, len(table.columns))


def bars(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style, mode: str, across: bool = False) -> None:
    table = wide(frame, spec)
    count, total = len(table.columns), table.sum(axis=1)
    form = spec.get("x_format" if across else "y_format")
    if mode == "percent":
        table, form = table.div(total, axis=0), form or "%"
        spec = {**spec, ("x_format" if across else "y_format"): form}
    if across:
        table = table.iloc[::-1]
    width = 0.68 if mode != "group" else 0.8 / count
    spots = np.arange(len(table))
    above, below = np.zeros(len(table)), np.zeros(len(table))
    shown = spec.get("labels", len(table) * (count if mode == "group" else 1) <= 16)
    for index, name in enumerate(table.columns):
        values = table[name].fillna(0).to_numpy(dtype=float)
        color: Any = style.color(index)
        if count == 1 and spec.get("highlight") is not None:
            color = [
                style.color(0) if str(label) in map(str, as_list(spec["highlight"])) else style.theme["grid"]
                for label in table.index
            ]
        place = spots + (index - (count - 1) / 2) * width * (-1 if across else 1) if mode == "group" else spots
        base = np.where(values >= 0, above, below) if mode != "group" else 0
        draw = axes.barh if across else axes.bar
        size = {
            "height" if across else "width": width * (0.94 if mode == "group" and count > 1 else 1),
            "left" if across else "bottom": base,
        }
        boxes = draw(
            place,
            values,
            color=color,
            label=str(name),
            edgecolor=style.back if mode != "group" else "none",
            linewidth=0.8,
            **size,
        )
        if shown and mode == "group":
            texts = [number(value, form) for value in values]
            axes.bar_label(boxes, labels=texts, padding=3, size=9.5, color=style.muted)
        elif shown:
            limit = 0.055 * (1 if mode == "percent" else max(total.abs().max(), 1e-12))
            axes.bar_label(
                boxes,
                labels=[number(v, form) if abs(v) > limit else "" for v in values],
                label_type="center",
                size=9.5,
                color=on(style.color(index)),
            )
        if mode != "group":
            above, below = above + np.maximum(values, 0), below + np.minimum(values, 0)
    name_categories(axes, list(table.index), vertical=across)
    if (table.values < 0).any():
        (axes.axvline if across else axes.axhline)(0, color=style.muted, linewidth=1)
    axes.margins(**({"x": 0.08, "y": 0.02} if across else {"y": 0.08, "x": 0.02}))
    finish(axes, spec, style, count, grid="x" if across else "y")
    if mode == "percent":
        (axes.set_xlim if across else axes.set_ylim)(0, 1)


@kind("bar", "x y", "series labels sort highlight")
def bar(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Compare few categories; several series stand side by side."""
    bars(axes, frame, spec, style, "group")


@kind("bar_horizontal", "x y", "series labels sort highlight")
def bar_horizontal(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Rankings and long names; x is still the category, y the value."""
    bars(axes, frame, spec, style, "group", across=True)


@kind("stacked_bar", "x y", "series labels sort horizontal")
def stacked_bar(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Totals and what they consist of."""
    bars(axes, frame, spec, style, "stack", across=bool(spec.get("horizontal")))


@kind("percent_bar", "x y", "series labels horizontal")
def percent_bar(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Shares that add up to 100%."""
    bars(axes, frame, spec, style, "percent", across=bool(spec.get("horizontal")))


@kind("lollipop", "x y", "sort highlight")
def lollipop(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """A ranking of many categories, lighter than bars."""
    table = wide(frame, {**spec, "y": as_list(spec["y"])[0]}).iloc[::-1]
    values = table.iloc[:, 0].to_numpy(dtype=float)
    marked = set(map(str, as_list(spec["highlight"]))) if spec.get("highlight") is not None else None
    colors = [style.color(0) if marked is None or str(name) in marked else style.muted for name in table.index]
    axes.hlines(range(len(values)), 0, values, color=colors, linewidth=2.2, alpha=0.75)
    axes.scatter(values, range(len(values)), color=colors, s=90, zorder=3)
    for spot, value in enumerate(values):
        axes.annotate(
            number(value, spec.get("x_format")),
            (value, spot),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            size=9.5,
            color=style.muted,
        )
    name_categories(axes, list(table.index), vertical=True)
    axes.margins(x=0.1)
    axes.set_xlim(left=min(0, values.min()))
    finish(axes, spec, style, grid="x")


@kind("pie", "label value", "labels")
def pie(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style, hole: float = 0) -> None:
    """Two to six parts of one whole; smaller ones are joined."""
    parts = frame.groupby(spec["label"], sort=False)[spec["value"]].sum().sort_values(ascending=False)
    if (parts < 0).any():
        raise SpecError("value: parts of a whole cannot be negative; use bar")
    if len(parts) > 7:
        parts = pd.concat([parts.iloc[:6], pd.Series({spec.get("other", "Other"): parts.iloc[6:].sum()})])
    colors = [style.color(index) for index in range(len(parts))]
    wedges, _ = axes.pie(
        parts,
        colors=colors,
        startangle=90,
        counterclock=False,
        wedgeprops={"width": 1 - hole, "edgecolor": style.back, "linewidth": 2},
    )
    for wedge, (name, value) in zip(wedges, parts.items(), strict=True):
        angle = np.deg2rad((wedge.theta1 + wedge.theta2) / 2)
        x, y, share = np.cos(angle), np.sin(angle), value / parts.sum()
        if share >= 0.06:
            radius = (1 + hole) / 2 if hole else 0.66
            axes.text(
                x * radius,
                y * radius,
                number(share, "%"),
                ha="center",
                va="center",
                color=on(wedge.get_facecolor()[:3]),
                weight="bold",
                size=10.5,
            )
        text = wrapped(str(name), 20) + (f"\n{number(value, spec.get('y_format'))}" if spec.get("labels", True) else "")
        axes.annotate(
            text,
            (x, y),
            xytext=(1.14 * x, 1.1 * y),
            ha="left" if x > 0.02 else "right" if x < -0.02 else "center",
            va="center",
            size=10.5,
            color=style.ink,
            annotation_clip=False,
        )
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.15, 1.15))
    if hole and (center := spec.get("center", number(parts.sum(), spec.get("y_format")))):
        axes.text(0, 0, center, ha="center", va="center", size=21, weight="bold", color=style.ink)


@kind("donut", "label value", "labels center")
def donut(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """As pie, with the total in the middle."""
    pie(axes, frame, spec, style, hole=0.62)


@kind("dual_axis", "x y value", "y_label value_label")
def dual_axis(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Bars (y) and a line of another unit (value) over one x; use it sparingly."""
    table = frame.groupby(spec["x"], sort=False)[[spec["y"], spec["value"]]].sum()
    axes.bar(
        range(len(table)),
        table[spec["y"]],
        width=0.64,
        color=style.color(0),
        alpha=0.85,
        label=spec.get("y_label", spec["y"]),
    )
    name_categories(axes, list(table.index))
    finish(axes, {**spec, "y_label": ""}, style)
    other = axes.twinx()
    other.plot(
        range(len(table)),
        table[spec["value"]],
        color=style.color(1),
        marker="o",
        markersize=6,
        label=spec.get("value_label", spec["value"]),
    )
    other.spines["right"].set_visible(False)
    other.set_ylim(min(0, table[spec["value"]].min()), table[spec["value"]].max() * 1.12)
    form_axis(other.yaxis, spec.get("value_format"))
    other.tick_params(colors=style.color(1))
    axes.tick_params(axis="y", colors=style.color(0))
    handles = [axes.get_legend_handles_labels(), other.get_legend_handles_labels()]
    legend(axes, 2, style, handles=handles[0][0] + handles[1][0], labels=handles[0][1] + handles[1][1])
