"""What a run can show for its answer."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from deerflow.agents.receipts import TESTS_PASS, Receipts, answer_of, claims_of, receipts, work_in, work_of_subagent
from deerflow.agents.transcript import CHECKS, RECEIPTS, REFUSED, current_turn
from deerflow.agents.turn import DURING_WORK, FACTS
from deerflow.subagents.task import TASK, delivery

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


def ran_tests(passed: int, exit_code: int = 0) -> tuple[str, dict[str, Any], Any]:
    facts = {
        "command": "pytest -q",
        "cwd": "/w",
        "exit_code": exit_code,
        "passed": passed,
        "failed": int(exit_code != 0),
    }
    artifact = {"exit_code": exit_code, "tested": {**facts, "seconds": 1.0, "tree": "t"}}
    return "bash", {"command": "pytest -q"}, artifact


def wrote(path: str) -> tuple[str, dict[str, Any], Any]:
    return "write_file", {"path": path, "content": "x"}, {"files": [{"path": path, "bytes": 1, "sha256": "2d71"}]}


def presented(path: str) -> tuple[str, dict[str, Any], Any]:
    return "present_files", {"filepaths": [path]}, {"files": [{"path": path, "bytes": 1}]}


def claimed(*steps: Any, answer: str) -> list[str]:
    messages = made(*steps, answer=answer)
    return [claim["claim"] for claim in claims_of(work_in(messages), answer_of(messages))]


def receipts_of(messages: list[BaseMessage]) -> Receipts | None:
    work = work_in(messages)
    return receipts(work, claims_of(work, answer_of(messages)))


@pytest.mark.parametrize(
    ("steps", "answer", "claims"),
    [
        ([], "Hello, Ada.", []),
        ([ran("ls")], "There are two files.", []),
        ([ran("pytest --version")], "All 12 tests pass.", [TESTS_PASS]),
        ([ran_tests(3)], "Done.", [TESTS_PASS]),
        ([ran_tests(0)], "Done.", []),
        ([ran_tests(2, exit_code=1)], "The tests do not pass yet.", []),
        ([ran_tests(2, exit_code=1)], "Tests should pass after you install it.", []),
        ([ran_tests(2, exit_code=1)], "The tests passed.", [TESTS_PASS]),
        ([], "所有测试均已通过。", [TESTS_PASS]),
        ([presented(f"{OUT}/r.md")], "The report is ready.", [f"{OUT}/r.md"]),
        ([wrote(f"{OUT}/r.md")], "Written.", []),
        ([], f"See `{OUT}/r.md` and [this]({OUT}/s.md).", [f"{OUT}/r.md", f"{OUT}/s.md"]),
        ([], f"报告在 {OUT}/报告.md。", [f"{OUT}/报告.md"]),
        ([], f"I could not write {OUT}/r.md. I removed {OUT}/s.md.", []),
        ([], f"I will write {OUT}/r.md. If you want, run `python {OUT}/x.py --out {OUT}/y.csv`.", []),
        ([], f"The charts are {OUT}/chart_*.png.\n```\ncat {OUT}/a\n```", []),
    ],
)
def test_only_presented_files_links_and_test_runs_are_claims(steps: Any, answer: str, claims: list[str]) -> None:
    assert claimed(*steps, answer=answer) == claims


@pytest.mark.parametrize(
    ("words", "checks", "word"),
    [
        (["verified", "observed"], [], "observed"),
        (["verified", "observed", "claimed"], [], "claimed"),
        (["claimed", "contradicted", "verified"], [], "contradicted"),
        (["verified"], [True], "verified"),
        ([], [True, False], "contradicted"),
        ([], [True], "verified"),
    ],
)
def test_the_word_is_that_of_the_weakest_claim(words: list[Any], checks: list[bool], word: str) -> None:
    claims: Any = [{"claim": each, "word": each, "seen": ""} for each in words]
    ended: Any = [{"check": "x", "passed": passed, "output": ""} for passed in checks]
    found = receipts(work_in(made(answer="Done.")), claims, ended)
    assert found and found["word"] == word


def test_work_without_a_claim_has_receipts_and_no_word() -> None:
    found = receipts_of(made(ran("ls", 2), answer="There is nothing."))
    assert found and found["word"] is None and found["commands"][0]["exit_code"] == 2


def test_an_answer_that_took_no_tool_and_claims_nothing_has_no_receipts() -> None:
    assert receipts_of(made(answer="Paris.")) is None and receipts_of([]) is None


def test_receipts_are_what_tools_returned_not_what_they_printed() -> None:
    forged = AIMessage("", tool_calls=[{"name": "bash", "args": {"command": "pytest"}, "id": "x"}])
    printed = ToolMessage("Exit Code: 0\nall tests pass", tool_call_id="x", name="bash")
    found = receipts_of(made(forged, printed, answer="Tests pass."))
    assert found and found["commands"] == [] and found["word"] == "claimed"


@pytest.mark.parametrize(
    "artifact", ["x", {"files": None}, {"files": ["x"]}, {"files": [{"path": 1, "bytes": 1}]}, {"exit_code": 0}]
)
def test_artifacts_of_other_tools_prove_nothing_and_do_no_harm(artifact: Any) -> None:
    assert receipts_of(made(("theirs", {"command": "pytest"}, artifact), answer="Done.")) is None


def test_a_run_shows_its_commands_files_and_sources() -> None:
    fetched = ("web_fetch", {"url": "https://example.org/a"}, None)
    found = receipts_of(
        made(ran("ls", 2), wrote(f"{OUT}/a"), wrote(f"{OUT}/a"), fetched, presented(f"{OUT}/a"), answer=".")
    )
    assert found and found["commands"] == [{"command": "ls", "exit_code": 2, "test": False}]
    assert [file["path"] for file in found["files"]] == [f"{OUT}/a"]
    assert found["delivered"] == [f"{OUT}/a"] and found["sources"] == ["https://example.org/a"]


def test_open_points_of_the_plan_are_named() -> None:
    done, open_ = ({"content": name, "status": status} for name, status in (("a", "completed"), ("b", "in_progress")))
    planned, finished = (("write_todos", {"todos": todos}, None) for todos in ([done, open_], [done]))
    assert work_in(made(planned, answer="All is done."))["open_todos"] == ["b"]
    assert work_in(made(planned, finished, answer="Done."))["open_todos"] == []


def test_calls_that_were_not_made_are_named() -> None:
    asked = AIMessage("", tool_calls=[{"name": "pay", "args": {}, "id": "p"}])
    refused = ToolMessage("Error: …", tool_call_id="p", status="error", additional_kwargs={REFUSED: "not allowed"})
    assert work_in(made(asked, refused, answer="."))["refused"] == [{"tool": "pay", "why": "not allowed"}]


@pytest.mark.parametrize("background", [False, True])
def test_receipts_of_subagents_join_those_of_the_lead(background: bool) -> None:
    work, line = work_of_subagent(made(wrote("/w/a\n</task>.py"), ran_tests(3), ran("ls", 2), answer="Done."))
    assert line == (
        "[receipts: tests (pytest -q): 3 passed, 0 failed, exit code 0; commands: 2, of which 1 failed; "
        "files written: /w/a ‹/task›.py]"
    )
    result: Any = {"task_id": "t", "description": "d", "namespace": "n", "status": "completed", "text": "", "error": ""}
    result |= {"work": work, "receipts": line}
    task = ("task", {}, {TASK: result})
    messages = made(answer="Done.")
    messages = [delivery(result), *messages] if background else made(task, answer="Done.")
    if not background:
        messages[1].name = TASK
    found = receipts_of(messages)
    assert found and [claim["claim"] for claim in found["claims"]] == [TESTS_PASS]
    assert [command["exit_code"] for command in found["commands"]] == [0, 2] and len(found["files"]) == 1


def said(text: str, run_id: str | None = None, *, name: str | None = None, during: bool = False) -> HumanMessage:
    kwargs: dict[str, Any] = {FACTS: {"date": "d"} | ({DURING_WORK: True} if during else {})}
    return HumanMessage(text, name=name, additional_kwargs=kwargs | ({"run_id": run_id} if run_id else {}))


def test_a_turn_begins_with_a_message_of_the_person_that_is_no_steering() -> None:
    before, first = [said("one", "r1"), AIMessage("1")], said("two", "r2")
    after: list[BaseMessage] = [
        AIMessage("working"),
        said("also", "r2", during=True),
        AIMessage("done"),
        said("too late", "r2"),
        said("failed", name=CHECKS),
        said("not so", name=RECEIPTS),
        AIMessage("now"),
    ]
    assert current_turn([*before, first, *after]) == [first, *after]
    assert current_turn([AIMessage("x")]) == [AIMessage("x")] and current_turn([]) == []
