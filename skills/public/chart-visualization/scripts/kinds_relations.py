"""Who belongs to whom: areas, flows, trees, networks, sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from kinds import SpecError, blank, kind
from matplotlib.axes import Axes
from matplotlib.patches import Circle, PathPatch, Rectangle
from matplotlib.path import Path as Curve
from style import Style, mix, number, on, units, wrapped

Spec = dict[str, Any]


def squares(
    values: list[float], x: float, y: float, width: float, height: float
) -> list[tuple[float, float, float, float]]:
    """Rectangles of these areas, largest first, as square as they can be, which fill the given one."""
    if not values:
        return []
    scale = width * height / sum(values)
    short = min(width, height)

    def worst(row: list[float]) -> float:
        side = sum(row) * scale / short
        return max(max(side * side / (v * scale), v * scale / (side * side)) for v in row)

    row = [values[0]]
    while len(row) < len(values) and worst([*row, values[len(row)]]) <= worst(row):
        row.append(values[len(row)])
    side, found, place = sum(row) * scale / short, [], 0.0
    for value in row:
        length = value * scale / side
        found.append((x, y + place, side, length) if width >= height else (x + place, y, length, side))
        place += length
    rest = values[len(row) :]
    inner = (x + side, y, width - side, height) if width >= height else (x, y + side, width, height - side)
    return found + squares(rest, *inner)


@kind("treemap", "label value", "series")
def treemap(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Many parts of a whole as areas; series colours groups."""
    frame = frame[frame[spec["value"]] > 0].sort_values(spec["value"], ascending=False)
    width, height = axes.figure.get_size_inches()
    ratio = width / height
    total = frame[spec["value"]].sum()
    kinds = list(dict.fromkeys(frame[spec["series"]])) if spec.get("series") else []
    boxes = squares(frame[spec["value"]].astype(float).tolist(), 0, 0, ratio, 1)
    for index, ((x, y, w, h), row) in enumerate(zip(boxes, frame.to_dict("records"), strict=True)):
        color = (
            style.color(kinds.index(row[spec["series"]]))
            if kinds
            else mix(style.color(0), style.back, 1 - 0.65 * index / max(len(frame), 2))
        )
        axes.add_patch(Rectangle((x, 1 - y - h), w, h, facecolor=color, edgecolor=style.back, linewidth=2.5))
        letters = w / ratio * width * 9.5
        share = number(row[spec["value"]] / total, "%")
        text = f"{wrapped(str(row[spec['label']]), max(letters, 4))}\n{share}"
        if (text.count("\n") + 1) * 0.2 < h * height * 0.8 and max(map(units, text.split("\n"))) <= letters:
            axes.text(x + w / 2, 1 - y - h / 2, text, ha="center", va="center", color=on(color), size=10)
    axes.set(xlim=(0, ratio), ylim=(0, 1))
    blank(axes)
    if kinds:
        handles = [Rectangle((0, 0), 1, 1, color=style.color(index)) for index in range(len(kinds))]
        axes.legend(
            handles,
            [str(name) for name in kinds],
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=5,
            labelcolor=style.muted,
            handlelength=1.1,
            borderaxespad=0.2,
            borderpad=0,
        )


