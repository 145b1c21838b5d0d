"""``python -m bench [--quick] [--only NAME]``: measure, print the table, keep the figures in ``bench/results``."""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

from bench import imports
from bench.endpoint_process import EndpointProcess
from bench.figures import Figure, table
from bench.worker import Options, run

FAMILIES = (
    "cpu",
    "latency",
    "http",
    "served",
    "long_thread",
    "sandbox",
    "imports",
    "knowledge",
    "tool_servers",
    "message_path",
)
RESULTS = Path("bench/results")


def measure_family(family: str, *, quick: bool, profile: Path | None = None) -> tuple[list[Figure], dict[str, Any]]:
    """Figures of a family and the readings they come from. Every subject runs in processes of its own."""
    module = importlib.import_module(f"bench.{family}")
    results: dict[str, list[dict[str, Any]]] = {}
    for round_ in range(1 if quick else module.ROUNDS):
        for subject in module.SUBJECTS:
            with EndpointProcess() as endpoint, tempfile.TemporaryDirectory(prefix="deerflow-bench-") as data:
                target = str(profile / f"{family}-{subject}-{round_}") if profile else None
                reading = run(family, subject, Options(endpoint.base_url, data, quick, target))
                if family == "long_thread":
                    reading |= _seen_by(endpoint)
                results.setdefault(subject, []).append(reading)
    return module.figures(results), results


def _seen_by(endpoint: EndpointProcess) -> dict[str, Any]:
    """What the long thread's requests looked like from the other side."""
    log = [entry for entry in endpoint.log() if entry["key"] == "long"]
    return {"requests": log, "stable_share": endpoint.statistics()["main"]["stable_share"]}


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure DeerFlow against a bare agent.")
    parser.add_argument("--quick", action="store_true", help="few repetitions: does it work, not how fast is it")
    parser.add_argument("--only", action="append", choices=FAMILIES, help="measure only this family; may be repeated")
    parser.add_argument(
        "--profile", type=Path, help="write cProfile files of the families cpu and http into this directory"
    )
    parser.add_argument("--importtime", action="store_true", help="also list the slowest imports")
    parser.add_argument("--results", type=Path, default=RESULTS, help="directory for the figures as JSON")
    options = parser.parse_args()
    if options.profile:
        options.profile.mkdir(parents=True, exist_ok=True)
        options.profile = options.profile.resolve()

    options.results.mkdir(parents=True, exist_ok=True)
    figures: list[Figure] = []
    for family in options.only or FAMILIES:
        print(f"measuring {family} …", flush=True)
        lines, readings = measure_family(family, quick=options.quick, profile=options.profile)
        figures += lines
        document = {
            **_circumstances(options.quick),
            "figures": [line.to_json() for line in lines],
            "readings": readings,
        }
        (options.results / f"{family}.json").write_text(json.dumps(document, indent=1))
    print(f"\n{table(figures)}\n\nLoad {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores. Figures: {options.results}/")
    if options.importtime:
        print(f"\nSlowest imports of deerflow.client:\n{imports.slowest('deerflow.client')}")


def _circumstances(quick: bool) -> dict[str, Any]:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {
        "at": now,
        "quick": quick,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    main()
