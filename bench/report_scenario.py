"""The ``report`` scenario: a conversation that works on a real CSV file and quotes what the tools really found.

Look at the file → compute totals with Python → write a report with *these* numbers → draw a chart → present both →
say the result. Every number in the report, the chart and the last message is read from the tool result in the
request, so a transcript of this conversation is evidence that the tools did the work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.replies import Reply, Text, ToolCalls

UPLOAD = re.compile(r"/mnt/user-data/uploads/[^\s\"'<>`()\[\]]+?\.csv")
OUTPUTS = "/mnt/user-data/outputs"
REPORT, CHART = f"{OUTPUTS}/report.md", f"{OUTPUTS}/chart.png"

ANALYSIS = """python3 - "{path}" <<'EOF'
import csv, json, sys
from decimal import Decimal, InvalidOperation

def number(text):
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        return None
    return value if value.is_finite() and value >= 0 else None

def rows(path):
    try:
        import pandas
    except ImportError:
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file)), "csv"
    frame = pandas.read_csv(path, dtype=str, keep_default_na=False)
    return frame.to_dict("records"), "pandas " + pandas.__version__

records, reader = rows(sys.argv[1])
header = list(records[0])
group = next(name for name in ("region", "category", header[0]) if name in header)
totals, seen, dirty = {{}}, set(), 0
for record in records:
    if "amount" in header:
        amount = number(record["amount"])
    else:
        quantity, price = number(record["quantity"]), number(record["unit_price"])
        amount = None if quantity is None or price is None else quantity * price
    name, key = record[group].strip(), record[header[0]]
    if amount is None or not name or key in seen:
        dirty += 1
        continue
    seen.add(key)
    totals[name] = totals.get(name, Decimal(0)) + amount
ranked = sorted(totals.items(), key=lambda item: -item[1])
print(json.dumps({{"rows": len(records), "dirty_rows": dirty, "valid_rows": len(records) - dirty, "group": group,
    "total": str(sum(totals.values(), Decimal(0)).quantize(Decimal("0.01"))),
    "by_group": {{name: str(value.quantize(Decimal("0.01"))) for name, value in ranked}}, "reader": reader}}))
EOF"""

DRAWING = """MPLCONFIGDIR=/tmp/matplotlib python3 - <<'EOF'
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

totals = {totals}
figure, axes = plt.subplots(figsize=(7, 4))
axes.bar(list(totals), list(totals.values()), color="#4c72b0")
axes.set_title("Total by {group}")
axes.tick_params(axis="x", rotation=30)
figure.tight_layout()
figure.savefig("{chart}", dpi=100)
print("wrote {chart}")
EOF"""

Fit = Callable[[Sequence[Mapping[str, Any]], str, Mapping[str, Any]], tuple[str, dict[str, Any]]]


def answer(messages: Sequence[Mapping[str, Any]], step: int, tools: Sequence[Mapping[str, Any]], fit: Fit) -> Reply:
    """The reply at ``step``; a text that names the reason if the file or the numbers are missing."""
    path = uploaded_csv(messages)
    if path is None:
        return Text("I found no /mnt/user-data/uploads/*.csv in this conversation. Please upload a CSV file.")
    if step == 0:
        command = f'head -n 5 "{path}" && wc -l "{path}"'
        return ToolCalls(fit(tools, "bash", {"description": "Look at the file", "command": command}))
    if step == 1:
        command = ANALYSIS.format(path=path)
        return ToolCalls(fit(tools, "bash", {"description": "Compute the totals", "command": command}))
    found = numbers(messages)
    if found is None:
        return Text(f"The computation failed, so there is no report. Its result was: {_last_result(messages)[-500:]}")
    if step == 2:
        wanted = {"description": "Write the report", "path": REPORT, "content": report(path, found)}
        return ToolCalls(fit(tools, "write_file", wanted))
    if step == 3:
        totals = {name: float(value) for name, value in found["by_group"].items()}
        command = DRAWING.format(totals=json.dumps(totals, ensure_ascii=False), group=found["group"], chart=CHART)
        return ToolCalls(fit(tools, "bash", {"description": "Draw the chart", "command": command}))
    drawn = any(f"wrote {CHART}" in text for text in _results(messages))
    if step == 4:
        files = [REPORT, CHART] if drawn else [REPORT]
        return ToolCalls(fit(tools, "present_files", {"filepaths": files}))
    return Text(summary(found, drawn))


def uploaded_csv(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The last uploaded CSV path that a user message names."""
    for message in reversed(messages):
        if message.get("role") == "user" and (paths := UPLOAD.findall(_text(message))):
            return paths[-1]
    return None


def numbers(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The JSON line that the computation printed, from the newest tool result that holds one."""
    for result in reversed(_results(messages)):
        for line in result.splitlines():
            start = line.find('{"rows"')
            if start >= 0:
                try:
                    return json.JSONDecoder().raw_decode(line, start)[0]
                except json.JSONDecodeError:
                    continue
    return None


def report(path: str, found: Mapping[str, Any]) -> str:
    lines = [
        f"# {path.rsplit('/', 1)[-1]}",
        "",
        f"{found['rows']} rows, {found['dirty_rows']} of them unusable (missing or wrong numbers, duplicates).",
        f"Total over the {found['valid_rows']} valid rows: **{found['total']}**.",
        "",
        f"| {found['group']} | total |",
        "|---|---:|",
        *(f"| {name} | {value} |" for name, value in found["by_group"].items()),
        "",
        f"![Total by {found['group']}](chart.png)",
        "",
    ]
    return "\n".join(lines)


def summary(found: Mapping[str, Any], drawn: bool) -> str:
    best, value = next(iter(found["by_group"].items()))
    files = "report.md and chart.png" if drawn else "report.md (the chart could not be drawn)"
    return (
        f"The file has {found['rows']} rows, {found['dirty_rows']} unusable. The total is {found['total']}; "
        f"the largest {found['group']} is {best} with {value}. I wrote {files}."
    )


def _results(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tool results of the current turn."""
    turn: list[str] = []
    for message in reversed(messages):
        if message.get("role") == "user" and "scenario:report" in _text(message):
            break
        if message.get("role") == "tool":
            turn.append(_text(message))
    return turn[::-1]


def _last_result(messages: Sequence[Mapping[str, Any]]) -> str:
    return (_results(messages) or ["nothing"])[-1]


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")
