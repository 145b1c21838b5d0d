"""The benchmark measures what it says. No test here looks at how fast anything is."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.endpoint_process import EndpointProcess
from bench.figures import Figure, above_floor, at_least, at_most, table, times_floor
from bench.scripted_openai import ScriptedOpenAI
from bench.subjects import open_subject
from bench.worker import Options

from bench import cpu, gauges, imports, latency, long_thread, message_path, worker


@pytest.fixture
def endpoint() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as server:
        yield server


@pytest.fixture
def options(endpoint: ScriptedOpenAI, tmp_path: Path) -> Options:
    return Options(endpoint.base_url, str(tmp_path), quick=True)


async def test_the_floor_runs_real_commands_and_remembers_the_thread(endpoint: ScriptedOpenAI, tmp_path: Path) -> None:
    async with open_subject("floor", endpoint.base_url, tmp_path) as agent:
        turn = await agent.turn("t", "scenario:tools-2 key:t")
        await agent.turn("t", "scenario:plain-1 key:t")

    results = [message["content"] for message in endpoint.requests[2]["messages"] if message["role"] == "tool"]
    assert results == ["1\n", "2\n"]
    assert turn.text.startswith("tok00") and turn.first_token > 0
    assert len(endpoint.requests[3]["messages"]) == 7


async def test_cpu_is_read_per_scenario_and_run(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "SCENARIOS", {"plain": 1, "tools-2": 1})

    reading = await cpu.measure("floor-1-tool", options)
    lines = cpu.figures({"floor": [reading], "floor-1-tool": [reading]})

    assert all(run > 0 for run in reading["plain"]["own"])
    assert all(run > 0 for run in reading["tools-2"]["children"])
    assert {line.ours for line in lines} == {None}


async def test_the_first_token_is_compared_with_direct_calls(options: Options) -> None:
    reading = await latency.measure("floor", options)
    first = latency.figures({"floor": [reading], "ours": [reading]})[0]

    assert len(reading["direct"]) == len(reading["agent"]) == 5
    assert first.floor == pytest.approx(1000 * sorted(reading["direct"])[2])


async def test_a_long_thread_is_read_turn_by_turn(endpoint: ScriptedOpenAI, options: Options, tmp_path: Path) -> None:
    reading = await long_thread.measure("floor", options)
    log = [record.summary() for record in endpoint.records if record.place.key == "long"]
    reading |= {"requests": log, "stable_share": endpoint.statistics()["by"]["main"]["stable_share"]}
    lines = {line.name: line for line in long_thread.figures({"floor": [reading]})}

    assert len(reading["written"]) == 12 and all(reading["written"])
    assert reading["stored"] > 0 and gauges.stored(tmp_path) > 0
    assert lines["requests that hold the previous one"].floor == 100
    assert lines["size after compaction"].floor is None
    assert "turn 50: bytes written" not in lines


def test_written_bytes_are_those_of_the_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as db:
        db.execute("create table t (x)")
        before = gauges.written()
        db.execute("insert into t values (zeroblob(1000000))")
        db.commit()
        grown = gauges.written() - before

    assert 1_000_000 <= grown <= 1_100_000
    assert gauges.stored(tmp_path) == (tmp_path / "x.db").stat().st_size


async def test_cpu_of_living_and_dead_children_counts_apart() -> None:
    burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
    before = gauges.cpu()
    dead = await asyncio.create_subprocess_exec("bash", "-c", burn)
    await dead.wait()
    after_dead = gauges.cpu().since(before)
    living = await asyncio.create_subprocess_exec("bash", "-c", f"{burn}; echo; sleep 60", stdout=subprocess.PIPE)
    assert living.stdout is not None
    await living.stdout.readline()
    after_living = gauges.cpu().since(before)
    living.kill()
    await living.wait()

    assert after_dead.children > 0
    assert after_living.children > after_dead.children
    assert after_dead.own < after_dead.children


def test_a_worker_reports_from_its_own_process_and_a_failure_with_its_reason(tmp_path: Path) -> None:
    with EndpointProcess() as endpoint:
        options = Options(endpoint.base_url, str(tmp_path), quick=True)
        reading = worker.run("latency", "floor", options)
        with pytest.raises(RuntimeError, match=r"(?s)nonsense of floor failed.*No module named 'bench.nonsense'"):
            worker.run("nonsense", "floor", options)

    assert reading["cold"] > 0


def test_the_endpoint_process_tells_what_it_saw() -> None:
    import httpx

    with EndpointProcess() as endpoint:
        for text in ("key:a one", "key:a two"):
            body = {"messages": [{"role": "user", "content": text}]}
            httpx.post(f"{endpoint.base_url}/chat/completions", json=body).raise_for_status()
        seen = endpoint.statistics()["main"]
        endpoint.reset()

        assert (seen["requests"], seen["stable_share"]) == (2, 0.0)
        assert endpoint.log() == []


def test_the_slowest_imports_are_listed() -> None:
    assert "json.decoder" in imports.slowest("json")


@pytest.mark.parametrize(
    ("target", "ours", "floor", "verdict"),
    [
        (at_most(2), 2.0, None, "ok"),
        (at_most(2), 2.1, None, "OVER"),
        (at_least(100), 99.9, None, "OVER"),
        (times_floor(1.1), 1.0, 1.0, "ok"),
        (times_floor(1.1), 1.2, 1.0, "OVER"),
        (times_floor(1.1), 1.0, None, "OVER"),
        (above_floor(20, "ms"), 25.0, 4.0, "OVER"),
        (at_most(2), None, 1.0, "not measured"),
        (None, 1.0, 1.0, ""),
    ],
)
def test_a_verdict_follows_from_the_target(
    target: object, ours: float | None, floor: float | None, verdict: str
) -> None:
    assert Figure("x", "s", ours, floor, target).verdict == verdict  # type: ignore[arg-type]


def test_the_table_shows_every_column_aligned() -> None:
    text = table(
        [Figure("short", "s", 1.5, 1.0, times_floor(1.1)), Figure("a longer name", "kB", 12000, None, None, "why")]
    ).splitlines()

    assert text[2].split() == ["short", "s", "1.5", "1", "1.50", "≤", "1.1", "×", "floor", "OVER"]
    assert text[3].split() == ["a", "longer", "name", "kB", "12,000", "–", "why"]
    assert text[2].index("1.5") + 3 == text[3].index("12,000") + 6


@pytest.mark.nightly
def test_the_command_prints_a_table_and_keeps_the_figures(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "--quick", "--only", "imports", "--results", str(tmp_path)]

    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": "."}, check=False)

    assert done.returncode == 0, done.stderr
    assert "import deerflow" in done.stdout
    kept = json.loads((tmp_path / "imports.json").read_text())
    assert kept["quick"] is True and kept["figures"][0]["name"] == "import deerflow"


@pytest.mark.nightly
async def test_the_functions_that_a_message_passes_end_at_the_provider(options: Options) -> None:
    reading = await message_path.measure("ours", options)
    files = {line.partition("\t")[0].rpartition("/deerflow")[2] for line in reading["passed"]}
    assert {"/runs/service.py", "/runs/attempt.py", "/models/openai.py"} <= files
    assert not any(file.endswith("runs/finalize.py") for file in files), "it is passed after the answer"
    assert [line.ours for line in message_path.figures({"ours": [reading]})] == [len(reading["passed"]), len(files)]
