"""The demo model's program: reads files, prints what it finds and writes a Markdown report.

The demo model copies this file into the sandbox and runs it there, so it needs nothing but Python 3.8. openpyxl and
matplotlib are used where they are installed.
"""

import csv
import importlib
import json
import os
import platform
import re
import shutil
import sys
from collections import Counter
from decimal import Decimal
from itertools import islice
from pathlib import Path

MAX_ROWS, MAX_COLUMNS = 50_000, 12
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,2})?|[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
ID_NAME = re.compile(r"(^|[ _-])(id|index|key|no|nr)$", re.IGNORECASE)
MONEY_NAME = re.compile(r"revenue|sales|amount|total|turnover|profit|cost|price|umsatz|betrag", re.IGNORECASE)
INTRO = (
    "> Written by DeerFlow's demo model (scripted). The figures were computed by a command that ran in the sandbox; "
    "the text around them is fixed."
)


def one_line(text, limit=40):
    text = " ".join(str(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def escape(text):
    """Names and cells are foreign text: nothing in them becomes Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|!~])", r"\\\1", one_line(text, 300))


def code(text):
    return "`" + one_line(text, 300).replace("`", "'") + "`"


def shown(value):
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 0.01 else f"{value:.3g}"


def counted(number, noun):
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def markdown_table(*rows):
    lines = [[escape(cell) for cell in row] for row in rows]
    lines.insert(1, ["---"] * len(rows[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def parse_number(text, delimiter):
    if delimiter != "," and DECIMAL_COMMA.fullmatch(text):
        return Decimal(text.replace(".", "").replace(",", "."))
    return Decimal(text.replace(",", "")) if NUMBER.fullmatch(text) else None


class Column:
    """One column: its numbers if nearly all of its cells are numbers, else how often each text occurs."""

    def __init__(self, name, cells, delimiter):
        self.name, filled = name, [cell for cell in cells if cell]
        numbers = [parse_number(cell, delimiter) for cell in filled]
        self.numbers = [number for number in numbers if number is not None]
        if len(self.numbers) < 0.9 * len(filled):
            self.numbers = []
        self.texts = Counter() if self.numbers else Counter(filled)
        self.is_date = bool(self.texts) and all(DATE.fullmatch(text) for text in self.texts)
        self.is_id = bool(ID_NAME.search(name))

    def figures(self):
        values, total = self.numbers, sum(self.numbers)
        return min(values), total / len(values), max(values), total

    def most_frequent(self):
        return ", ".join(f"{one_line(text)} ({count:,})" for text, count in self.texts.most_common(5))


def sections_of_table(path, rows, delimiter=","):
    """The findings on one table and its section of the report."""
    header = [cell.strip() for cell in next(rows, [])]
    body = [[cell.strip() for cell in row] for row in islice(rows, MAX_ROWS) if any(map(str.strip, row))]
    if header and all(parse_number(cell, delimiter) is not None for cell in header):
        header, body = [""] * len(header), [header, *body]
    names = [name or f"column {index}" for index, name in enumerate(header, 1)]
    columns = [
        Column(name, [row[index] for row in body if index < len(row)], delimiter) for index, name in enumerate(names)
    ]
    size = f"{counted(len(body), 'row')}, {counted(len(columns), 'column')}"
    partial = f" (the first {MAX_ROWS:,} rows)" if len(body) >= MAX_ROWS else ""
    findings, parts = [f"{code(path.name)}: {size}{partial}"], [f"## {escape(path.name)}", f"{size}{partial}."]
    measures = sorted((c for c in columns if c.numbers and not c.is_id), key=lambda c: not MONEY_NAME.search(c.name))
    categories = [column for column in columns if column.texts and not column.is_date]
    groups = [column for column in categories if 1 < len(column.texts) <= 50]
    if measures and groups:
        sums = summed(columns.index(measures[0]), columns.index(groups[0]), body, delimiter)
        of, by = measures[0].name, groups[0].name
        findings.append(f"Highest {code(of)} by {code(by)}: {escape(sums[0][0])} with {shown(sums[0][1])}")
        parts += [f"### {escape(of)} by {escape(by)}", chart(f"{of} by {by}", sums)]
    if measures:
        low, mean, high, total = map(shown, measures[0].figures())
        findings.append(f"{code(measures[0].name)}: total {total}, mean {mean}, from {low} to {high}")
    if categories:
        value, count = categories[0].texts.most_common(1)[0]
        findings.append(f"Most frequent {code(categories[0].name)}: {escape(value)} ({counted(count, 'row')})")
    numbers = [
        [c.name, *(("–" if c.is_id and index % 2 else shown(figure)) for index, figure in enumerate(c.figures()))]
        for c in columns[:MAX_COLUMNS]
        if c.numbers
    ]
    texts = [[c.name, shown(len(c.texts)), c.most_frequent()] for c in columns[:MAX_COLUMNS] if c.texts]
    for title, head, lines in (
        ("Numbers", ["Column", "Min", "Mean", "Max", "Sum"], numbers),
        ("Categories", ["Column", "Distinct", "Most frequent"], texts),
    ):
        parts += [f"### {title}", markdown_table(head, *lines)] if lines else []
    return findings, parts


def summed(measure, group, rows, delimiter):
    """The eight largest sums of one column by the texts of another."""
    sums = {}
    for row in rows:
        number = parse_number(row[measure], delimiter) if len(row) > max(measure, group) else None
        if number is not None and row[group]:
            sums[row[group]] = sums.get(row[group], 0) + number
    return sorted(((one_line(name), total) for name, total in sums.items()), key=lambda pair: -pair[1])[:8]


def bars(pairs):
    largest, width = max(abs(value) for _, value in pairs) or 1, max(len(name) for name, _ in pairs)
    lines = [f"{name:<{width}}  {'█' * round(32 * abs(value) / largest)} {shown(value)}" for name, value in pairs]
    return "```text\n" + "\n".join(lines).replace("`", "'") + "\n```"


def chart(title, pairs):
    """An image where matplotlib works, else bars in characters."""
    target = Path(sys.argv[1], "demo-chart.png")
    try:
        figure = importlib.import_module("matplotlib.figure").Figure(
            figsize=(8, 0.5 * len(pairs) + 1.6), dpi=130, layout="tight"
        )
        axes = figure.subplots()
        # A dollar sign would begin a formula.
        names = [name.replace("$", r"\$") for name, _ in reversed(pairs)]
        axes.barh(names, [float(value) for _, value in reversed(pairs)], color="#4f6df5")
        figure.savefig(target)
    except Exception:
        return bars(pairs)
    return f"![{escape(title)}]({target.name})"


def encoding_of(head):
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if b"\0" in head:
        return None
    try:
        head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start <= len(head) - 4:
            return "latin-1"
    return "utf-8-sig"


def delimiter_of(text):
    lines = [line for line in text.splitlines()[:20] if line.strip()]
    return max(",;\t|", key=lambda delimiter: min((line.count(delimiter) for line in lines), default=0))


def sections_of_file(path):
    """The findings on one file and its section of the report."""
    with path.open("rb") as stream:
        head = stream.read(65536)
    size, suffix, encoding = f"{path.stat().st_size:,} bytes", path.suffix.lower(), encoding_of(head)
    if suffix in (".xlsx", ".xlsm"):
        sheet = importlib.import_module("openpyxl").load_workbook(path, read_only=True, data_only=True).worksheets[0]
        rows = (["" if cell is None else str(cell) for cell in row] for row in sheet.iter_rows(values_only=True))
        return sections_of_table(path, rows)
    if encoding is None:
        return [f"{code(path.name)}: binary, {size}"], [f"## {escape(path.name)}", f"Binary, {size}."]
    with path.open(encoding=encoding, errors="replace", newline="") as stream:
        if suffix in (".csv", ".tsv", ".tab"):
            delimiter = delimiter_of(head.decode(encoding, "replace"))
            lines = (line.replace("\0", "") for line in stream)
            return sections_of_table(path, csv.reader(lines, delimiter=delimiter), delimiter)
        text = stream.read()
    document = json.loads(text) if suffix == ".json" else None
    if isinstance(document, list) and document and all(isinstance(record, dict) for record in document):
        names = list(document[0])
        records = [["" if record.get(name) is None else str(record[name]) for name in names] for record in document]
        return sections_of_table(path, iter([names, *records]))
    lines = text.splitlines()
    detail = f"{counted(len(lines), 'line')}, {counted(len(text.split()), 'word')}, {size}"
    quote = "\n".join(f"> {escape(one_line(line, 100))}" for line in lines[:5])
    return [f"{code(path.name)}: {detail}"], [f"## {escape(path.name)}", f"{detail}.", quote]


def sections_of_sandbox():
    programs = [name for name in ("git", "node", "rg", "jq", "curl", "gcc") if shutil.which(name)]
    files = sorted(str(file) for file in Path("..").glob("*/*") if file.is_file())[:10]
    system, python = f"{platform.system()} {platform.release()}", platform.python_version()
    free = f"{shutil.disk_usage('.').free / 1e9:.1f} GB"
    rows = [
        ["System", system],
        ["Python", python],
        ["Processors", os.cpu_count()],
        ["Free disk", free],
        ["Directory", Path.cwd()],
        ["Programs", ", ".join(programs) or "none"],
        ["Files", ", ".join(files) or "none yet"],
    ]
    findings = [
        f"{escape(system)}, Python {python}, {os.cpu_count()} processors",
        f"{free} free, programs: {', '.join(programs) or 'none'}",
    ]
    return findings, ["## The sandbox", markdown_table(["Fact", "Value"], *rows)]


def main(outputs, *names):
    csv.field_size_limit(10_000_000)
    Path(outputs, "demo-chart.png").unlink(missing_ok=True)
    findings, parts = ([], []) if names else sections_of_sandbox()
    for path in map(Path, names):
        try:
            found, sections = sections_of_file(path)
        except Exception as error:
            reason = one_line(f"{type(error).__name__}: {error}", 120)
            found, sections = [f"{code(path.name)} could not be read: {escape(reason)}"], []
        findings, parts = findings + found, parts + sections
    subject = ", ".join(escape(Path(name).name) for name in names) or "the sandbox"
    short = "\n".join(f"- {line}" for line in findings)
    report = "\n\n".join([f"# Demo report: {subject}", INTRO, "## In short", short, *parts])
    Path(outputs, "demo-report.md").write_text(report + "\n", encoding="utf-8")
    written = "demo-report.md demo-chart.png" if "](demo-chart.png)" in report else "demo-report.md"
    sys.stdout.buffer.write(f"{short}\nDEMO-FILES {written}\n".encode("utf-8", "replace"))


if __name__ == "__main__":
    main(*sys.argv[1:])
