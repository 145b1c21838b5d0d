from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.theme import Theme

from deerflow_app.cli.chat.cards import card, newly_done, short_path, summary, todo_panel
from deerflow_app.cli.chat.turn import ToolRun
from deerflow_app.cli.terminal import THEME


def shown(body: Any, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, theme=Theme(THEME), highlight=False, record=True, markup=False)
    console.print(body)
    return console.export_text()


def tool(name: str, result: str | None = None, *, failed: bool = False, output: str = "", **args: Any) -> ToolRun:
    run = ToolRun("call", name, args, output, result, failed)
    run.ended = run.started if result is not None else None
    return run


def test_a_running_command_shows_what_it_does_and_its_last_output() -> None:
    run = tool("bash", description="Count rows", command="wc -l *.csv", output="".join(f"row {i}\n" for i in range(30)))
    text = shown(card(run))
    assert "◌ Run Count rows" in text
    assert "│ $ wc -l *.csv" in text
    assert "… 22 earlier lines" in text
    assert "row 29" in text and "row 3\n" not in text


def test_a_failing_command_is_marked_with_its_exit_code() -> None:
    text = shown(card(tool("bash", "no such file\nExit Code: 2", description="Look", command="ls x")))
    assert "✗ Run Look  exit 2" in text
    assert "Exit Code" not in text


def test_a_command_that_the_sandbox_stopped_is_marked() -> None:
    result = "yyy\n[output truncated: 9 bytes in all]\nError: the command was stopped: it printed without end."
    assert "✗ Run Look  stopped" in shown(card(tool("bash", result, description="Look", command="yes")))


def test_output_that_only_mentions_an_exit_code_is_not_a_failure() -> None:
    text = shown(card(tool("bash", "Exit Code: 2\nall fine", description="Look", command="x")))
    assert text.startswith("● Run Look")


def test_an_edit_is_shown_as_a_diff() -> None:
    run = tool("str_replace", "OK", path="/mnt/user-data/workspace/a.py", old_str="a\nb\nc", new_str="a\nB\nc")
    lines = [line.strip() for line in shown(card(run)).splitlines()]
    assert lines == ["● Edit workspace/a.py", "│   a", "│ - b", "│ + B", "│   c"]


def test_a_written_file_is_previewed_and_counted() -> None:
    run = tool("write_file", "OK", path="/mnt/user-data/outputs/r.md", content="\n".join(f"l{i}" for i in range(50)))
    text = shown(card(run))
    assert "● Write outputs/r.md  50 lines" in text
    assert "│ + l0" in text and "… 42 more lines" in text


def test_an_error_is_shown_in_words() -> None:
    run = tool("read_file", "Error: File not found: /mnt/user-data/x", failed=True, path="/mnt/user-data/x")
    assert "✗ Read x" in shown(card(run))
    assert "│ File not found" in shown(card(run))


def test_an_unknown_tool_still_gets_a_card() -> None:
    text = shown(card(tool("crm_lookup", "3 customers", customer="ACME", limit=None)))
    assert "● crm_lookup customer: ACME" in text and "3 customers" in text and "limit" not in text


@pytest.mark.parametrize("width", [20, 40, 200])
def test_no_line_of_a_card_is_wider_than_the_screen(width: int) -> None:
    run = tool("bash", "报告" * 200, description="很长的描述" * 30, command="echo " + "x" * 500)
    assert all(cell_len(line) <= width for line in shown(card(run), width).splitlines())


def test_escape_sequences_in_arguments_and_output_never_reach_the_terminal() -> None:
    run = tool("bash", "\x1b]52;c;AAAA\x07ok", description="\x1b[2Jx", command="printf '\x1b[31m'")
    console = Console(file=io.StringIO(), width=80, theme=Theme(THEME), force_terminal=False)
    console.print(card(run))
    assert "\x1b" not in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("args", [{}, {"path": None}, {"path": 3, "content": ["x"]}, {"filepaths": None, "pattern": 1}])
@pytest.mark.parametrize(
    "name",
    ["bash", "read_file", "write_file", "str_replace", "ls", "glob", "grep", "present_files", "write_todos", "x"],
)
def test_arguments_that_a_model_got_wrong_do_not_break_the_card(name: str, args: dict[str, Any]) -> None:
    assert shown(card(ToolRun("1", name, args, result="Error: bad arguments", failed=True)))
    assert shown(card(ToolRun("1", name, args)))
    assert shown(card(ToolRun("1", name, args, result="OK")))


def test_arguments_of_any_tool_are_words_and_not_python() -> None:
    args = {"query": "owls", "deep_search": True, "sites": ["a.org", "b.org"], "range": {"from": 3, "safe": False}}
    title = shown(card(tool("web_search", "found", **args)), 200).splitlines()[0]
    assert "query: owls, deep search: yes, sites: a.org, b.org, range (from: 3, safe: no)" in title


def test_the_plan_shows_progress() -> None:
    todos = [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}, {"content": "c"}]
    lines = [line.strip() for line in shown(todo_panel(todos)).splitlines()]
    assert lines == ["Plan 1 of 3 done", "✓ a", "▸ b", "○ c"]


def test_only_steps_that_were_just_completed_are_news() -> None:
    before = [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]
    after = [{"content": "a", "status": "completed"}, {"content": "b", "status": "completed"}]
    assert newly_done(before, after) == ["b"]


def test_the_summary_of_a_call_is_one_plain_line() -> None:
    assert summary(tool("bash", "x", description="Count\nrows", command="wc")) == "Run Count"


def test_paths_lose_the_root_that_all_share() -> None:
    assert short_path("/mnt/user-data/outputs/a\nb.md") == "outputs/a⏎b.md"
