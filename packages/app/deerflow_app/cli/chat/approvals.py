"""Tool calls that wait for a decision of the person: shown whole, and asked for one after the other."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

Approve = Literal["ask", "auto", "deny"]

UNATTENDED = "There is no one to ask: this run is not attended. Go on without the call, or tell what you would need."
WAITING = "Calls wait for your decision. /resume asks again; with a message you go on without them."

_CHOICES = {
    "a": ("approve", "[a]pprove"),
    "e": ("edit", "[e]dit"),
    "r": ("reject", "[r]eject"),
    "i": ("respond", "answer [i]nstead"),
    "t": ("thread", "approve in this [t]hread"),
    "w": ("always", "approve al[w]ays"),
}


class Approvals:
    """Answers the interrupts of a thread.

    Args:
        approve: ``ask`` the person, approve all (``auto``), or reject all (``deny``); None leaves them open.
    """

    def __init__(self, console: Console, approve: Approve | None) -> None:
        self._console = console
        self._approve = approve

    async def answers(self, interrupts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """An answer by interrupt id. What the person leaves open, with Ctrl-C or Ctrl-D, is not in it."""
        answers: dict[str, Any] = {}
        for number, interrupt in enumerate(interrupts, 1):
            value: Any = interrupt["value"]
            given: Mapping[str, Any] = value if isinstance(value, Mapping) else {"question": value}
            try:
                if self._approve == "ask":
                    answers[interrupt["id"]] = await self._asked(given, f"{number} of {len(interrupts)}")
                elif self._approve and given.get("action_requests") and not given.get("error"):
                    answers[interrupt["id"]] = {"decisions": [self._default() for _ in given["action_requests"]]}
            except (EOFError, KeyboardInterrupt):
                break
        return answers

    def _default(self) -> dict[str, Any]:
        return {"type": "approve"} if self._approve == "auto" else {"type": "reject", "message": UNATTENDED}

    async def _asked(self, value: Mapping[str, Any], place: str) -> Any:
        if not value.get("action_requests"):
            self._show(place, value.get("question") or json.dumps(value, ensure_ascii=False), {})
            return await _line("Answer")
        if problem := value.get("error"):
            self._console.print(Text(f"\n  ! {visible(str(problem))}", style="warn"))
        return {"decisions": [await self._decision(call, allowed, place) for call, allowed in calls_of(value)]}

    async def _decision(self, request: Mapping[str, Any], allowed: set[str], place: str) -> dict[str, Any]:
        self._show(f"{place}  {request['name']}", request.get("description") or "", request["args"])
        choices = {key: choice for key, choice in _CHOICES.items() if choice[0] in allowed}
        names = {name: name for name, _ in choices.values()} | {key: name for key, (name, _) in choices.items()}
        while (kind := names.get((await _line("  ".join(label for _, label in choices.values()))).lower())) is None:
            pass
        match kind:
            case "thread" | "always":
                exact = {name: value for name, value in request["args"].items() if name != "description"}
                self._console.print(
                    Text("  For which arguments? * stands for any text, nothing for every call.", style="faint")
                )
                pattern = await self._edited(
                    {name: _written(value) for name, value in exact.items()}, may_be_empty=True
                )
                return {"type": "approve", "grant": kind, **({"pattern": pattern} if pattern else {})}
            case "edit":
                args = await self._edited(request["args"])
                return {"type": "edit", "edited_action": {"name": request["name"], "args": args}}
            case "reject" | "respond":
                return {"type": kind, "message": await _line("Reason" if kind == "reject" else "Answer")}
            case _:
                return {"type": kind}

    async def _edited(self, args: Mapping[str, Any], *, may_be_empty: bool = False) -> dict[str, Any]:
        typed = json.dumps(args, ensure_ascii=False)
        while True:
            typed = await _line("Arguments", typed)
            if may_be_empty and not typed:
                return {}
            try:
                if isinstance(edited := json.loads(typed), dict):
                    return edited
                problem = "they are not an object"
            except ValueError as error:
                problem = str(error)
            self._console.print(Text(f"  ! The arguments cannot be read as JSON: {visible(problem)}.", style="warn"))

    def _show(self, title: str, why: str, args: Mapping[str, Any]) -> None:
        shown = Text(f"\n  ? {visible(title)}", style="bold").append(f"  {visible(str(why))}", style="warn")
        for name, value in args.items():
            shown.append(f"\n    {visible(name)}: ", style="faint")
            shown.append(visible(_written(value)).rstrip("\n").replace("\n", "\n      "), style="none")
        _forget_typed()
        self._console.print(shown, soft_wrap=True)


def calls_of(value: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], set[str]]]:
    """The calls that an interrupt asks about, each with how it may be decided and for how long it may be granted."""
    rules = {rule["action_name"]: rule for rule in value.get("review_configs") or ()}
    for call in value.get("action_requests") or ():
        rule = rules[call["name"]]
        yield call, {*rule["allowed_decisions"], *rule.get("grants", ())}


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def visible(text: str) -> str:
    """``text`` with control and direction characters written out: what is approved must not hide anything."""
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode() for each in text
    )


def _forget_typed() -> None:
    """What was typed before a call is shown decides nothing about it."""
    from prompt_toolkit.input import create_input
    from prompt_toolkit.input.typeahead import clear_typeahead

    clear_typeahead(create_input())
    if sys.stdin.isatty():
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def _line(question: str, default: str = "") -> str:
    """What the person types; on stderr, as stdout may be a pipe."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    session: PromptSession[str] = PromptSession(output=create_output(stdout=sys.stderr))
    return (await session.prompt_async(f"  {question} › ", default=default)).strip()
