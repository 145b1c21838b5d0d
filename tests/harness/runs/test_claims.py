"""What an answer rests on, looked at by the server: real sandboxes and real test runners."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import Reply, ScriptedOpenAI, Text, ToolCalls
from tests.harness.runs.run_house import ME, bash, ended, say, thread

from deerflow.runs import claims
from deerflow.runs.request import RunRequest
from deerflow.runtime import Runtime
from deerflow.storage.runs import Run

OUT = "/mnt/user-data/outputs"
SITE = Path(pytest.__file__).parents[1]
PYTEST = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTHONPATH=/mnt/site python3 -m pytest"
UNITTEST = "python3 -m unittest"
GOOD, BAD = "assert 1 + 1 == 2", "assert 1 + 1 == 3"


@pytest.fixture
def settings(endpoint: ScriptedOpenAI) -> dict[str, Any]:
    """Without the second database: nothing here is stored in another way there."""
    model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "gpt-x", "base_url": endpoint.base_url}
    mount = {"host_path": str(SITE), "container_path": "/mnt/site", "read_only": True}
    return {
        "models": [model | {"api_key": "k"}],
        "sandbox": {"tool_image": {"enabled": False}, "mounts": [mount]},
        "title": {"enabled": False},
        "runs": {"drain_seconds": 0},
        "guardrails": {
            "enabled": True,
            "provider": {
                "use": "deerflow.guardrails.builtin:AllowlistProvider",
                "config": {"ask_tools": ["ls"], "denied_tools": ["glob"]},
            },
        },
    }


def suite(statement: str) -> ToolCalls:
    """Writes tests for pytest and unittest."""
    text = f"import unittest\n\nclass TestSum(unittest.TestCase):\n    def test_sum(self):\n        {statement}\n"
    return ToolCalls(("write_file", {"path": "test_sum.py", "content": text}))


def shell(command: str) -> ToolCalls:
    return ToolCalls(bash(command))


def present(name: str) -> ToolCalls:
    return ToolCalls(("present_files", {"filepaths": [f"{OUT}/{name}"]}))


async def turn(runtime: Runtime, endpoint: ScriptedOpenAI, *replies: Reply, where: str = "", **more: Any) -> Run:
    endpoint.script(*replies)
    where = where or await thread(runtime)
    return await ended(runtime, await runtime.runs.start(ME, say("go", **more), thread_id=where))


def word(run: Run) -> str | None:
    assert run.status == "success", run.error
    return run.receipts["word"] if run.receipts else None


def asked(endpoint: ScriptedOpenAI) -> int:
    """How often the model read that its answer is not so."""
    last = json.dumps(endpoint.requests[-1]["messages"])
    return last.count("Your answer was checked against the sandbox")


async def test_an_answer_that_claims_nothing_costs_nothing_and_has_no_word(
    runtime: Runtime, endpoint: ScriptedOpenAI
) -> None:
    run = await turn(runtime, endpoint, Text("Hello, Ada."))
    assert word(run) is None and run.receipts is None and len(endpoint.requests) == 1


async def test_a_file_of_this_turn_is_verified_whoever_wrote_it(runtime: Runtime, endpoint: ScriptedOpenAI) -> None:
    where = await thread(runtime)
    run = await turn(runtime, endpoint, shell(f"echo y > {OUT}/y.txt"), present("y.txt"), Text("Done."), where=where)
    assert word(run) == "verified" and run.receipts and run.receipts["delivered"] == [f"{OUT}/y.txt"]
    linked = await turn(runtime, endpoint, shell("true"), Text(f"Here it is: [y]({OUT}/y.txt)"), where=where)
    assert word(linked) == "claimed", "it is of an earlier turn"
    name = shell(f"echo z > '{OUT}/final report (2).txt'")
    assert word(await turn(runtime, endpoint, name, Text(f"It is in `{OUT}/final report (2).txt`."))) == "verified"
    run = await turn(runtime, endpoint, name, Text(f"[It]({OUT}/final%20report%20(2).txt)"))
    assert word(run) == "verified"


async def test_a_file_that_was_removed_is_contradicted_and_the_model_reads_that_once(
    runtime: Runtime, endpoint: ScriptedOpenAI
) -> None:
    write = ToolCalls(("write_file", {"path": f"{OUT}/r.md", "content": "x"}))
    gone = [write, present("r.md"), shell(f"rm {OUT}/r.md")]
    run = await turn(runtime, endpoint, *gone, Text("Done."), Text("It is done."))
    assert word(run) == "contradicted" and asked(endpoint) == 1 and len(endpoint.requests) == 5
    assert run.receipts and run.receipts["claims"][0]["seen"] == "there is no such file"
    mended = await turn(runtime, endpoint, *gone, Text("Done."), write, Text("Now it is there."))
    assert word(mended) == "verified"


async def test_a_file_is_not_waited_for_where_no_shell_runs(runtime: Runtime, endpoint: ScriptedOpenAI) -> None:
    run = await turn(runtime, endpoint, Text(f"The report is in {OUT}/r.md."))
    assert word(run) == "contradicted" and len(endpoint.requests) == 1


MANAGE = "#!/usr/bin/env python3\nimport unittest\nunittest.main(module=None, argv=['manage.py', 'discover'])\n"
MAKEFILE = f"test:\n\t{UNITTEST}\n"
NODE = "require('node:test')('sum', () => require('node:assert').equal(1 + 1, 2));\n"


async def test_tests_are_run_again(runtime: Runtime, endpoint: ScriptedOpenAI) -> None:
    where, files = await thread(runtime), {"manage.py": MANAGE, "Makefile": MAKEFILE, "sum.test.js": NODE}
    written = [ToolCalls(("write_file", {"path": name, "content": text})) for name, text in files.items()]
    made = shell("chmod +x manage.py")
    await turn(runtime, endpoint, suite(GOOD), *written, made, Text("Written."), where=where)
    for command in (
        PYTEST,
        f"cd . && {UNITTEST} 2>&1",
        "node --test",
        "node --test *.test.js",
        "./manage.py test",
        "make test",
    ):
        run = await turn(runtime, endpoint, shell(command), Text("The tests pass."), where=where)
        assert word(run) == "verified", (command, run.receipts)


async def test_what_the_shell_of_the_agent_reports_proves_nothing(runtime: Runtime, endpoint: ScriptedOpenAI) -> None:
    where = await thread(runtime)
    await turn(runtime, endpoint, suite(BAD), Text("Written."), where=where)
    for expected, *commands in (
        ("claimed", f"{PYTEST} -q\necho finished"),
        ("claimed", f"{PYTEST} --version"),
        ("claimed", f"{PYTEST} --collect-only"),
        ("claimed", "pytest -q\necho finished"),
        ("claimed", "make test; echo done"),
        ("claimed", "npm test; echo ok"),
        ("contradicted", UNITTEST),
        ("contradicted", "python3(){ echo 'Ran 3 tests in 0s'; }", UNITTEST),
        ("claimed", "pytest(){ :; }", "pytest -q"),
        ("claimed", "pytest(){ echo '3 passed in 0.1s'; }", "pytest -q"),
        ("claimed", "pytest -q test_*"),
    ):
        answers = [Text("All tests pass.")] * (2 if expected == "contradicted" else 1)
        before = asked(endpoint)
        run = await turn(runtime, endpoint, *map(shell, commands), *answers, where=where)
        assert word(run) == expected, (commands, run.receipts)
        assert asked(endpoint) - before == (expected == "contradicted")


async def test_tests_that_took_long_are_observed_until_a_source_changes(
    runtime: Runtime, endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "REPEATED_SECONDS", 0)
    tests = [suite(GOOD), shell(UNITTEST)]
    made = shell(f"mkdir -p .pytest_cache; date > .pytest_cache/x; date > {OUT}/report.txt")
    assert word(await turn(runtime, endpoint, *tests, made, Text("Done."))) == "observed"
    same = shell("touch -r test_sum.py /tmp/t; sed -i 's/2$/4/' test_sum.py; touch -r /tmp/t test_sum.py")
    run = await turn(runtime, endpoint, *tests, same, Text("Done."))
    assert word(run) == "claimed" and run.receipts and "files have changed" in run.receipts["claims"][0]["seen"]
    forged = [shell("python3(){ :; }"), shell(UNITTEST)]
    assert word(await turn(runtime, endpoint, suite(BAD), *forged, Text("All tests pass."))) == "claimed"


async def test_tests_of_a_subagent_count_and_its_result_ends_with_its_receipts(
    runtime: Runtime, endpoint: ScriptedOpenAI
) -> None:
    asked = {"description": "test it", "prompt": "key:a", "subagent_type": "general-purpose"}
    endpoint.script(suite(GOOD), shell(UNITTEST), Text("They pass."), key="a")
    ultra = {"subagent_enabled": True}
    run = await turn(runtime, endpoint, ToolCalls(("task", asked)), Text("All tests pass."), context=ultra)
    assert word(run) == "verified" and run.receipts and run.receipts["commands"][0]["test"]
    result = endpoint.requests[-1]["messages"][-1]["content"]
    assert result.endswith(
        "\n[receipts: tests (python3 -m unittest): 1 passed, 0 failed, exit code 0; commands: 1; "
        "files written: /mnt/user-data/workspace/test_sum.py]"
    )


async def test_a_turn_goes_on_after_an_approval(runtime: Runtime, endpoint: ScriptedOpenAI) -> None:
    where = await thread(runtime)
    endpoint.script(suite(GOOD), shell(UNITTEST), ToolCalls(("ls", {"path": "."})), Text("Done."))
    waiting = await ended(runtime, await runtime.runs.start(ME, say("go"), thread_id=where))
    assert waiting.stop_reason == "interrupt" and waiting.receipts and waiting.receipts["word"] is None
    request = RunRequest.model_validate({"command": {"resume": {"decisions": [{"type": "approve"}]}}})
    resumed = await ended(runtime, await runtime.runs.start(ME, request, thread_id=where))
    assert word(resumed) == "verified", resumed.receipts


async def test_calls_that_were_refused_are_named(runtime: Runtime, endpoint: ScriptedOpenAI) -> None:
    run = await turn(runtime, endpoint, ToolCalls(("glob", {"pattern": "*", "path": "."})), Text("I may not."))
    assert run.receipts and [call["tool"] for call in run.receipts["refused"]] == ["glob"]
    events = [event async for batch in runtime.runs.events(run) for event in batch]
    assert events[-1].data["refused"] == run.receipts["refused"] and "verification" not in events[-1].data
