"""CPU per run of ``plain`` and ``tools-20``, each run on a fresh thread of a warm process."""

from __future__ import annotations

import cProfile
import statistics
from pathlib import Path
from typing import Any

from bench import gauges
from bench.figures import Figure, times_floor
from bench.subjects import open_subject
from bench.worker import Options

SUBJECTS = ("floor", "floor-1-tool", "ours")
SCENARIOS = {"plain": 15, "tools-20": 4}
"""Scenario → measured runs per round."""
ROUNDS = 4
"""The subjects take turns, so that a busy neighbour does not hit one alone."""


async def measure(subject: str, options: Options) -> dict[str, Any]:
    """Seconds per scenario: ``own`` and ``children``, one entry per run."""
    results: dict[str, Any] = {}
    async with open_subject(subject, options.base_url, Path(options.data)) as agent:
        for scenario, count in SCENARIOS.items():
            for i in range(2):
                await agent.turn(f"warm-{scenario}-{i}", f"scenario:{scenario} key:warm-{scenario}-{i}")
            runs: list[gauges.Cpu] = []
            profile = cProfile.Profile()
            if options.profile:
                profile.enable()
            for i in range(2 if options.quick else count):
                before = gauges.cpu()
                await agent.turn(f"{scenario}-{i}", f"scenario:{scenario} key:{scenario}-{i}")
                runs.append(gauges.cpu().since(before))
            if options.profile:
                profile.disable()
                profile.dump_stats(f"{options.profile}.{scenario}.pstats")
            results[scenario] = {"own": [run.own for run in runs], "children": [run.children for run in runs]}
    return results


def figures(results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    """CPU of the process itself, and of the children that do the commands' work."""
    lines: list[Figure] = []
    for scenario in SCENARIOS:
        own = {name: _median(rounds, scenario, "own") for name, rounds in results.items()}
        children = {name: _median(rounds, scenario, "children") for name, rounds in results.items()}
        target = times_floor(1.1) if scenario == "tools-20" else None
        lines.append(Figure(f"{scenario}: CPU per run", "s", own.get("ours"), own["floor"], target))
        one_tool = own.get("floor-1-tool")
        lines.append(Figure(f"{scenario}: CPU per run", "s", own.get("ours"), one_tool, note="floor with one tool"))
        if scenario != "plain":
            total = {name: own[name] + children[name] for name in own}
            lines.append(Figure(f"{scenario}: CPU with children", "s", total.get("ours"), total["floor"], target))
    return lines


def _median(rounds: list[dict[str, Any]], scenario: str, part: str) -> float:
    return statistics.median(value for result in rounds for value in result[scenario][part])
