"""Tool calls that wait for a decision of the person: shown whole, and asked for one after the other.

Each answer is sent when it is given: it is kept when the terminal closes, and a grant frees the calls that wait beside it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from deerflow.agents.headline import headline, is_network, visible

Approve = Literal["ask", "auto", "deny"]

UNATTENDED = "There is no one to ask: this run is not attended. Go on without the call, or tell what you would need."
WAITING = "Calls wait for your decision. /resume asks again; with a message you go on without them."

_CHOICES = {
    "a": ("approve", "[a]llow"),
    "t": ("thread", "in this cha[t]"),
    "w": ("always", "al[w]ays"),
    "e": ("edit", "chang[e]"),
    "d": ("reject", "[d]on’t allow"),
    "i": ("respond", "reply for the tool [i]"),
}
_FORMER_KEYS = {"r": "reject"}
_PROMPTS = {"reject": "Reason", "respond": "Reply (the call is not made)"}


class TerminalApprovals:
    """Answers the interrupts of a thread.

    Args:
        approve: ``ask`` the person, approve all (``auto``), or reject all (``deny``); None leaves them open.
    """

    def __init__(self, console: Console, approve: Approve | None) -> None:
        self._console = console
        self._approve = approve
        self._asked_for: list[str] = []
        """Interrupts of which some have an answer: each has its number among them."""

    async def answers(self, interrupts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return answers by interrupt id: the person's to the first one, or ours to all that we answer.

        Empty if the person leaves the first one open, with Ctrl-C or Ctrl-D.
        """
        if self._approve == "ask" and interrupts:
            first = interrupts[0]
            try:
                return {first["id"]: await self._asked(_value(first), self._place(interrupts))}
            except (EOFError, KeyboardInterrupt):
                return {}
        answers: dict[str, Any] = {}
        for interrupt in interrupts if self._approve else ():
            value = _value(interrupt)
            if value.get("action_requests") and not value.get("error"):
                answers[interrupt["id"]] = {"decisions": [self._default() for _ in value["action_requests"]]}
        return answers

    def _place(self, interrupts: Sequence[Mapping[str, Any]]) -> str:
        ids = [interrupt["id"] for interrupt in interrupts]
        if not set(ids) <= set(self._asked_for):
            self._asked_for = ids
        return f"{self._asked_for.index(ids[0]) + 1} of {len(self._asked_for)}"

    def _default(self) -> dict[str, Any]:
        return {"type": "approve"} if self._approve == "auto" else {"type": "reject", "message": UNATTENDED}

    async def _asked(self, value: Mapping[str, Any], place: str) -> Any:
        if not value.get("action_requests"):
            self._show(place, [], value.get("question") or json.dumps(value, ensure_ascii=False), {})
            return await _line("Answer")
        if problem := value.get("error"):
            self._console.print(Text(f"\n  ! {visible(str(problem))}", style="warn"))
        return {"decisions": [await self._decision(call, allowed, value, place) for call, allowed in calls_of(value)]}

    async def _decision(
        self, request: Mapping[str, Any], allowed: set[str], value: Mapping[str, Any], place: str
    ) -> dict[str, Any]:
        cosmetic = value.get("cosmetic", ("description",))
        said = {"The agent says": request["args"]["description"]} if _says(request, cosmetic) else {}
        args = {name: given for name, given in request["args"].items() if not (said and name == "description")}
        title = f"{place}  {request['name']}  {headline(request, value)}"
        self._show(title, _notes(value), request.get("description") or "", said | args)
        choices = {key: choice for key, choice in _CHOICES.items() if choice[0] in allowed}
        names = {name: name for name, _ in choices.values()} | {key: name for key, (name, _) in choices.items()}
        names |= {key: name for key, name in _FORMER_KEYS.items() if name in names}
        while (kind := names.get((await _line("  ".join(label for _, label in choices.values()))).lower())) is None:
            pass
        match kind:
            case "thread" | "always":
                exact = {name: _written(given) for name, given in request["args"].items() if name not in cosmetic}
                hint = "For which arguments? * stands for any text, null for any value, nothing for every call."
                self._console.print(Text(f"  {hint}", style="faint"))
                pattern = await self._edited(exact, may_be_empty=True)
                return {"type": "approve", "grant": kind, **({"pattern": pattern} if pattern else {})}
            case "edit":
                args = await self._edited(request["args"])
                return {"type": "edit", "edited_action": {"name": request["name"], "args": args}}
            case "reject" | "respond":
                return {"type": kind, "message": await _line(_PROMPTS[kind])}
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

    def _show(self, title: str, notes: Sequence[str], why: str, args: Mapping[str, Any]) -> None:
        shown = Text(f"\n  ? {visible(title)}", style="bold")
        for note in (*notes, str(why)):
            shown.append(f"\n    {visible(note)}" if note else "", style="warn")
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
        yield call, {*rule["allowed_decisions"], *(() if is_network(call, value) else rule.get("grants", ()))}


def _value(interrupt: Mapping[str, Any]) -> Mapping[str, Any]:
    value: Any = interrupt["value"]
    return value if isinstance(value, Mapping) else {"question": value}


def _says(request: Mapping[str, Any], cosmetic: Sequence[str]) -> bool:
    """Return whether the call carries words of the agent on itself, which are no argument of what it does."""
    return "description" in cosmetic and isinstance(request["args"].get("description"), str)


def _notes(value: Mapping[str, Any]) -> list[str]:
    """Return who asks, and what has changed about the tool since the person was asked."""
    asker: Mapping[str, str] = value.get("asked_by") or {}
    notes = [f"asked by the subagent {asker['subagent']}"] if asker.get("subagent") else []
    if changed := value.get("changed"):
        notes.append(
            "! Its server has changed this tool since you were asked. Answers to the former version do not count."
        )
        for when in ("before", "now"):
            tool = changed.get(when) or {}
            notes.append(f"{when}: {tool.get('description')}")
            notes.append(f"{' ' * len(when)}  arguments: {', '.join(tool.get('arguments') or ()) or 'none'}")
    return notes


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
