"""The dashboard asks for metrics and labels that there are, in the way that their kind needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deerflow.storage.database import Database
from deerflow_app.metrics import Metrics

DASHBOARD: dict[str, Any] = json.loads((Path(__file__).parents[2] / "deploy/grafana/deerflow.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
LABELS = {"state", "status", "model", "kind", "pool", "version", "le", "job", "instance"}
"""Of our metrics, of histograms, and those that Prometheus adds."""
_NAME = re.compile(r"(?<![\w$])(?:deerflow|process)_\w+")


@pytest.fixture
async def kinds(tmp_path: Path) -> dict[str, str]:
    """The kind of each metric of a scrape, by name."""
    database = Database(tmp_path / "deerflow.db")
    try:
        text = await Metrics(database).text(None)
    finally:
        await database.aclose()
    return {name: kind for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)}


async def test_each_query_names_metrics_that_exist(kinds: dict[str, str]) -> None:
    series = {name: kind for name, kind in kinds.items() if kind != "histogram"}
    for name in kinds.keys() - series.keys():
        series |= {f"{name}_{part}": "counter" for part in ("bucket", "sum", "count")}
    asked: set[str] = set()
    for query in QUERIES:
        names = _NAME.findall(query)
        assert names, query
        asked.update(names)
        for name in names:
            assert name in series, query
            is_rate = re.search(rf"(?:rate|increase)\({name}\b", query) is not None
            assert is_rate == (series[name] == "counter"), query
    shown = {re.sub("_(?:bucket|sum|count)$", "", name) for name in asked}
    assert kinds.keys() <= shown | {"deerflow_event_loop_lag_seconds"}, "a figure that no panel shows"


def test_queries_use_labels_that_there_are_and_legends_only_what_is_left() -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            query = target["expr"]
            grouped = {label for found in re.findall(r"by \(([^)]*)\)", query) for label in found.split(", ")}
            matched = set(re.findall(r"[{,] ?(\w+)(?:=~|!=|=)", query))
            assert grouped | matched <= LABELS, query
            in_legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert in_legend <= (grouped or {"instance", "pool"}), panel["title"]


def test_panels_have_places_and_numbers_of_their_own() -> None:
    def cells(panel: dict[str, Any]) -> Iterator[tuple[int, int]]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            yield from ((x, y) for y in range(place["y"], place["y"] + place["h"]))

    taken = [cell for panel in DASHBOARD["panels"] for cell in cells(panel)]
    assert len(taken) == len(set(taken))
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert all(panel["datasource"]["uid"] == "${source}" for panel in PANELS)
