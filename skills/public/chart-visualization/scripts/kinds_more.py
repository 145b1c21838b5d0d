"""Distributions, relations, uncertainty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from kinds import SpecError, as_list, finish, kind, name_categories, positions
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from scipy import stats
from style import Style, number, on, units, wrapped

Spec = dict[str, Any]


def groups(frame: pd.DataFrame, column: str | None, value: str) -> dict[str, np.ndarray]:
    """The numbers of ``value`` for each group, in the order of the data."""
    if not pd.api.types.is_numeric_dtype(frame[value]):
        raise SpecError(f"the column {value!r} holds texts, not numbers")
    if not column:
        return {value: frame[value].dropna().to_numpy(dtype=float)}
    found = {str(name): part[value].dropna().to_numpy(dtype=float) for name, part in frame.groupby(column, sort=False)}
    return {name: values for name, values in found.items() if len(values)}


@kind("scatter", "x y", "series size_by label trend")
def scatter(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """How two numbers relate; trend: true adds a line with r. size_by makes bubbles, label names points."""
    x, y, column = spec["x"], as_list(spec["y"])[0], spec.get("series")
    names = list(dict.fromkeys(frame[column])) if column else [None]
    for index, name in enumerate(names):
        part = frame[frame[column] == name] if column else frame
        sizes: Any = 46
        if spec.get("size_by"):
            sizes = 60 + 2600 * part[spec["size_by"]] / frame[spec["size_by"]].max()
        axes.scatter(
            part[x],
            part[y],
            s=sizes,
            color=style.color(index),
            alpha=0.72,
            edgecolors=style.back,
            linewidths=0.8,
            label=str(name),
        )
    if spec.get("label"):
        for row in frame[[x, y, spec["label"]]].itertuples(index=False):
            axes.annotate(
                str(row[2]),
                (row[0], row[1]),
                xytext=(0, 8 if not spec.get("size_by") else 0),
                textcoords="offset points",
                ha="center",
                va="bottom" if not spec.get("size_by") else "center",
                size=9.5,
            )
    if spec.get("trend"):
        fit = stats.linregress(frame[x], frame[y])
        span = np.array([frame[x].min(), frame[x].max()])
        axes.plot(span, fit.intercept + fit.slope * span, color=style.muted, linewidth=1.4, linestyle=(0, (4, 3)))
        axes.annotate(
            f"r = {fit.rvalue:.2f}", (0.99, 0.02), xycoords="axes fraction", ha="right", size=10, color=style.muted
        )
    axes.margins(0.1 if spec.get("size_by") else 0.06)
    finish(axes, {"x_label": x, "y_label": y, **spec}, style, len(names), grid="both")
    if (drawn := axes.get_legend()) is not None:
        for handle in drawn.legend_handles:
            handle.set_sizes([50])


@kind("bubble", "x y size_by", "series label")
def bubble(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Three numbers at once: place and area."""
    scatter(axes, frame, spec, style)


