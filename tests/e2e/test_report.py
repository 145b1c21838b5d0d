"""The main job: a CSV goes in; true numbers, a report and a chart come out. Commands, files and numbers are real.

The model is the scripted endpoint, named by two environment variables alone; it quotes what the tools told it.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path

from bench.scripted_openai import ScriptedOpenAI

DEERFLOW = [sys.executable, "-m", "deerflow_app.cli.main"]
TASK = "scenario:report Analyse the sales, with a chart"
SALES = Path(__file__).parents[2] / "examples" / "sales-2025.csv"


def _true_totals() -> tuple[int, int, dict[str, Decimal]]:
    """Rows, unusable rows, and revenue per region, counted here and not by the agent."""
    totals: dict[str, Decimal] = {}
    seen: set[str] = set()
    rows = list(csv.DictReader(SALES.open(encoding="utf-8", newline="")))
    dirty = 0
    for row in rows:
        try:
            amount = Decimal(row["quantity"]) * Decimal(row["unit_price"])
        except InvalidOperation:
            amount = Decimal("nan")
        bad_part = any(value.strip().startswith("-") for value in (row["quantity"], row["unit_price"]))
        if not amount.is_finite() or bad_part or not row["region"].strip() or row["order_id"] in seen:
            dirty += 1
            continue
        seen.add(row["order_id"])
        totals[row["region"].strip()] = totals.get(row["region"].strip(), Decimal(0)) + amount
    return len(rows), dirty, totals


def test_a_spreadsheet_becomes_a_report_with_a_chart(own_home: Path, tmp_path: Path):
    rows, dirty, totals = _true_totals()
    total = sum(totals.values())
    with ScriptedOpenAI() as endpoint:
        done = subprocess.run(
            [*DEERFLOW, "run", TASK, "--file", str(SALES), "--out", str(tmp_path / "out"), "--json"],
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "DEER_FLOW_HOME": str(own_home),
                "OPENAI_API_KEY": "k",
                "OPENAI_BASE_URL": endpoint.base_url,
            },
            capture_output=True,
            text=True,
            timeout=200,
        )
        requests = endpoint.requests
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)

    assert rows == 501 and dirty > 0
    assert f"{total:.2f}" in answer["text"].replace(",", "")
    report = (tmp_path / "out" / "report.md").read_text()
    for region, revenue in totals.items():
        assert region in report and f"{revenue:.2f}" in report.replace(",", "")
    chart = (tmp_path / "out" / "chart.png").read_bytes()
    assert chart.startswith(b"\x89PNG\r\n\x1a\n") and len(chart) > 5000
    assert sorted(Path(artifact["path"]).name for artifact in answer["artifacts"]) == ["chart.png", "report.md"]

    tools = [call["function"]["name"] for m in requests[-1]["messages"] for call in m.get("tool_calls") or ()]
    assert tools == ["bash", "bash", "write_file", "bash", "present_files"]
    results = [message["content"] for message in requests[-1]["messages"] if message["role"] == "tool"]
    assert f'"total": "{total:.2f}"' in results[1] and "pandas" in results[1]
