"""The thread's shell: what carries over, what is streamed, cut, killed and remembered."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.contracts.sandbox.exhaustion import appeared, survivors
from tests.harness.sandbox.conftest import Sandboxes

from deerflow.sandbox.interface import (
    OUTPUTS,
    WORKSPACE,
    ExecResult,
    SandboxCommandError,
    SandboxNotFoundError,
)
from deerflow.sandbox.isolated import IsolatedSandbox


async def output(sandbox: IsolatedSandbox, command: str, **options: object) -> str:
    result: ExecResult = await sandbox.exec(command, **options)  # type: ignore[arg-type]
    return result.output


# state ------------------------------------------------------------------------------------------------------------------


async def test_directory_exports_and_functions_carry_over(sandbox: IsolatedSandbox) -> None:
    await sandbox.exec("mkdir -p 'a dir'; cd 'a dir'; export A='1 2\n3'; greet() { echo \"hello $1\"; }; plain=1")
    assert (
        await output(sandbox, 'pwd; echo "$A"; greet you; echo "[$plain]"')
        == f"{WORKSPACE}/a dir\n1 2\n3\nhello you\n[]\n"
    )


async def test_cd_dash_goes_back_across_commands(sandbox: IsolatedSandbox) -> None:
    await sandbox.exec("cd /tmp")
    await sandbox.exec("cd /usr")
    assert await output(sandbox, "cd -") == "/tmp\n"


async def test_a_directory_whose_name_holds_a_newline_carries_over(sandbox: IsolatedSandbox) -> None:
    await sandbox.exec("mkdir $'x\\ny'; cd $'x\\ny'; export AFTER=1")
    assert await output(sandbox, "pwd; echo $AFTER") == f"{WORKSPACE}/x\ny\n1\n"


async def test_state_survives_exit_and_is_kept_as_it_was_by_a_killed_command(sandbox: IsolatedSandbox) -> None:
    await sandbox.exec("export A=1; exit 3")
    await sandbox.exec("export A=2; kill -9 $$")
    await sandbox.exec("export A=3; sleep 60", timeout=0.3)
    assert await output(sandbox, "echo $A") == "1\n"


async def test_nothing_of_ours_is_seen_by_a_command(sandbox: IsolatedSandbox) -> None:
    assert await output(sandbox, "compgen -v | grep -i sbx; declare -F; env | grep -i sbx; true") in (
        "",
        "declare -f __sbx_end\n",
    )
    await sandbox.exec("true")
    assert "__sbx" not in await output(sandbox, "export -p; alias; set -o | grep -i sbx; true")


async def test_a_command_may_be_given_a_directory_of_its_own(sandbox: IsolatedSandbox) -> None:
    assert await output(sandbox, "pwd", cwd=OUTPUTS) == f"{OUTPUTS}\n"
    with pytest.raises(SandboxCommandError, match="no such directory: /nowhere"):
        await sandbox.exec("pwd", cwd="/nowhere")


async def test_errors_name_the_line_of_the_command(sandbox: IsolatedSandbox) -> None:
    assert await output(sandbox, "nosuchcommand") == "bash: line 1: nosuchcommand: command not found\n"
    assert "line 3: nosuchcommand" in await output(sandbox, "true\n\nnosuchcommand")


async def test_standard_input_is_empty(sandbox: IsolatedSandbox) -> None:
    assert await output(sandbox, "cat; read x || echo end") == "end\n"


async def test_virtual_paths_are_real(sandbox: IsolatedSandbox) -> None:
    await sandbox.write(f"{WORKSPACE}/script.py", b"print(open('/mnt/user-data/workspace/data').read())")
    await sandbox.exec("echo content >data")
    assert await output(sandbox, "python3 script.py") == "content\n\n"
    assert (await sandbox.read(f"{WORKSPACE}/data"))[0] == b"content\n"


async def test_a_file_of_the_file_tools_can_be_changed_by_a_command_and_back(sandbox: IsolatedSandbox) -> None:
    await sandbox.write(f"{OUTPUTS}/f", b"one\n")
    assert (await sandbox.exec(f"echo two >>{OUTPUTS}/f; chmod 600 {OUTPUTS}/f")).exit_code == 0
    await sandbox.write(f"{OUTPUTS}/f", b"three\n", append=True)
    assert await output(sandbox, f"cat {OUTPUTS}/f") == "one\ntwo\nthree\n"


# output -----------------------------------------------------------------------------------------------------------------


async def test_output_is_streamed_while_the_command_runs(sandbox: IsolatedSandbox) -> None:
    first = asyncio.Event()
    seen: list[str] = []

    def on_output(text: str) -> None:
        seen.append(text)
        first.set()

    running = asyncio.create_task(
        sandbox.exec("echo one; while [ ! -e go ]; do sleep 0.02; done; echo two", on_output=on_output)
    )
    await asyncio.wait_for(first.wait(), 20)
    assert "".join(seen) == "one\n"
    await sandbox.write(f"{WORKSPACE}/go", b"")
    assert (await running).output == "one\ntwo\n" == "".join(seen)


async def test_characters_that_arrive_in_pieces_are_put_together(sandbox: IsolatedSandbox) -> None:
    seen: list[str] = []
    program = "import sys,time\nfor b in 'äö😀'.encode(): sys.stdout.buffer.write(bytes([b])); sys.stdout.flush(); time.sleep(0.02)"
    result = await sandbox.exec(f'python3 -c "{program}"', on_output=seen.append)
    assert result.output == "äö😀" == "".join(seen)


async def test_bytes_that_are_no_text_become_replacement_characters(sandbox: IsolatedSandbox) -> None:
    assert await output(sandbox, r"printf '\xff\xfe ok \xc3'") == "\ufffd\ufffd ok \ufffd"


async def test_a_coroutine_may_take_the_output(sandbox: IsolatedSandbox) -> None:
    seen: list[str] = []

    async def on_output(text: str) -> None:
        await asyncio.sleep(0)
        seen.append(text)

    await sandbox.exec("for i in 1 2 3; do echo $i; done", on_output=on_output)
    assert "".join(seen) == "1\n2\n3\n"


async def test_a_consumer_that_fails_ends_the_command(sandbox: IsolatedSandbox) -> None:
    def on_output(_: str) -> None:
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        await sandbox.exec("exec -a consumer-failed sleep 300 & echo x; wait", on_output=on_output)
    assert await survivors("consumer-failed") == []


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 5000])
async def test_output_up_to_the_limit_is_whole_and_beyond_keeps_both_ends(sandbox: IsolatedSandbox, size: int) -> None:
    program = f"import sys; sys.stdout.write(''.join(chr(97 + i % 26) for i in range({size})))"
    whole = "".join(chr(97 + i % 26) for i in range(size))
    result = await sandbox.exec(f'python3 -c "{program}"', max_output=1000)
    assert result.total_bytes == size
    assert result.truncated == (size > 1000)
    if size <= 1000:
        assert result.output == whole
    else:
        assert result.output == f"{whole[:500]}\n[... {size - 1000} bytes of output omitted ...]\n{whole[-500:]}"


async def test_a_cut_inside_of_a_character_leaves_no_rubble(sandbox: IsolatedSandbox) -> None:
    result = await sandbox.exec("printf 'é%.0s' $(seq 3000)", max_output=1001)
    head, _, tail = result.output.partition("\n[... ")
    assert set(head.rstrip("\ufffd")) == set(tail.partition("...]\n")[2]) == {"é"}


# many at once -----------------------------------------------------------------------------------------------------------


async def test_commands_of_one_thread_run_side_by_side(sandbox: IsolatedSandbox) -> None:
    waiting = asyncio.create_task(sandbox.exec("while [ ! -e go ]; do sleep 0.02; done; echo waited", timeout=60))
    assert await output(sandbox, "touch go; echo went") == "went\n"
    assert (await waiting).output == "waited\n"


async def test_outputs_are_not_mixed_up(sandbox: IsolatedSandbox) -> None:
    results = await asyncio.gather(*(sandbox.exec(f"for i in $(seq 50); do echo {n}; done") for n in range(10)))
    assert [set(result.output.split()) for result in results] == [{str(n)} for n in range(10)]


def test_a_sandbox_may_be_used_from_any_event_loop_and_thread(shared_provider: Sandboxes) -> None:
    sandbox = asyncio.run(shared_provider.acquire("many-loops"))
    results: list[str] = []

    def use(number: int) -> None:
        results.append(asyncio.run(sandbox.exec(f"echo {number}")).output)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each of these loops has ended: the shell lives on another one.
    assert sorted(results) == ["0\n", "1\n", "2\n", "3\n"]
    assert asyncio.run(sandbox.exec("echo again")).output == "again\n"


# ends -------------------------------------------------------------------------------------------------------------------


async def test_cancelling_kills_the_whole_tree(sandbox: IsolatedSandbox) -> None:
    marker = "cancelled-tree"
    command = f"(setsid bash -c \"trap '' TERM INT; exec -a {marker} sleep 300\" &); exec -a {marker} sleep 300"
    running = asyncio.create_task(sandbox.exec(command))
    await appeared(marker, 2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await survivors(marker) == []
    assert await output(sandbox, "echo alive") == "alive\n"


async def test_cancelling_while_the_sandbox_starts_leaves_nothing(sandbox: IsolatedSandbox) -> None:
    starting = asyncio.create_task(sandbox.exec("echo never"))
    await asyncio.sleep(0.01)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert await output(sandbox, "echo alive") == "alive\n"


async def test_a_timeout_gives_what_was_written_so_far(sandbox: IsolatedSandbox) -> None:
    result = await sandbox.exec("echo begun; sleep 60", timeout=0.5)
    assert (result.timed_out, result.exit_code, result.output) == (True, None, "begun\n")


async def test_a_background_child_does_not_hold_up_the_command(sandbox: IsolatedSandbox) -> None:
    result = await sandbox.exec("sleep 300 & echo started", timeout=30)
    assert (result.output, result.timed_out) == ("started\n", False)
    assert await output(sandbox, "pgrep -x sleep | wc -l") == "1\n"


async def test_a_command_that_stops_its_runner_is_still_killed_at_its_timeout(sandbox: IsolatedSandbox) -> None:
    result = await sandbox.exec("kill -STOP $PPID; sleep 300", timeout=0.5)
    assert result.exit_code is None
    assert await output(sandbox, "pgrep -x sleep | wc -l") == "0\n"


async def test_reset_kills_everything_and_forgets(sandbox: IsolatedSandbox) -> None:
    await sandbox.exec("cd /tmp; export A=1; sleep 300 &")
    await sandbox.reset()
    assert await output(sandbox, "pwd; echo [$A]; pgrep -x sleep | wc -l") == f"{WORKSPACE}\n[]\n0\n"


async def test_a_command_that_runs_while_another_resets_ends(sandbox: IsolatedSandbox) -> None:
    running = asyncio.create_task(sandbox.exec("sleep 300"))
    while await output(sandbox, "pgrep -cx sleep; true") != "1\n":
        pass
    await sandbox.reset()
    assert (await running).exit_code is None


# background processes ---------------------------------------------------------------------------------------------------


async def wait_until_ended(sandbox: IsolatedSandbox, process_id: str) -> str:
    written = ""
    while True:
        process = await sandbox.read_process(process_id)
        written += process.output
        if not process.running:
            return f"{written}{process.exit_code}"


async def test_a_background_process_is_read_bit_by_bit(sandbox: IsolatedSandbox) -> None:
    await sandbox.exec("export NAME=you; cd /tmp")
    process = await sandbox.start_process(
        'echo "hello $NAME"; pwd; while [ ! -e go ]; do sleep 0.02; done; echo bye; exit 4'
    )
    assert process.running
    written = process.output
    while not written.endswith("/tmp\n"):
        written += (await sandbox.read_process(process.id)).output
    assert written == "hello you\n/tmp\n"
    await sandbox.exec("touch /tmp/go")
    assert await wait_until_ended(sandbox, process.id) == "bye\n4"


async def test_a_background_server_is_reachable_until_it_is_killed(sandbox: IsolatedSandbox) -> None:
    process = await sandbox.start_process("python3 -m http.server 8123 --bind 127.0.0.1")
    fetch = "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8123').status)\""
    assert await output(sandbox, f"until {fetch} 2>/dev/null; do sleep 0.05; done") == "200\n"
    killed = await sandbox.kill_process(process.id)
    assert not killed.running
    assert (await sandbox.exec(fetch)).exit_code == 1


async def test_killing_a_background_process_kills_what_it_started(sandbox: IsolatedSandbox) -> None:
    marker = "stubborn-child"
    process = await sandbox.start_process(
        f"(trap '' TERM; setsid bash -c \"trap '' TERM; exec -a {marker} sleep 300\") & wait"
    )
    await appeared(marker)
    assert not (await sandbox.kill_process(process.id)).running
    assert await survivors(marker) == []


async def test_processes_are_listed_without_taking_their_output(sandbox: IsolatedSandbox) -> None:
    assert await sandbox.list_processes() == []
    command = "echo kept; touch kept; sleep 300"
    process = await sandbox.start_process(command)
    while await sandbox.stat(f"{WORKSPACE}/kept") is None:
        await asyncio.sleep(0.02)
    [listed] = await sandbox.list_processes()
    assert (listed.id, listed.command, listed.running, listed.output) == (process.id, command, True, "")
    written = process.output
    while not written:
        written = (await sandbox.read_process(process.id)).output
        await asyncio.sleep(0.02)
    assert written == "kept\n"


async def test_a_noisy_process_keeps_its_latest_megabyte(sandbox: IsolatedSandbox) -> None:
    process = await sandbox.start_process("head -c 3M /dev/zero | tr '\\0' x; echo; echo end")
    while (await sandbox.list_processes())[0].running:
        await asyncio.sleep(0.02)
    read = await sandbox.read_process(process.id)
    assert len(read.output) == 1 << 20
    assert read.dropped_bytes == (2 << 20) + len("\nend\n")
    assert read.output.endswith("\nend\n")


async def test_an_unknown_process_is_not_found(sandbox: IsolatedSandbox) -> None:
    for ask in (sandbox.read_process, sandbox.kill_process):
        with pytest.raises(SandboxNotFoundError):
            await ask("p99")


# one command with secrets -------------------------------------------------------------------------------------------------


async def test_a_command_with_variables_of_its_own_begins_where_the_shell_is_and_changes_nothing(
    sandbox: IsolatedSandbox,
) -> None:
    await sandbox.exec("mkdir -p d; cd d; export KEEP=1")
    result = await sandbox.exec(
        "pwd; echo $TOKEN; cd /; export LEAK=$TOKEN; echo file >made", env={"TOKEN": "t0ken"}, cwd=None
    )
    assert result.output.startswith(f"{WORKSPACE}/d\nt0ken\n")
    assert result.cwd == f"{WORKSPACE}/d"
    assert await output(sandbox, "pwd; echo [$LEAK$TOKEN]; echo $KEEP") == f"{WORKSPACE}/d\n[]\n1\n"


async def test_a_command_with_variables_leaves_no_process_behind(sandbox: IsolatedSandbox) -> None:
    await sandbox.exec(
        "setsid bash -c 'exec -a after-secret sleep 300' >/dev/null 2>&1 & sleep 0.1", env={"TOKEN": "x"}
    )
    assert await survivors("after-secret") == []


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PATH", "BASH_ENV", "a-b"])
async def test_variables_that_change_how_programs_start_are_refused(sandbox: IsolatedSandbox, name: str) -> None:
    with pytest.raises(SandboxCommandError):
        await sandbox.exec("true", env={name: "x"})


# search -----------------------------------------------------------------------------------------------------------------


async def test_grep_runs_inside_and_leaves_the_shell_alone(sandbox: IsolatedSandbox) -> None:
    await sandbox.exec("cd /tmp; export GREP_OPTIONS=-v; printf 'one\\nTwo\\n' >/mnt/user-data/workspace/f")
    matches, cut = await sandbox.grep(WORKSPACE, "^t")
    assert [(match.path, match.line_number, match.line) for match in matches] == [(f"{WORKSPACE}/f", 2, "Two")]
    assert not cut
    assert await output(sandbox, "pwd") == "/tmp\n"


async def test_a_bad_pattern_is_explained(sandbox: IsolatedSandbox) -> None:
    await sandbox.write(f"{WORKSPACE}/f", b"x")
    with pytest.raises(SandboxCommandError):
        await sandbox.grep(WORKSPACE, "(unclosed")
