"""The program of a converter: it has a stranger's file taken apart by a child of its own, and hands on what the child says.

It runs inside a sandbox, warm: the libraries are loaded once, each file gets a fork of its own with limits on time, memory and output.
Modules arrive over the control socket under the names that they have here. A message: sizes of a JSON head and of data, head, data.
"""

from __future__ import annotations

import contextlib
import ctypes
import encodings
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import struct
import sys
import time
import types
from typing import Any, NoReturn

SIZES = struct.Struct("!LQ")
BOOT = """
import os, sys, types
control = int(sys.argv[1])
def exactly(size):
    data = b""
    while len(data) < size:
        data += os.read(control, size - len(data)) or sys.exit()
    return data
source = exactly(int.from_bytes(exactly(4), "big"))
name = "deerflow.sandbox.converters.program"
program = types.ModuleType(name)
sys.modules[name] = program
exec(compile(source, name, "exec"), program.__dict__)
program.main(control)
"""
"""For ``python -c``, with the control socket's number: loads this module, which comes first, behind its size in four bytes."""
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36


class Unreadable(Exception):
    """A file cannot be read. ``str()`` ends a sentence that begins with its name: ``is encrypted. Ask for …``."""


def head_of(head: dict[str, Any], size: int = 0) -> bytes:
    """Return the beginning of a message as it travels; ``size`` bytes of data follow."""
    packed = json.dumps(head).encode("utf-8", "replace")
    return SIZES.pack(len(packed), size) + packed


def main(control: int) -> NoReturn:
    """Serve requests until the host closes the socket."""
    start, _ = _received(control)
    libc = ctypes.CDLL(None, use_errno=True)
    os.environ.update(start["environment"])
    for name, source in start["modules"].items():
        _install(name, source)
    if start["uid"]:
        # Python's own library may be closed to another user.
        for module in pkgutil.iter_modules(encodings.__path__):
            with contextlib.suppress(ImportError):
                importlib.import_module(f"encodings.{module.name}")
        os.setgroups([])
        os.setresgid(start["uid"], start["uid"], start["uid"])
        os.setresuid(start["uid"], start["uid"], start["uid"])
    # Children share our uid: none of them may look into us or into another one.
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _send(control, head_of({"ready": True}))
    while True:
        head, data = _received(control)
        module = importlib.import_module(head["module"])
        module.warm(**head["options"])
        reply = _reply(control, module, head, data, libc)
        _sweep()
        _send(control, reply)


def _received(control: int) -> tuple[dict[str, Any], bytearray]:
    sizes = SIZES.unpack(_exactly(control, SIZES.size))
    return json.loads(_exactly(control, sizes[0])), _exactly(control, sizes[1])


def _exactly(control: int, size: int) -> bytearray:
    """Read ``size`` bytes. The end of the socket ends the process."""
    data, filled = bytearray(size), 0
    while filled < size:
        if not (got := os.readv(control, [memoryview(data)[filled:]])):
            os._exit(0)
        filled += got
    return data


def _send(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _install(name: str, source: str) -> None:
    """Make a module of ours importable under its name."""
    parent = ""
    for part in name.split(".")[:-1]:
        parent = f"{parent}.{part}" if parent else part
        sys.modules.setdefault(parent, types.ModuleType(parent)).__path__ = []
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), module.__dict__)


def _reply(control: int, module: Any, head: dict[str, Any], data: bytearray, libc: Any) -> bytes:
    """Have a child read a file; the message with what it says, or with the reason why it says nothing."""
    limits, most = head["limits"], head["most"]
    late = f"takes more than {limits['seconds']:g} seconds to read."
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.close(control)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _work(writing, module, head, data)
    os.close(writing)
    said, why, end = bytearray(), "", time.monotonic() + limits["patience"]
    try:
        while not why:
            ready = select.select([reading, control], [], [], max(0.0, end - time.monotonic()))[0]
            if control in ready:  # the host says nothing before it has its answer: it is gone
                os._exit(0)
            if not ready:
                why = late
            elif piece := os.read(reading, 1 << 20):
                said += piece
                why = f"holds more than {most >> 20} MB." if len(said) > most else ""
            else:
                break
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if not why and os.WIFSIGNALED(status) and len(said) < SIZES.size:
        why = late if os.WTERMSIG(status) == signal.SIGXCPU else "made its parser crash."
    return head_of({"unreadable": why}) if why else bytes(said)


def _work(writing: int, module: Any, head: dict[str, Any], data: bytearray) -> NoReturn:
    """Read a file in the child, and end it."""
    limits = head["limits"]
    try:
        seconds, memory, processes = int(limits["seconds"]), limits["memory"], limits["processes"]
        # At the hard limit of time the kernel kills without a word.
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        for name, value in {"CORE": 0, "DATA": memory, "FSIZE": memory, "NPROC": processes}.items():
            if value is not None:
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
        with contextlib.suppress(OSError):
            os.nice(5)
        answer, result = module.work(bytes(data), **head["options"])
        reply = head_of(answer, len(result)) + result
    except Unreadable as error:
        reply = head_of({"unreadable": str(error)})
    except BaseException as error:
        text = " ".join(str(error).split())[:200] or type(error).__name__
        short = isinstance(error, MemoryError) or "memory alloc" in text.lower()
        why = (
            f"needs more than {limits['memory'] >> 20} MB of memory."
            if short
            else f"could not be read: its reader gave up ({type(error).__name__})."
        )
        reply = head_of({"unreadable": why})
    with contextlib.suppress(OSError):
        _send(writing, reply)
    os._exit(0)


def _sweep() -> None:
    """End whatever a child left behind: as the first process of a namespace or as subreaper we are its parent."""
    for _ in range(100):
        if os.getpid() == 1:
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)
        else:
            with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as file:  # noqa: PTH123
                for child in file.read().split():
                    os.kill(int(child), signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.002)
        except ChildProcessError:
            return
