"""``python -m bench.call_trace serve …``: the ``deerflow`` command, noting which of its functions a message passes.

SIGUSR2 begins a trace. It ends with the first streamed request to a provider (titles and memory ask for whole answers). Its functions
go into the file that BENCH_CALLS names, one a line: file and name. Comprehensions are left out.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

import deerflow
import deerflow_app

PACKAGES = tuple(str(Path(str(package.__file__)).parent) for package in (deerflow, deerflow_app))
COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
ASKS = ("openai/_base_client.py", "request")
"""End of the file and name of the function that asks the provider."""


class CallTrace:
    """Sees every call of a Python function in any thread."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._seen: set[CodeType] | None = None

    def install(self) -> None:
        signal.signal(signal.SIGUSR2, lambda *_: self._begin())
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def _begin(self) -> None:
        self._seen = set()

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        if self._seen is None or event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(PACKAGES):
            self._seen.add(code)
        elif code.co_name == ASKS[1] and code.co_filename.endswith(ASKS[0]) and frame.f_locals.get("stream"):
            self._write(self._seen)
            self._seen = None

    def _write(self, seen: set[CodeType]) -> None:
        named = {f"{code.co_filename}\t{code.co_qualname}" for code in seen if code.co_name not in COMPREHENSIONS}
        partial = self._target.with_suffix(".part")
        partial.write_text("\n".join(sorted(named)))
        partial.replace(self._target)


def main() -> None:
    """Run the command."""
    from deerflow_app.cli.main import main as command

    CallTrace(Path(os.environ["BENCH_CALLS"])).install()
    command()


if __name__ == "__main__":
    main()
