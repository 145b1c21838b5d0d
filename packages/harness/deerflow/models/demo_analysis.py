"""What the demo model runs in the sandbox: look at files with nothing but Python's standard library.

The source of this file is written into the sandbox and run there, so it stands alone and works with any Python from 3.8. It prints a summary for people and, behind ``DEMO-FACTS``, the same as JSON.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import json
import os
import platform
import re
import shutil
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

SECONDS = 20
MAX_COLUMNS = 12
MAX_DISTINCT = 2000
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?")
GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
ID_NAME = re.compile(r"(^|[ _-])(id|index|key|no|nr)$", re.IGNORECASE)
MONEY_NAME = re.compile(r"revenue|sales|amount|total|turnover|profit|cost|price|umsatz|betrag", re.IGNORECASE)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")


def number(text, delimiter):
    if NUMBER.fullmatch(text):
        return Decimal(text)
    if delimiter != "," and DECIMAL_COMMA.fullmatch(text):
        return Decimal(text.replace(".", "").replace(",", "."))
    return Decimal(text.replace(",", "")) if GROUPED.fullmatch(text) else None


def plain(value):
    return int(value) if value == int(value) else round(float(value), 6)


def short(text, limit=40):
    text = " ".join(str(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


class Column:
    def __init__(self, name):
        self.name, self.filled, self.numbers, self.dates = name, 0, 0, 0
        self.sum, self.min, self.max = Decimal(0), None, None
        self.values, self.many = Counter(), False

    def add(self, text, delimiter):
        text = text.strip()
        if not text:
            return
        self.filled += 1
        value = number(text, delimiter)
        if value is not None:
            self.numbers += 1
            self.sum += value
            self.min = value if self.min is None else min(self.min, value)
            self.max = value if self.max is None else max(self.max, value)
        elif DATE.fullmatch(text):
            self.dates += 1
        if text in self.values or len(self.values) < MAX_DISTINCT:
            self.values[text] += 1
        else:
            self.many = True

    @property
    def is_number(self):
        return self.numbers > 0 and self.numbers >= 0.9 * self.filled

    @property
    def is_date(self):
        return self.dates > 0 and self.dates >= 0.9 * self.filled

    @property
    def is_id(self):
        return bool(ID_NAME.search(self.name))

    def facts(self):
        facts = {"name": short(self.name), "kind": "number" if self.is_number else "text", "filled": self.filled}
        if self.is_number:
            facts.update(min=plain(self.min), max=plain(self.max), sum=plain(self.sum))
            facts.update(mean=plain(self.sum / self.numbers), id=self.is_id)
        elif self.is_date and not self.many:
            facts.update(kind="date", min=short(min(self.values)), max=short(max(self.values)))
        else:
            facts["distinct"] = f"over {MAX_DISTINCT}" if self.many else len(self.values)
            facts["top"] = [[short(value), count] for value, count in self.values.most_common(5)]
        return facts


def guess_delimiter(lines):
    def score(delimiter):
        counts = [line.count(delimiter) for line in lines if line.strip()]
        return (min(counts) > 0, min(counts), max(counts)) if counts else (False, 0, 0)

    return max([",", ";", "\t", "|"], key=score)


def summarise(name, open_rows, delimiter=","):
    """Facts of a table. open_rows gives a fresh iterator over its rows, the header first."""
    deadline = time.monotonic() + SECONDS
    rows = open_rows()
    header = next(rows, [])
    if header and all(number(cell.strip(), delimiter) is not None for cell in header):
        header, rows = [f"column {i + 1}" for i in range(len(header))], open_rows()
    columns = [Column(cell.strip() or f"column {i + 1}") for i, cell in enumerate(header)]
    count, partial = 0, False
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        count += 1
        for column, cell in zip(columns, row):  # noqa: B905
            column.add(cell, delimiter)
        if count % 2000 == 0 and time.monotonic() > deadline:
            partial = True
            break
    shown = [column.facts() for column in columns[:MAX_COLUMNS]]
    facts = {"file": name, "rows": count, "width": len(columns), "columns": shown, "partial": partial}
    if not partial:
        facts["group"] = grouped(columns, open_rows(), delimiter, deadline)
    return facts


def grouped(columns, rows, delimiter, deadline):
    """The first proper measure, summed by the first proper category."""
    measures = [i for i, c in enumerate(columns) if c.is_number and not c.is_id]
    measures.sort(key=lambda i: not MONEY_NAME.search(columns[i].name))
    words = [i for i, c in enumerate(columns) if not (c.is_number or c.is_date or c.many)]
    category = next((i for i in words if 1 < len(columns[i].values) <= 50), None)
    if not measures or category is None:
        return None
    measure = measures[0]
    totals = {}
    for row in rows:
        if len(row) <= max(measure, category) or time.monotonic() > deadline:
            continue
        value, key = number(row[measure].strip(), delimiter), row[category].strip()
        if value is not None and key:
            totals[key] = totals.get(key, Decimal(0)) + value
    best = sorted(totals.items(), key=lambda item: -item[1])[:8]
    pairs = [[short(key), plain(value)] for key, value in best]
    return {"by": short(columns[category].name), "of": short(columns[measure].name), "rows": pairs, "all": len(totals)}


def encoding_of(head):
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if b"\0" in head:
        return None
    try:
        head.decode("utf-8-sig")
        return "utf-8-sig"
    except UnicodeDecodeError as error:
        return "utf-8-sig" if error.start > len(head) - 4 and len(head) > 4 else "latin-1"


def csv_rows(path, encoding, delimiter):
    with path.open(encoding=encoding, errors="replace", newline="") as lines:
        yield from csv.reader((line.replace("\0", "") for line in lines), delimiter=delimiter)


def json_rows(document):
    names = list(document[0])
    yield [str(name) for name in names]
    for record in document:
        yield ["" if record.get(name) is None else str(record.get(name)) for name in names]


def sheet_rows(path):
    openpyxl = importlib.import_module("openpyxl")
    sheet = openpyxl.load_workbook(path, read_only=True, data_only=True).worksheets[0]
    for row in sheet.iter_rows(values_only=True):
        yield ["" if cell is None else str(cell) for cell in row]


def text_facts(path, encoding):
    lines = words = 0
    head = []
    with path.open(encoding=encoding, errors="replace") as text:
        for line in text:
            lines, words = lines + 1, words + len(line.split())
            if len(head) < 5 and line.strip():
                head.append(short(line, 100))
    return {"kind": "text", "lines": lines, "words": words, "head": head}


def look_at(path):
    """Facts of one file: ("tables" or "others", facts)."""
    size, suffix = path.stat().st_size, path.suffix.lower()
    with path.open("rb") as stream:
        head = stream.read(65536)
    encoding = encoding_of(head)
    if suffix in (".xlsx", ".xlsm") and importlib.util.find_spec("openpyxl"):
        return "tables", summarise(path.name, lambda: sheet_rows(path))
    if encoding is None:
        return "others", {"file": path.name, "bytes": size, "kind": "binary"}
    if suffix in (".csv", ".tsv", ".tab"):
        delimiter = guess_delimiter(head.decode(encoding, "replace").splitlines()[:20])
        return "tables", summarise(path.name, lambda: csv_rows(path, encoding, delimiter), delimiter)
    if suffix == ".json" and size < 20_000_000:
        document = json.loads(path.read_text(encoding=encoding))
        if isinstance(document, list) and document and all(isinstance(record, dict) for record in document):
            return "tables", summarise(path.name, lambda: json_rows(document))
    return "others", dict(text_facts(path, encoding), file=path.name, bytes=size)


def system_facts():
    programs = [name for name in ("git", "node", "rg", "jq", "curl", "gcc") if shutil.which(name)]
    packages = [name for name in ("pandas", "numpy", "matplotlib", "openpyxl") if importlib.util.find_spec(name)]
    data = Path("/mnt/user-data")
    files = sorted(str(p) for p in data.glob("*/*") if p.is_file())[:10] if data.is_dir() else []
    return {
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "free_gb": round(shutil.disk_usage(".").free / 1e9, 1),
        "directory": str(Path.cwd()),
        "programs": programs,
        "packages": packages,
        "files": files,
    }


def describe(kind, facts):
    if kind == "others":
        detail = f"{facts['lines']} lines, {facts['words']} words" if facts["kind"] == "text" else facts["kind"]
        return [f"{facts['file']}: {detail}, {facts['bytes']} bytes"]
    lines = [f"{facts['file']}: {facts['rows']} rows, {facts['width']} columns"]
    for column in facts["columns"]:
        if column["kind"] == "number":
            detail = "  ".join(f"{key} {column[key]}" for key in ("min", "mean", "max", "sum"))
        elif column["kind"] == "date":
            detail = f"from {column['min']} to {column['max']}"
        else:
            top = ", ".join(f"{value} ({count})" for value, count in column["top"])
            detail = f"{column['distinct']} distinct: {top}"
        lines.append(f"  {column['name']}  [{column['kind']}]  {detail}")
    return lines


def main(arguments):
    csv.field_size_limit(10_000_000)
    facts = {"tables": [], "others": [], "failed": [], "matplotlib": bool(importlib.util.find_spec("matplotlib"))}
    lines = []
    for argument in arguments:
        path = Path(argument)
        try:
            kind, found = look_at(path)
            facts[kind].append(found)
            lines += describe(kind, found)
        except Exception as error:
            facts["failed"].append([path.name, f"{type(error).__name__}: {short(error, 120)}"])
            lines.append(f"{path.name}: {error}")
    if not arguments:
        facts["system"] = system_facts()
        for name, value in facts["system"].items():
            text = (", ".join(value) or "none") if isinstance(value, list) else value
            lines.append(f"{name}: {text}")
    lines.append("DEMO-FACTS " + json.dumps(facts, ensure_ascii=False))
    io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", errors="replace").write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
