"""Charts of Office files: their title and the values that they show."""

from __future__ import annotations

from typing import Any

from deerflow.sandbox.converters.markdown import line, table
from deerflow.sandbox.converters.parts import all_text, local


def chart(root: Any) -> str:
    """Return a chart as its title and a table with a row for each category; without values the title alone."""
    title = next((line(all_text(each)) for each in root.iter() if local(each) == "title"), "")
    columns: list[tuple[str, list[str]]] = []
    categories: list[str] = []
    for series in (each for each in root.iter() if local(each) == "ser"):
        parts = {local(child): child for child in series}
        names = _points(parts.get("tx"))
        columns.append((names[0] if names else "", _points(parts.get("val", parts.get("yVal")))))
        categories = categories or _points(parts.get("cat", parts.get("xVal")))
    head = f"[chart: {title}]" if title else "[chart]"
    length = max((len(values) for _, values in columns), default=0)
    if not length:
        return head
    rows = [
        [
            categories[at] if at < len(categories) else "",
            *(values[at] if at < len(values) else "" for _, values in columns),
        ]
        for at in range(length)
    ]
    return f"{head}\n\n{table([['', *(name for name, _ in columns)], *rows])}"


def _points(element: Any) -> list[str]:
    """The values that are kept with the chart, at their places."""
    found: dict[int, str] = {}
    for point in (each for each in element.iter() if local(each) == "pt") if element is not None else ():
        found[int(point.get("idx") or len(found))] = all_text(point, "v")
    return [found.get(at, "") for at in range(min(max(found, default=-1) + 1, 10_000))]
