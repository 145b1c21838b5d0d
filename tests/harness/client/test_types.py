"""What an editor says of a program that uses the client."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

PROGRAM = """\
from deerflow import DeerFlowClient, StreamEvent

with DeerFlowClient(plan_mode=True) as client:
    text: str = client.chat("hello", thread_id="a", files=["x.csv"], thinking_enabled=False)
    events: list[StreamEvent] = [*client.stream("hello", model_name="m"), *client.resume("a", recursion_limit=9)]
    names: list[str] = client.list_artifacts("a")
"""


def errors(folder: Path, program: str) -> list[tuple[int, str]]:
    """What pyright finds: line and text."""
    file = folder / "program.py"
    file.write_text(program)
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    command = [
        str(Path(sys.executable).with_name("pyright")),
        "--outputjson",
        "--pythonpath",
        sys.executable,
        str(file),
    ]
    found = json.loads(subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120).stdout)
    return [(entry["range"]["start"]["line"] + 1, entry["message"]) for entry in found["generalDiagnostics"]]


def test_the_package_tells_that_it_is_typed() -> None:
    assert files("deerflow").joinpath("py.typed").is_file()


def test_a_right_program_has_no_error(tmp_path: Path) -> None:
    assert errors(tmp_path, PROGRAM) == []


def test_a_wrong_option_is_an_error_in_the_editor(tmp_path: Path) -> None:
    wrong = {
        'client.chat("x", modelname="m")': "modelname",
        'client.chat("x", thinking_enabled="yes")': "thinking_enabled",
        'client.stream("x", plan=True)': "plan",
        'client.resume("a", files=["x"])': "files",
        "client.chat(3)": "message",
    }
    found = dict(errors(tmp_path, PROGRAM + "".join(f"    {line}\n" for line in wrong)))
    first = PROGRAM.count("\n") + 1
    assert sorted(found) == list(range(first, first + len(wrong)))
    for line, word in enumerate(wrong.values(), first):
        assert f'"{word}"' in found[line]


def test_a_wrong_option_is_an_error_when_it_runs(client) -> None:
    with pytest.raises(TypeError, match="modelname"):
        client.chat("x", modelname="m")
