"""What the demo model says and writes. File names and cells are foreign text: everything shown is escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]

LABEL = "Demo model (scripted)"
HOW_TO_CONNECT = (
    "To have your own tasks done, connect a model. There are two ways:\n\n"
    "1. Set a provider key, e.g. `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`, in the environment or in `.env`, "
    "and start DeerFlow again.\n"
    "2. Add a model under `models:` in `config.yaml`."
)
NEXT = "Say **again** to see the run once more, or attach another file."


def opening(files: Sequence[str], steps: Sequence[str]) -> str:
    subject = f"for {code_list(files)}" if files else "for a look around the sandbox"
    plan = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
    return (
        f"**{LABEL}.** No AI provider is connected, so I follow a fixed script. "
        f"The tools, the sandbox and the files are real.\n\nMy plan {subject}:\n\n{plan}\n"
    )


def steps(files: Sequence[str]) -> tuple[str, ...]:
    if files:
        return ("Look at the data", "Work out the key figures", "Write a report", "Hand it over")
    return ("Look at the workspace and the system", "Collect the facts", "Write a report", "Hand it over")


def before_inspection(files: Sequence[str]) -> str:
    return f"Let me look at {code_list(files)} in the sandbox." if files else "Let me see what is there."


def before_report(facts: Facts) -> str:
    return f"{headline(facts)} Now I write the report with these figures."


def before_chart(facts: Facts, title: str) -> str:
    return f"{headline(facts)} matplotlib is available here, so I add a chart: {escape(title.lower())}."


def headline(facts: Facts) -> str:
    tables = facts["tables"]
    if len(tables) == 1:
        return f"{code(tables[0]['file'])} has {counted(tables[0]['rows'], 'row')} and {counted(tables[0]['width'], 'column')}."
    count = len(tables) + len(facts["others"])
    return f"I have the figures of {count} files." if count else "I have the facts."


def closing(facts: Facts, outputs: Sequence[str]) -> str:
    findings = "\n".join(f"- {line}" for line in _findings(facts))
    done = f"Done. I looked at {code_list(_names(facts))}" if _names(facts) else "Done. I looked around the sandbox"
    wrote = f" and wrote {counted(len(outputs), 'file')} for you." if outputs else "."
    parts = [done + wrote, f"**What I found**\n\n{findings}"]
    if outputs:
        parts.append("**Files**\n\n" + "\n".join(f"- {code(path)}" for path in outputs))
    parts.append(f"---\n\n**{LABEL}.** These steps were fixed in advance; the figures come from the command above.")
    return "\n\n".join([*parts, HOW_TO_CONNECT, NEXT])


def failure(what: str, reason: str) -> str:
    """An honest end: ``what`` did not work, and the first line of why."""
    line = next((line for line in reason.splitlines() if line.strip()), "no output")
    return (
        f"I could not {what} here, so I stop. The reason given was:\n\n> {escape(line[:300])}\n\n"
        "`deerflow doctor` checks the sandbox and says what to do.\n\n"
        f"---\n\n**{LABEL}.** {HOW_TO_CONNECT}\n\nSay **again** to retry."
    )


def no_tools() -> str:
    return (
        f"**{LABEL}.** No AI provider is connected, and this agent has no tools with which I could show something.\n\n"
        f"{HOW_TO_CONNECT}"
    )


def greeting() -> str:
    return (
        f"Hello! I am DeerFlow's **{LABEL.lower()}**: no AI provider is connected yet. "
        "I can still show you how a task is done here, with real tools in a real sandbox:\n\n"
        "- Attach a CSV file, and I analyse it and write a report.\n"
        "- Or say **go**, and I look around the sandbox.\n\n"
        f"{HOW_TO_CONNECT}"
    )


def answer(request: str, *, ran_before: bool) -> str:
    """To anything that is not a run: I am a script."""
    if re.search(r"\b(thanks?|thank you|thx|danke|merci|gracias)\b|谢", request, re.IGNORECASE):
        return f"You are welcome! (**{LABEL}**)\n\n{NEXT}"
    if re.search(r"\b(connect|provider|api.?key|config|set ?up|install|real model)", request, re.IGNORECASE):
        return f"**{LABEL}.** {HOW_TO_CONNECT}\n\nOnce a model is there, it becomes the default and I step back."
    done = "The run above followed a script" if ran_before else "I follow a script"
    return (
        f"That is a question for a real model. I am the **{LABEL.lower()}**: {done.lower()}, "
        f"so I cannot answer it.\n\n{HOW_TO_CONNECT}\n\n{NEXT}"
    )


def report(facts: Facts, chart: str | None) -> str:
    subject = ", ".join(escape(name) for name in _names(facts)) or "the sandbox"
    parts = [
        f"# Demo report: {subject}",
        f"> Written by DeerFlow's {LABEL.lower()}. The figures were computed by a command "
        "that ran in the sandbox; the text around them is fixed.",
        "## In short\n\n" + "\n".join(f"- {line}" for line in _findings(facts)),
    ]
    if chart:
        parts.append(f"![{escape(chart_title(facts) or 'Chart')}]({chart})")
    elif pairs := chart_data(facts):
        parts.append(f"{escape(chart_title(facts))}:\n\n{_bars(pairs)}")
    parts += [_table_section(table) for table in facts["tables"]]
    parts += [_other_section(other) for other in facts["others"]]
    if system := facts.get("system"):
        parts.append(_system_section(system))
    parts.append(f"## Next\n\n{HOW_TO_CONNECT}")
    return "\n\n".join(parts) + "\n"


def chart_data(facts: Facts) -> list[Any]:
    """Label and value pairs worth a chart: a measure by category, else the most frequent values of a column."""
    for table in facts["tables"]:
        if (group := table.get("group")) and len(group["rows"]) > 1:
            return list(group["rows"])
    column = _categories(facts["tables"])
    return list(column["top"]) if column else []


def chart_title(facts: Facts) -> str:
    for table in facts["tables"]:
        if (group := table.get("group")) and len(group["rows"]) > 1:
            return f"{group['of']} by {group['by']}"
    column = _categories(facts["tables"])
    return f"Rows by {column['name']}" if column else ""


def escape(text: object) -> str:
    """Foreign text as plain text of a Markdown line."""
    line = " ".join(str(text).split())
    return re.sub(r"([\\`*_{}\[\]<>#|!~])", r"\\\1", line)


def code(text: object) -> str:
    return "`" + " ".join(str(text).split()).replace("`", "'") + "`"


def code_list(texts: Sequence[str]) -> str:
    shown_texts = [code(text) for text in texts]
    return " and ".join([", ".join(shown_texts[:-1]), shown_texts[-1]] if len(shown_texts) > 1 else shown_texts)


def shown(value: Any) -> str:
    """A number as people read it, exact for whole numbers and for two decimals."""
    if not isinstance(value, int | float):
        return escape(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if abs(value) >= 0.01 else f"{value:.3g}"


def counted(number: Any, noun: str) -> str:
    return f"{shown(number)} {noun}" + ("" if number == 1 else "s")


def _size(table: Facts) -> str:
    return f"{counted(table['rows'], 'row')}, {counted(table['width'], 'column')}"


def _names(facts: Facts) -> list[str]:
    return [entry["file"] for kind in ("tables", "others") for entry in facts[kind]]


def _findings(facts: Facts) -> list[str]:
    lines: list[str] = []
    for table in facts["tables"]:
        partial = ", as far as read in the time given" if table["partial"] else ""
        lines.append(f"{code(table['file'])}: {_size(table)}{partial}")
        lines += _table_findings(table)
    for other in facts["others"]:
        lines.append(f"{code(other['file'])}: {_other_detail(other)}")
    for name, reason in facts.get("failed", []):
        lines.append(f"{code(name)} could not be read: {escape(reason)}")
    if system := facts.get("system"):
        lines.append(
            f"{escape(system['system'])}, Python {escape(system['python'])}, {system['processors']} processors"
        )
        lines.append(f"{system['free_gb']} GB free, programs: {escape(', '.join(system['programs']) or 'none')}")
    return lines


def _table_findings(table: Facts) -> list[str]:
    lines: list[str] = []
    group = table.get("group")
    if group and group["rows"]:
        name, value = group["rows"][0]
        lines.append(f"Highest {code(group['of'])} by {code(group['by'])}: {escape(name)} with {shown(value)}")
    numbers = [column for column in table["columns"] if column["kind"] == "number"]
    measures = [c for c in numbers if group and c["name"] == group["of"]] or [c for c in numbers if not c.get("id")]
    if measures:
        measure = measures[0]
        lines.append(
            f"{code(measure['name'])}: total {shown(measure['sum'])}, mean {shown(measure['mean'])}, "
            f"from {shown(measure['min'])} to {shown(measure['max'])}"
        )
    if column := _categories([table]):
        value, count = column["top"][0]
        lines.append(f"Most frequent {code(column['name'])}: {escape(value)} ({counted(count, 'row')})")
    return lines


def _categories(tables: Sequence[Facts]) -> Facts | None:
    columns = [column for table in tables for column in table["columns"] if column["kind"] == "text"]
    return next((column for column in columns if len(column["top"]) > 1 and column["top"][0][1] > 1), None)


def _table_section(table: Facts) -> str:
    numbers = [column for column in table["columns"] if column["kind"] == "number"]
    texts = [column for column in table["columns"] if column["kind"] == "text"]
    dates = [column for column in table["columns"] if column["kind"] == "date"]
    parts = [f"## {escape(table['file'])}", f"{_size(table)}."]
    if numbers:
        rows = [[c["name"], *_figures(c)] for c in numbers]
        parts.append("### Numbers\n\n" + _markdown_table(["Column", "Min", "Mean", "Max", "Sum"], rows))
    if texts:
        rows = [[c["name"], shown(c["distinct"]), _top(c["top"])] for c in texts]
        parts.append("### Categories\n\n" + _markdown_table(["Column", "Distinct", "Most frequent"], rows))
    if dates:
        rows = [[c["name"], c["min"], c["max"]] for c in dates]
        parts.append("### Dates\n\n" + _markdown_table(["Column", "From", "To"], rows))
    if group := table.get("group"):
        rows = [[name, shown(value)] for name, value in group["rows"]]
        title = f"### {escape(group['of'])} by {escape(group['by'])}"
        more = f"\n\nThe first {len(rows)} of {group['all']}." if group["all"] > len(rows) else ""
        parts.append(f"{title}\n\n" + _markdown_table([group["by"], f"Sum of {group['of']}"], rows) + more)
    return "\n\n".join(parts)


def _figures(column: Facts) -> list[str]:
    # Adding up identifiers says nothing.
    middle, end = ("–", "–") if column.get("id") else (shown(column["mean"]), shown(column["sum"]))
    return [shown(column["min"]), middle, shown(column["max"]), end]


def _bars(pairs: Sequence[Sequence[Any]]) -> str:
    """A bar chart in characters, for lack of a better one."""
    largest = max(abs(value) for _, value in pairs) or 1
    width = max(len(name) for name, _ in pairs)
    lines = [f"{name:<{width}}  {'█' * round(32 * abs(value) / largest)} {shown(value)}" for name, value in pairs]
    return "```text\n" + "\n".join(lines).replace("`", "'") + "\n```"


def _top(pairs: Sequence[Sequence[Any]]) -> str:
    return ", ".join(f"{value} ({shown(count)})" for value, count in pairs)


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    cells = [[cell if cell == "---" else escape(cell) for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def _other_section(other: Facts) -> str:
    head = "\n".join(f"> {escape(line)}" for line in other.get("head", []))
    return f"## {escape(other['file'])}\n\n{_other_detail(other)}." + (f"\n\nIt begins:\n\n{head}" if head else "")


def _other_detail(other: Facts) -> str:
    size = f"{shown(other['bytes'])} bytes"
    if other["kind"] == "text":
        return f"{counted(other['lines'], 'line')}, {counted(other['words'], 'word')}, {size}"
    return f"binary, {size}"


def _system_section(system: Facts) -> str:
    rows = [
        ["System", system["system"]],
        ["Python", system["python"]],
        ["Processors", shown(system["processors"])],
        ["Free disk", f"{system['free_gb']} GB"],
        ["Directory", system["directory"]],
        ["Programs", ", ".join(system["programs"]) or "none"],
        ["Python packages", ", ".join(system["packages"]) or "none"],
        ["Files", ", ".join(system["files"]) or "none yet"],
    ]
    return "## The sandbox\n\n" + _markdown_table(["Fact", "Value"], rows)
