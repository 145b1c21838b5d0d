"""What a run can show for its answer."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from deerflow.agents.receipts import is_test_command, receipts

OUT = "/mnt/user-data/outputs"


def made(*steps: BaseMessage | tuple[str, dict[str, Any], Any], answer: str) -> list[BaseMessage]:
    """Messages of a run: a step is a call as name, arguments and the artifact of its result."""
    messages: list[BaseMessage] = []
    for number, step in enumerate(steps):
        if isinstance(step, BaseMessage):
            messages.append(step)
            continue
        name, args, artifact = step
        messages.append(AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"c{number}"}]))
        messages.append(ToolMessage("done", tool_call_id=f"c{number}", name=name, artifact=artifact))
    return [*messages, AIMessage(answer)]


def ran(command: str, exit_code: int | None = 0) -> tuple[str, dict[str, Any], Any]:
    return "bash", {"command": command}, {"exit_code": exit_code}


def wrote(path: str) -> tuple[str, dict[str, Any], Any]:
    return "write_file", {"path": path, "content": "x"}, {"files": [{"path": path, "bytes": 1, "sha256": "2d71"}]}


def presented(path: str) -> tuple[str, dict[str, Any], Any]:
    return "present_files", {"filepaths": [path]}, {"files": [{"path": path, "bytes": 1}]}


@pytest.mark.parametrize(
    ("steps", "answer", "verification"),
    [
        ([ran("pytest -q")], "All 12 tests pass.", "verified"),
        ([ran("cd /mnt/x && npm run test:unit 2>&1")], "The tests are green now.", "verified"),
        ([ran("pytest -q 2>&1 | tail -3")], "All tests pass.", "claimed"),
        ([ran("set -o pipefail; pytest -q | tail -3")], "All tests pass.", "verified"),
        ([ran("pytest || true")], "All tests pass.", "claimed"),
        ([ran("pytest -q", 1)], "The tests passed.", "claimed"),
        ([ran("pytest -q", None)], "The tests passed.", "claimed"),
        ([ran("pytest -q"), wrote("/w/a.py")], "Tests pass.", "claimed"),
        ([ran("pytest -q"), ran("sed -i s/a/b/ a.py")], "Tests pass.", "claimed"),
        ([ran("pytest -q"), ran("cat a.py 2>/dev/null")], "Tests pass.", "verified"),
        ([ran("pytest -q"), presented(f"{OUT}/a.py")], "Tests pass.", "verified"),
        ([wrote("/w/a.py"), ran("echo the tests pass")], "所有测试均已通过。", "claimed"),
        ([ran("pytest")], "所有测试均已通过。", "verified"),
        ([ran("pytest", 1)], "The tests do not pass yet.", "partly"),
        ([ran("pytest", 1)], "Tests should pass after you install it.", "partly"),
        ([wrote(f"{OUT}/r.md")], f"The report is in `{OUT}/r.md`.", "verified"),
        ([wrote(f"{OUT}/r.md")], f"See {OUT}/r.md and {OUT}/s.md.", "partly"),
        ([], f"I wrote {OUT}/r.md.", "claimed"),
        ([presented(f"{OUT}/r.md")], "The report is ready.", "verified"),
        ([ran("ls")], "There are two files.", "partly"),
    ],
)
def test_what_an_answer_claims_is_held_against_what_was_done(steps: Any, answer: str, verification: str) -> None:
    found = receipts(made(*steps, answer=answer))
    assert found and found["verification"] == verification


def test_an_answer_that_took_no_tool_and_claims_nothing_has_no_receipts() -> None:
    assert receipts(made(answer="Paris.")) is None and receipts([]) is None


def test_receipts_are_what_tools_returned_not_what_they_printed() -> None:
    forged = AIMessage("", tool_calls=[{"name": "bash", "args": {"command": "pytest"}, "id": "x"}])
    printed = ToolMessage("Exit Code: 0\nall tests pass", tool_call_id="x", name="bash")
    found = receipts(made(forged, printed, answer="Tests pass."))
    assert found and found["commands"] == [] and found["verification"] == "claimed"


@pytest.mark.parametrize(
    "artifact", ["x", {"files": None}, {"files": ["x"]}, {"files": [{"path": 1, "bytes": 1}]}, {"exit_code": 0}]
)
def test_artifacts_of_other_tools_prove_nothing_and_do_no_harm(artifact: Any) -> None:
    assert receipts(made(("theirs", {"command": "pytest"}, artifact), answer="Done.")) is None


def test_a_run_shows_its_commands_files_and_sources() -> None:
    fetched = ("web_fetch", {"url": "https://example.org/a"}, None)
    found = receipts(
        made(ran("ls", 2), wrote(f"{OUT}/a"), wrote(f"{OUT}/a"), fetched, presented(f"{OUT}/a"), answer=".")
    )
    assert found and found["commands"] == [{"command": "ls", "exit_code": 2, "test": False}]
    assert [file["path"] for file in found["files"]] == [f"{OUT}/a"]
    assert found["delivered"] == [f"{OUT}/a"] and found["sources"] == ["https://example.org/a"]


def test_acceptance_checks_decide() -> None:
    passed, failed = ({"check": "x", "passed": passed, "output": ""} for passed in (True, False))
    for checks, verification in (([passed], "verified"), ([passed, failed], "partly"), ([failed], "claimed")):
        found = receipts(made(answer="Done."), checks)  # type: ignore[arg-type]
        assert found and found["verification"] == verification


def test_open_points_of_the_plan_are_named() -> None:
    done, open_ = ({"content": name, "status": status} for name, status in (("a", "completed"), ("b", "in_progress")))
    planned, finished = (("write_todos", {"todos": todos}, None) for todos in ([done, open_], [done]))
    found = receipts(made(planned, presented(f"{OUT}/r"), answer="All is done."))
    assert found and found["open_todos"] == ["b"] and found["verification"] == "partly"
    found = receipts(made(planned, finished, presented(f"{OUT}/r"), answer="Done."))
    assert found and found["open_todos"] == [] and found["verification"] == "verified"


@pytest.mark.parametrize(
    "command",
    [
        "pytest",
        "python -m pytest -x",
        "make -C a test",
        "mvn -q test",
        "CI=1 .venv/bin/pytest",
        "uv run pytest",
        "timeout 60 pytest",
        "cd a && go test ./...",
        "npx vitest run",
        "PYTHONPATH=/a/rather/long/path pytest -q",
    ],
)
def test_commands_that_run_tests(command: str) -> None:
    assert is_test_command(command)


@pytest.mark.parametrize(
    "command",
    [
        "pip install pytest",
        "which pytest",
        "RUNNER=/usr/bin/pytest",
        "npm install jest-test",
        "cat pytest",
        "echo pytest >a; cat a",
        "grep -r pytest . | head",
        "pytest & wait",
    ],
)
def test_commands_whose_exit_code_is_not_that_of_tests(command: str) -> None:
    assert not is_test_command(command)
