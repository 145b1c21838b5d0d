"""What knowing much costs: a person with 10,000 facts, and an installation with 500 skills. The floor is to know nothing."""

from __future__ import annotations

import random
import statistics
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from bench.figures import Figure, above_floor, at_most
from bench.worker import Options
from deerflow.config import ConfigSource, Paths
from deerflow.features.memory.facts import made
from deerflow.features.memory.rows import OwnedRows, Owner
from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.runs.request import RunRequest
from deerflow.runtime import Runtime

SUBJECTS = ("ours",)
ROUNDS = 1
FACTS, SKILLS, REPEATS = 10_000, 500, 7
QUESTION = "How shall the report on the harbour project measure distance, and who reads it before Friday?"
CATEGORIES = ("preference", "knowledge", "context", "behavior", "goal", "correction")


async def measure(subject: str, options: Options) -> dict[str, Any]:
    """Milliseconds to look up what to tell a model, and seconds of the first turn of a runtime."""
    data, repeats = Path(options.data), 2 if options.quick else REPEATS
    data.chmod(0o711)
    _write_skills(data / "many" / "public")
    (data / "none" / "public").mkdir(parents=True)
    turns: dict[str, list[float]] = {"none": [], "many": []}
    for number in range(repeats + 1):
        for kind, times in turns.items():
            runtime = await _runtime(options, data / kind, data / f"{kind}-{number}")
            times.append(await _turn(runtime))
            await runtime.aclose()
    runtime = await _runtime(options, data / "none", data / "facts")
    recalls = {"none": await _recalls(runtime, repeats)}
    await runtime.database.write(_write_facts)
    recalls["many"] = await _recalls(runtime, repeats)
    await runtime.aclose()
    # The first turn of all imports what the others have.
    return {"turn": {kind: statistics.median(times[1:]) for kind, times in turns.items()}, "recall": recalls}


def figures(results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    (found,) = results["ours"]
    (recall, recall_cpu), (no_recall, no_recall_cpu) = found["recall"]["many"], found["recall"]["none"]
    turn = found["turn"]
    name, none = f"recall from {FACTS:,} facts", "floor: no facts"
    return [
        Figure(name, "ms", recall, no_recall, at_most(20, "ms"), none),
        Figure(f"{name}, CPU", "ms", recall_cpu, no_recall_cpu, at_most(20, "ms"), none),
        Figure(
            f"first turn, {SKILLS} skills", "s", turn["many"], turn["none"], above_floor(0.2, "s"), "floor: no skills"
        ),
    ]


async def _runtime(options: Options, skills: Path, data: Path) -> Runtime:
    model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "m", "api_key": "k"}
    settings: dict[str, Any] = {
        "models": [{**model, "base_url": options.base_url}],
        "sandbox": {"tool_image": {"enabled": False}},
        "title": {"enabled": False},
        "skills": {"path": str(skills)},
        "database": {"backend": "sqlite"},
    }
    runtime = Runtime(ConfigSource(None, overrides=settings), Paths(data))
    await runtime.start()
    return runtime


async def _turn(runtime: Runtime) -> float:
    began = time.perf_counter()
    request = RunRequest(input={"messages": [{"role": "user", "content": "Hello."}]}, if_not_exists="create")
    run = await runtime.runs.start(LOCAL_PRINCIPAL, request, thread_id="t")
    await runtime.runs.wait(LOCAL_PRINCIPAL, run.run_id)
    return time.perf_counter() - began


async def _recalls(runtime: Runtime, repeats: int) -> list[float]:
    """Milliseconds on the wall, and of CPU."""
    times: list[tuple[float, float]] = []
    memory = (await runtime.config_source.acurrent()).memory
    for _ in range(5 * repeats):
        began, cpu = time.perf_counter(), time.process_time()
        await runtime.memory.recall(Owner(LOCAL_PRINCIPAL.user_id), "t", QUESTION, memory, None)
        times.append((time.perf_counter() - began, time.process_time() - cpu))
    return [statistics.median(column) * 1000 for column in zip(*times, strict=True)]


def _write_facts(connection: Connection) -> None:
    """A third has a word of the question, and some have several."""
    chance, owned = random.Random(1), OwnedRows(connection, Owner(LOCAL_PRINCIPAL.user_id))
    words = [*QUESTION.lower().split(), *(f"word{number}" for number in range(400))]
    for number in range(FACTS):
        content = f"Fact {number}: {' '.join(chance.choices(words, k=12))}."
        category = chance.choices(CATEGORIES, (20, 20, 20, 20, 19, 1))[0]
        owned.put(made(content, category, chance.uniform(0.7, 1), f"thread-{number // 20}"))


def _write_skills(folder: Path) -> None:
    for number in range(SKILLS):
        (folder / f"skill-{number}").mkdir(parents=True)
        text = f"---\nname: skill-{number}\ndescription: Does the work of number {number}, when it is asked for.\n---\n\n# Steps\n"
        (folder / f"skill-{number}" / "SKILL.md").write_text(text)