@kind("histogram", "x", "series bins")
def histogram(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """How one number is distributed; a line marks the median."""
    parts = groups(frame, spec.get("series"), spec["x"])
    edges = np.histogram_bin_edges(np.concatenate(list(parts.values())), bins=spec.get("bins", "auto"))
    for index, (name, values) in enumerate(parts.items()):
        axes.hist(
            values,
            bins=edges,
            color=style.color(index),
            alpha=0.6 if len(parts) > 1 else 0.9,
            edgecolor=style.back,
            linewidth=0.8,
            label=name,
        )
    if len(parts) == 1:
        median = float(np.median(next(iter(parts.values()))))
        axes.axvline(median, color=style.ink, linewidth=1.3)
        axes.annotate(
            f"median {number(median, spec.get('x_format'))}",
            (median, 1),
            xycoords=("data", "axes fraction"),
            xytext=(5, -3),
            textcoords="offset points",
            va="top",
            size=10,
        )
    finish(axes, {"x_label": spec["x"], **spec}, style, len(parts))


@kind("density", "x", "series")
def density(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Smooth distributions of few groups."""
    parts = groups(frame, spec.get("series"), spec["x"])
    if any(len(values) < 3 or np.ptp(values) == 0 for values in parts.values()):
        raise SpecError("x: each group needs at least three different numbers; use strip")
    everything = np.concatenate(list(parts.values()))
    pad = 0.15 * np.ptp(everything)
    span = np.linspace(everything.min() - pad, everything.max() + pad, 300)
    for index, (name, values) in enumerate(parts.items()):
        height = stats.gaussian_kde(values)(span)
        axes.fill_between(span, height, color=style.color(index), alpha=0.2, linewidth=0)
        axes.plot(span, height, color=style.color(index), label=name)
    axes.set_ylim(bottom=0)
    axes.set_yticks([])
    finish(axes, {"x_label": spec["x"], **spec}, style, len(parts), grid="x")
    axes.spines["bottom"].set_visible(True)
    axes.spines["left"].set_visible(False)


def spread(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style, form: str) -> None:
    parts = groups(frame, spec["x"], as_list(spec["y"])[0])
    data, spots = list(parts.values()), range(len(parts))
    if form == "box":
        drawn = axes.boxplot(
            data,
            positions=spots,
            widths=0.55,
            patch_artist=True,
            medianprops={"color": style.ink, "linewidth": 1.8},
            flierprops={"marker": "o", "markersize": 4, "markeredgecolor": style.muted},
        )
        for index, box in enumerate(drawn["boxes"]):
            box.set(facecolor=(*to_rgb(style.color(index)), 0.55), edgecolor=style.color(index))
        for line in (*drawn["whiskers"], *drawn["caps"]):
            line.set(color=style.muted)
    elif form == "violin":
        drawn = axes.violinplot(
            [values if np.ptp(values) else values + np.linspace(-1e-9, 1e-9, len(values)) for values in data],
            positions=spots,
            widths=0.8,
            showextrema=False,
        )
        for index, body in enumerate(drawn["bodies"]):
            body.set(facecolor=style.color(index), alpha=0.5)
        for spot, values in zip(spots, data, strict=True):
            low, middle, high = np.percentile(values, [25, 50, 75])
            axes.vlines(spot, low, high, color=style.ink, linewidth=5)
            axes.scatter([spot], [middle], color=style.back, s=26, zorder=3)
    else:
        noise = np.random.default_rng(7)
        for index, (spot, values) in enumerate(zip(spots, data, strict=True)):
            axes.scatter(
                spot + noise.uniform(-0.18, 0.18, len(values)),
                values,
                color=style.color(index),
                alpha=0.6,
                s=28,
                linewidths=0,
            )
            axes.hlines(np.median(values), spot - 0.28, spot + 0.28, color=style.ink, linewidth=2)
    name_categories(axes, [f"{name}\nn = {len(values)}" for name, values in parts.items()])
    finish(axes, {"y_label": as_list(spec["y"])[0], **spec}, style)
    axes.set_xlim(-0.6, len(parts) - 0.4)


@kind("box", "x y")
def box(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Median, quartiles and outliers of y for each x."""
    spread(axes, frame, spec, style, "box")


@kind("violin", "x y")
def violin(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """The shape of y for each x; from about 30 values each."""
    spread(axes, frame, spec, style, "violin")


@kind("strip", "x y")
def strip(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Every single value; for few of them."""
    spread(axes, frame, spec, style, "strip")


def matrix(axes: Axes, table: pd.DataFrame, spec: Spec, style: Style, colors: Any, low: float, high: float) -> None:
    axes.imshow(table.values.astype(float), aspect="auto", cmap=colors, vmin=low, vmax=high)
    axes.set_xticks(np.arange(table.shape[1] + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(table.shape[0] + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=style.back, linewidth=2)
    axes.tick_params(which="minor", length=0)
    name_categories(axes, list(table.columns))
    axes.set_yticks(range(len(table)), [wrapped(str(name), 26) for name in table.index])
    if spec.get("labels", table.size <= 150):
        for row, column in np.ndindex(*table.shape):
            value = table.values[row, column]
            if value == value:
                shade = colors((value - low) / ((high - low) or 1))
                axes.text(
                    column,
                    row,
                    number(value, spec.get("value_format")),
                    ha="center",
                    va="center",
                    size=9.5,
                    color=on(shade[:3]),
                )
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set(xlabel=spec.get("x_label", ""), ylabel=spec.get("y_label", ""))


@kind("heatmap", "x y value", "labels value_format")
def heatmap(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """A number for each pair of x and y, as colour."""
    table = frame.pivot_table(index=spec["y"], columns=spec["x"], values=spec["value"], aggfunc="sum", sort=False)
    table = table.reindex(index=list(dict.fromkeys(frame[spec["y"]])), columns=list(dict.fromkeys(frame[spec["x"]])))
    low, high = float(np.nanmin(table.values)), float(np.nanmax(table.values))
    if low < 0 < high:
        high = max(-low, high)
        matrix(axes, table, spec, style, style.diverging(), -high, high)
    else:
        matrix(axes, table, spec, style, style.sequential(), low, high)


@kind("correlation", "", "columns")
def correlation(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Pearson's r between all columns of numbers, or those in columns."""
    numbers = frame[spec["columns"]] if spec.get("columns") else frame.select_dtypes("number")
    if numbers.shape[1] < 2:
        raise SpecError("data: correlation needs two columns of numbers")
    matrix(axes, numbers.corr(), {"value_format": ".2f", **spec}, style, style.diverging(), -1, 1)


@kind("error_bars", "x y error", "series")
def error_bars(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Estimates with their uncertainty; error is the half width of the interval."""
    column = spec.get("series")
    names = list(dict.fromkeys(frame[column])) if column else [None]
    order = list(dict.fromkeys(frame[spec["x"]]))
    for index, name in enumerate(names):
        part = frame[frame[column] == name] if column else frame
        spots = [order.index(value) + (index - (len(names) - 1) / 2) * 0.16 for value in part[spec["x"]]]
        axes.errorbar(
            spots,
            part[spec["y"]],
            yerr=part[spec["error"]],
            fmt="o",
            markersize=7,
            capsize=4,
            linewidth=1.8,
            color=style.color(index),
            label=str(name),
        )
    name_categories(axes, order)
    axes.margins(x=0.08)
    finish(axes, {"y_label": spec["y"], **spec}, style, len(names))


@kind("band", "x y low high")
def band(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """A forecast or estimate with its range."""
    frame = frame.set_index(spec["x"])
    where, categories = positions(frame.index)
    axes.fill_between(where, frame[spec["low"]], frame[spec["high"]], color=style.color(0), alpha=0.18, linewidth=0)
    axes.plot(where, frame[spec["y"]], color=style.color(0))
    if categories:
        name_categories(axes, list(frame.index))
    axes.margins(x=0.02)
    finish(axes, spec, style)


@kind("candlestick", "x open high low close")
def candlestick(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Prices: open, high, low, close of each day."""
    for spot, row in enumerate(
        frame[[spec[name] for name in ("open", "high", "low", "close")]].itertuples(index=False)
    ):
        start, high, low, end = row
        color = style.color(2) if end >= start else style.color(3)
        axes.vlines(spot, low, high, color=color, linewidth=1.2)
        axes.bar(spot, abs(end - start) or 1e-9, bottom=min(start, end), width=0.62, color=color)
    name_categories(axes, list(frame[spec["x"]]))
    if len(frame) > 14:
        places = np.linspace(0, len(frame) - 1, 7).astype(int)
        axes.set_xticks(places, [str(frame[spec["x"]].iloc[place]) for place in places])
    finish(axes, spec, style)


@kind("dumbbell", "label start end", "start_label end_label")
def dumbbell(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Two values of each row and the distance between them: before and after, two groups."""
    frame = frame.iloc[::-1]
    spots = range(len(frame))
    axes.hlines(spots, frame[spec["start"]], frame[spec["end"]], color=style.grid, linewidth=5)
    for index, name in enumerate(("start", "end")):
        axes.scatter(
            frame[spec[name]],
            spots,
            s=110,
            color=style.color(index),
            zorder=3,
            label=spec.get(f"{name}_label", spec[name]),
        )
        for spot, value, other in zip(
            spots, frame[spec[name]], frame[spec["end" if name == "start" else "start"]], strict=True
        ):
            side = -1 if value < other or (value == other and index == 0) else 1
            axes.annotate(
                number(value, spec.get("x_format")),
                (value, spot),
                xytext=(11 * side, 0),
                textcoords="offset points",
                ha="left" if side > 0 else "right",
                va="center",
                size=9.5,
                color=style.muted,
            )
    name_categories(axes, list(frame[spec["label"]]), vertical=True)
    axes.margins(x=0.12, y=0.08)
    finish(axes, spec, style, 2, grid="x")


@kind("slope", "label start end", "start_label end_label highlight")
def slope(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """How ranks or values changed between two times."""
    marked = set(map(str, as_list(spec["highlight"]))) if spec.get("highlight") is not None else None
    texts: list[tuple[float, float, str, str]] = []
    for index, row in enumerate(frame[[spec["label"], spec["start"], spec["end"]]].itertuples(index=False)):
        name, first, last = row
        color = style.color(index) if marked is None else style.color(0) if str(name) in marked else style.muted
        axes.plot(
            [0, 1],
            [first, last],
            marker="o",
            markersize=7,
            color=color,
            alpha=1 if marked is None or str(name) in marked else 0.55,
        )
        texts += [
            (0, first, f"{name}  {number(first, spec.get('y_format'))}", color),
            (1, last, f"{number(last, spec.get('y_format'))}  {name}", color),
        ]
    low, high = axes.get_ylim()
    for side in (0, 1):
        lowest = -np.inf
        for _, value, text, color in sorted(entry for entry in texts if entry[0] == side):
            lowest = max(value, lowest + 0.055 * (high - low))
            axes.text(
                side + (0.03 if side else -0.03),
                lowest,
                text,
                ha="left" if side else "right",
                va="center",
                color=color,
                size=10.5,
            )
    longest = max(units(text) for _, _, text, _ in texts)
    pad = 0.03 + longest * 0.012
    axes.set_xlim(-pad - 0.15, 1.15 + pad)
    axes.set_yticks([])
    axes.set_xticks([0, 1], [spec.get("start_label", spec["start"]), spec.get("end_label", spec["end"])], weight="bold")
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.vlines([0, 1], low, high, color=style.grid, linewidth=1, zorder=0)
