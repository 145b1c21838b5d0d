from __future__ import annotations

import pytest

from deerflow.sandbox.interface import SandboxCommandError
from deerflow.sandbox.isolated import check_command, check_environment


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_", "BASH_ENV", "ENV", "PROMPT_COMMAND", "PYTHONSTARTUP", "PATH", "BASH_FUNC_ls%%",
     "SHELLOPTS", "", "1A", "A-B", "A B", "A=B", "A\n", "A\0", "é"],
)  # fmt: skip
def test_a_variable_that_changes_how_programs_start_or_has_no_proper_name_is_refused(name: str) -> None:
    with pytest.raises(SandboxCommandError):
        check_environment({name: "x"})


@pytest.mark.parametrize("value", ["a\0b", "x" * 200_000, "\ud800"])
def test_a_value_that_no_process_can_take_is_refused(value: str) -> None:
    with pytest.raises(SandboxCommandError):
        check_environment({"TOKEN": value})


def test_ordinary_variables_pass() -> None:
    check_environment({"GITHUB_TOKEN": "x\ny", "_": "", "a1": "é", "LDFLAGS": "-s"})


def test_a_command_with_a_nul_byte_is_refused() -> None:
    with pytest.raises(SandboxCommandError, match="NUL"):
        check_command("echo a\0b")