@kind("sankey", "source_by target value")
def sankey(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """How much flows from where to where; the flows make no circle."""
    flows = (
        frame.groupby([spec["source_by"], spec["target"]], sort=False)[spec["value"]]
        .sum()
        .reset_index()
        .values.tolist()
    )
    nodes = list(dict.fromkeys([str(flow[0]) for flow in flows] + [str(flow[1]) for flow in flows]))
    column = dict.fromkeys(nodes, 0)
    for _ in nodes:
        for a, b, _value in flows:
            column[str(b)] = max(column[str(b)], column[str(a)] + 1)
    if max(column.values()) >= len(nodes):
        raise SpecError("data: these flows go in a circle")
    into = {name: sum(v for _, b, v in flows if str(b) == name) for name in nodes}
    out = {name: sum(v for a, _, v in flows if str(a) == name) for name in nodes}
    size = {name: max(into[name], out[name]) for name in nodes}
    layers = [[name for name in nodes if column[name] == level] for level in range(max(column.values()) + 1)]
    most, gap = max(sum(size[name] for name in layer) for layer in layers), 0.05
    scale = (1 - gap * (max(map(len, layers)) - 1)) / most
    top: dict[str, float] = {}
    for layer in layers:
        place = 0.5 + (sum(size[name] for name in layer) * scale + gap * (len(layer) - 1)) / 2
        for name in layer:
            top[name] = place
            place -= size[name] * scale + gap
    left, right = dict(top), dict(top)
    thick = 0.018
    for a, b, value in sorted(flows, key=lambda flow: (nodes.index(str(flow[0])), -top[str(flow[1])])):
        a, b = str(a), str(b)
        h, x0, x1 = value * scale, column[a] + thick, column[b] - thick
        y0, y1, middle = right[a], left[b], (column[a] + column[b]) / 2
        points = [
            (x0, y0),
            (middle, y0),
            (middle, y1),
            (x1, y1),
            (x1, y1 - h),
            (middle, y1 - h),
            (middle, y0 - h),
            (x0, y0 - h),
            (x0, y0),
        ]
        codes = [Curve.MOVETO, *[Curve.CURVE4] * 3, Curve.LINETO, *[Curve.CURVE4] * 3, Curve.CLOSEPOLY]
        axes.add_patch(PathPatch(Curve(points, codes), facecolor=style.color(nodes.index(a)), alpha=0.35, linewidth=0))
        right[a] -= h
        left[b] -= h
    for index, name in enumerate(nodes):
        axes.add_patch(
            Rectangle(
                (column[name] - thick, top[name] - size[name] * scale),
                2 * thick,
                size[name] * scale,
                color=style.color(index),
            )
        )
        last = column[name] == len(layers) - 1
        text = f"{wrapped(name, 22)}\n{number(size[name], spec.get('y_format'))}"
        axes.text(
            column[name] + (-0.03 if last else 0.03),
            top[name] - size[name] * scale / 2,
            text,
            ha="right" if last else "left",
            va="center",
            size=10,
        )
    axes.set(xlim=(-0.03, len(layers) - 0.97), ylim=(-0.01, 1.01))
    blank(axes)


@kind("tree", "label parent")
def tree(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Organisations, mind maps, taxonomies: each row names its parent, the root an empty one."""
    rows = [
        (str(a), "" if b is None or b != b else str(b))
        for a, b in zip(frame[spec["label"]], frame[spec["parent"]], strict=True)
    ]
    children: dict[str, list[str]] = {}
    for name, above in rows:
        children.setdefault(above, []).append(name)
    names = {name for name, _ in rows}
    spots: dict[str, tuple[float, float]] = {}
    leaf = iter(range(len(rows) + 1))

    def place(name: str, depth: int) -> float:
        if depth > len(rows):
            raise SpecError("parent: the rows make a circle")
        below = [place(child, depth + 1) for child in children.get(name, [])]
        spots[name] = (depth, -(sum((below[0], below[-1])) / 2 if below else next(leaf)))
        return -spots[name][1]

    roots = [name for name, above in rows if above not in names]
    for root in roots:
        place(root, 0)
    if len(spots) < len(names):
        raise SpecError("parent: no row is the root; leave its parent empty")
    first = roots[0]
    branch = {name: index for index, name in enumerate(children.get(first, []))}
    for name, above in rows:
        top = name
        while dict(rows).get(top, "") not in ("", first) and dict(rows).get(top) in names:
            top = dict(rows)[top]
        color = style.color(branch[top]) if top in branch else style.ink
        x, y = spots[name]
        if above in spots:
            px, py = spots[above]
            axes.add_patch(
                PathPatch(
                    Curve([(px, py), (px + 0.5, py), (px + 0.5, y), (x, y)], [Curve.MOVETO, *[Curve.CURVE4] * 3]),
                    fill=False,
                    edgecolor=color,
                    alpha=0.55,
                    linewidth=1.8,
                    zorder=1,
                )
            )
        axes.text(
            x,
            y,
            wrapped(name, 22),
            ha="center",
            va="center",
            size=10.5,
            color=on(color),
            zorder=3,
            bbox={
                "boxstyle": "round,pad=0.42,rounding_size=0.25",
                "facecolor": color,
                "edgecolor": style.back,
                "linewidth": 2,
            },
        )
    deepest = max(x for x, _ in spots.values())
    axes.set(xlim=(-0.45, deepest + 0.45), ylim=(min(y for _, y in spots.values()) - 0.7, 0.7))
    blank(axes)


@kind("network", "source_by target", "value")
def network(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """Who is connected with whom; value makes lines thicker. Up to about 60 nodes."""
    pairs = [(str(a), str(b)) for a, b in zip(frame[spec["source_by"]], frame[spec["target"]], strict=True)]
    weights = frame[spec["value"]].to_numpy(dtype=float) if spec.get("value") else np.ones(len(pairs))
    nodes = list(dict.fromkeys(name for pair in pairs for name in pair))
    count, spread = len(nodes), 1 / np.sqrt(len(nodes))
    links = np.zeros((count, count))
    for (a, b), weight in zip(pairs, weights, strict=True):
        links[nodes.index(a), nodes.index(b)] = links[nodes.index(b), nodes.index(a)] = (
            0.5 + 0.5 * weight / weights.max()
        )
    at = np.random.default_rng(3).uniform(-1, 1, (count, 2))
    for heat in np.linspace(0.18, 0.005, 320):
        delta = at[:, None] - at[None]
        distance = np.maximum(np.linalg.norm(delta, axis=2), 0.02)
        force = (delta * (spread**2 / distance**2 - links * distance / spread)[..., None]).sum(axis=1) - 0.35 * at
        at += force / np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9) * heat
    for (a, b), weight in zip(pairs, weights, strict=True):
        start, end = at[nodes.index(a)], at[nodes.index(b)]
        axes.plot(
            *zip(start, end, strict=True),
            color=style.muted,
            alpha=0.45,
            linewidth=1 + 3 * weight / weights.max(),
            zorder=1,
        )
    degree = links.sum(axis=1)
    axes.scatter(
        *at.T, s=160 + 700 * degree / degree.max(), color=style.color(0), edgecolors=style.back, linewidths=2, zorder=2
    )
    for name, (x, y), ties in zip(nodes, at, degree / degree.max(), strict=True):
        axes.annotate(
            wrapped(name, 18),
            (x, y),
            xytext=(0, -9 - 9 * ties),
            textcoords="offset points",
            ha="center",
            va="top",
            size=9.5,
            zorder=3,
        )
    axes.margins(0.14)
    blank(axes)


@kind("venn", "label value")
def venn(axes: Axes, frame: pd.DataFrame, spec: Spec, style: Style) -> None:
    """What two or three sets share: labels A, B, A&B (and C, A&C, B&C, A&B&C) with the number in each part."""
    parts = {
        "&".join(sorted(str(a).replace(" ", "").split("&"))): (str(a), b)
        for a, b in zip(frame[spec["label"]], frame[spec["value"]], strict=True)
    }
    names = [str(name) for name in frame[spec["label"]] if "&" not in str(name)]
    if len(names) not in (2, 3):
        raise SpecError("label: a Venn diagram has two or three sets; name overlaps A&B")
    angles = [np.pi, 0] if len(names) == 2 else [np.pi * 5 / 6, np.pi / 6, -np.pi / 2]
    centers = [np.array([0.52 * np.cos(angle), 0.52 * np.sin(angle)]) for angle in angles]
    for index, (name, center) in enumerate(zip(names, centers, strict=True)):
        axes.add_patch(Circle(center, 0.86, color=style.color(index), alpha=0.42, linewidth=0))
        away = center / np.linalg.norm(center)
        spot = center + away * 0.92 + np.array([0, 0.0])
        axes.text(
            *spot,
            wrapped(name, 18),
            ha="right" if away[0] < -0.1 else "left" if away[0] > 0.1 else "center",
            va="center" if abs(away[1]) < 0.9 else "top",
            weight="bold",
            size=12,
        )
    keys = {name.replace(" ", ""): center for name, center in zip(names, centers, strict=True)}
    for key, (_, value) in parts.items():
        members = [keys[name] for name in key.split("&") if name in keys]
        middle = sum(members) / len(members)
        scale = {1: 1.55, 2: 1.35, 3: 1.0}[len(members)] if len(names) == 3 else 1.0 if len(members) == 2 else 1.35
        axes.text(*(middle * scale), number(value, spec.get("y_format")), ha="center", va="center", size=14)
    axes.set(xlim=(-2.5, 2.5), ylim=(-1.62 if len(names) == 3 else -1, 1.35 if len(names) == 3 else 1), aspect="equal")
    blank(axes)
