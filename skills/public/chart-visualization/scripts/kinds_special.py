"""Steps, profiles, schedules, targets."""

from __future__ import annotations

from typing import Any

import matplotlib.dates as dates
import numpy as np
import pandas as pd
from kinds import SpecError, as_list, blank, finish, kind, name_categories
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle, Wedge
from style import Style, mix, number, on, wrapped

Spec = dict[str, Any]


@kind("waterfall", "x y", "totals")
def waterfall(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """How a value comes about step by step; totals lists the rows that are sums (first and last, if not given)."""
    names, values = [str(name) for name in frame[spec["x"]]], frame[spec["y"]].to_numpy(dtype=float)
    totals = set(map(str, as_list(spec["totals"]))) if spec.get("totals") else {names[0], names[-1]}
    level, tops = 0.0, []
    for spot, (name, value) in enumerate(zip(names, values, strict=True)):
        start = 0.0 if name in totals else level
        end = value if name in totals else level + value
        color = style.color(0) if name in totals else style.color(2) if value >= 0 else style.color(3)
        axes.bar(spot, end - start, bottom=start, width=0.62, color=color)
        text = number(value, spec.get("y_format"))
        axes.annotate(
            f"+{text}" if value > 0 and name not in totals else text,
            (spot, max(start, end)),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            size=10,
        )
        if spot + 1 < len(names):
            axes.hlines(end, spot + 0.31, spot + 0.69, color=style.muted, linewidth=1)
        level = end
        tops.append(max(start, end))
    name_categories(axes, names)
    axes.axhline(0, color=style.muted, linewidth=1)
    axes.margins(y=0.1)
    finish(axes, spec, style)


@kind("funnel", "label value")
def funnel(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """How many are left after each step, and which share goes on."""
    values, most = frame[spec["value"]].to_numpy(dtype=float), float(frame[spec["value"]].max())
    for spot, (name, value) in enumerate(zip(frame[spec["label"]], values, strict=True)):
        width, after = value / most, (values[spot + 1] if spot + 1 < len(values) else value) / most
        color = mix(style.color(0), style.back, 1 - 0.55 * spot / max(len(values) - 1, 1))
        axes.add_patch(Rectangle((-width / 2, -spot - 0.36), width, 0.72, color=color))
        if spot + 1 < len(values):
            axes.fill(
                [-width / 2, width / 2, after / 2, -after / 2],
                [-spot - 0.36, -spot - 0.36, -spot - 0.64, -spot - 0.64],
                color=color,
                alpha=0.35,
                linewidth=0,
            )
            axes.text(
                0,
                -spot - 0.5,
                f"↓ {number(values[spot + 1] / value, '%')}" if value else "",
                ha="center",
                va="center",
                size=9,
                color=style.muted,
            )
        axes.text(-0.54, -spot, wrapped(str(name), 24), ha="right", va="center", size=11)
        shown = number(value, spec.get("y_format"))
        inside = width > 0.14
        axes.text(
            0 if inside else width / 2 + 0.02,
            -spot,
            shown,
            ha="center" if inside else "left",
            va="center",
            weight="bold",
            color=on(color) if inside else style.ink,
        )
        axes.text(
            0.54,
            -spot,
            number(value / values[0], "%") if values[0] else "",
            ha="left",
            va="center",
            color=style.muted,
            size=10.5,
        )
    axes.set(xlim=(-0.95, 0.7), ylim=(-len(values) + 0.5, 0.5))
    blank(axes)


@kind("radar", "x y", "series", polar=True)
def radar(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Profiles over three to ten criteria of one scale; at most three series."""
    from kinds import wide

    table = wide(frame, spec)
    if len(table) < 3:
        raise SpecError("x: a radar chart needs at least three criteria")
    angles = np.linspace(0, 2 * np.pi, len(table), endpoint=False)
    closed = np.append(angles, angles[0])
    for index, name in enumerate(table.columns):
        values = np.append(table[name].to_numpy(dtype=float), table[name].iloc[0])
        axes.plot(closed, values, color=style.color(index), label=str(name))
        axes.fill(closed, values, color=style.color(index), alpha=0.13)
    axes.set_theta_offset(np.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_xticks(angles, [wrapped(str(name), 16) for name in table.index], size=10.5, color=style.ink)
    for text, angle in zip(axes.get_xticklabels(), angles, strict=True):
        text.set_ha("center" if abs(np.sin(angle)) < 0.05 else "left" if np.sin(angle) > 0 else "right")
    axes.set_ylim(*spec.get("y_range", (0, float(np.nanmax(table.values)) * 1.05)))
    axes.tick_params(axis="y", labelsize=8.5)
    axes.grid(color=style.grid)
    axes.spines["polar"].set_color(style.grid)
    if len(table.columns) > 1:
        axes.legend(loc="center left", bbox_to_anchor=(1.22, 0.95), labelcolor=style.muted)


@kind("gantt", "label start end", "series today")
def gantt(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Tasks over time; start and end are dates, series colours phases."""
    starts, ends = pd.to_datetime(frame[spec["start"]]), pd.to_datetime(frame[spec["end"]])
    if (ends < starts).any():
        raise SpecError(f"end: {frame[spec['label']][ends < starts].iloc[0]!r} ends before it starts")
    kinds = list(dict.fromkeys(frame[spec["series"]])) if spec.get("series") else [None]
    seen: set[Any] = set()
    for spot, (start, end) in enumerate(zip(starts, ends, strict=True)):
        group = frame[spec["series"]].iloc[spot] if spec.get("series") else None
        name = str(group) if group not in seen else "_"
        seen.add(group)
        if start == end:
            axes.scatter([start], [spot], marker="D", s=80, color=style.color(kinds.index(group)), zorder=3, label=name)
        else:
            axes.barh(spot, end - start, left=start, height=0.56, color=style.color(kinds.index(group)), label=name)
    name_categories(axes, list(frame[spec["label"]]), vertical=True)
    axes.invert_yaxis()
    axes.xaxis_date()
    finder = dates.AutoDateLocator(minticks=4, maxticks=9)
    axes.xaxis.set_major_locator(finder)
    if spec.get("today"):
        axes.axvline(pd.Timestamp(spec["today"]), color=style.color(3), linewidth=1.5)
    finish(axes, spec, style, len(kinds), grid="x")
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(finder))
    axes.margins(x=0.02)


@kind("pareto", "x y")
def pareto(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Few causes make most of the effect: sorted bars and their running share."""
    table = frame.groupby(spec["x"])[spec["y"]].sum().sort_values(ascending=False)
    axes.bar(range(len(table)), table, width=0.68, color=style.color(0))
    name_categories(axes, list(table.index))
    finish(axes, spec, style)
    other = axes.twinx()
    share = table.cumsum() / table.sum()
    other.plot(range(len(table)), share, color=style.color(1), marker="o", markersize=5)
    other.axhline(0.8, color=style.muted, linewidth=1, linestyle=(0, (4, 3)))
    other.set_ylim(0, 1.06)
    other.yaxis.set_major_formatter(lambda value, _: number(round(value, 6), "%"))
    other.spines["right"].set_visible(False)


@kind("gauge", "value", "max bands unit")
def gauge(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """One value of a range, taken from the first row; max is the end of the scale (100)."""
    value, end = float(frame[spec["value"]].iloc[0]), float(spec.get("max", 100))
    share = min(max(value / end, 0), 1)
    axes.add_patch(Wedge((0, 0), 1, 0, 180, width=0.26, color=style.grid))
    axes.add_patch(Wedge((0, 0), 1, 180 - 180 * share, 180, width=0.26, color=style.color(0)))
    for mark in spec.get("bands", []):
        angle = np.pi * (1 - mark / end)
        axes.plot(
            [0.7 * np.cos(angle), 1.04 * np.cos(angle)],
            [0.7 * np.sin(angle), 1.04 * np.sin(angle)],
            color=style.ink,
            linewidth=1.5,
        )
        axes.text(
            1.1 * np.cos(angle), 1.1 * np.sin(angle), number(mark), ha="center", va="center", size=10, color=style.muted
        )
    axes.text(
        0,
        0.12,
        number(value, spec.get("y_format")) + spec.get("unit", ""),
        ha="center",
        va="center",
        size=34,
        weight="bold",
    )
    for place, text in ((-0.87, number(0)), (0.87, number(end))):
        axes.text(place, -0.08, text, ha="center", va="center", color=style.muted)
    axes.set(xlim=(-1.2, 1.2), ylim=(-0.15, 1.15), aspect="equal")
    blank(axes)


@kind("bullet", "label value target", "max")
def bullet(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Values against targets, each in percent of its target."""
    frame = frame.iloc[::-1]
    share = frame[spec["value"]] / frame[spec["target"]]
    most = max(float(share.max()) * 1.08, 1.2)
    axes.barh(range(len(frame)), most, height=0.62, color=style.grid)
    axes.barh(range(len(frame)), share, height=0.3, color=[style.color(2) if s >= 1 else style.color(1) for s in share])
    axes.vlines(
        np.ones(len(frame)), np.arange(len(frame)) - 0.31, np.arange(len(frame)) + 0.31, color=style.ink, linewidth=2.5
    )
    for spot, (value, goal) in enumerate(zip(frame[spec["value"]], frame[spec["target"]], strict=True)):
        text = f"{number(value, spec.get('y_format'))} of {number(goal, spec.get('y_format'))}"
        axes.annotate(
            text,
            (most, spot),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            size=10,
            color=style.muted,
            annotation_clip=False,
        )
    name_categories(axes, list(frame[spec["label"]]), vertical=True)
    finish(axes, {"x_format": "%", **spec}, style, grid="x")
    axes.set_xlim(0, most)
    axes.grid(False)


@kind("calendar", "x value")
def calendar(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """A value for each day of up to a year, as colour."""
    days = pd.to_datetime(frame[spec["x"]])
    values = frame[spec["value"]].groupby(days).sum()
    first = values.index.min() - pd.Timedelta(days=values.index.min().weekday())
    high = float(values.max()) or 1
    span = pd.date_range(values.index.min(), values.index.max())
    for day in span:
        week, row = (day - first).days // 7, day.weekday()
        color = style.sequential()(values[day] / high) if day in values.index else style.grid
        axes.add_patch(Rectangle((week, -row), 0.88, 0.88, color=color))
        if day.day == 1:
            axes.text(week, 1.2, day.strftime("%b"), size=10, color=style.muted)
    for row, name in enumerate(("Mon", "", "Wed", "", "Fri", "", "Sun")):
        axes.text(-0.4, 0.4 - row, name, ha="right", va="center", size=9.5, color=style.muted)
    axes.set(xlim=(-2.6, (span[-1] - first).days // 7 + 1), ylim=(-6.3, 2), aspect="equal")
    blank(axes)
