"""Slash commands in chats: the words that are ours, with the rights that the person has in the page."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from deerflow.errors import RequestError
from deerflow.features.channels.conversations import ChatConversation, Conversations
from deerflow.features.channels.types import Inbound
from deerflow.identity import Principal

_SLASH = re.compile(r"/([a-z]+)(?:@(\w+))?(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)
"""A command at the very beginning: one word after the slash, so that a path is still a message."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A command that a person gave.

    Args:
        argument: the text behind the command.
        kind: of the platform.
    """

    principal: Principal
    kind: str
    message: Inbound
    conversation: ChatConversation
    argument: str


@dataclass(frozen=True, slots=True)
class Begin:
    """A command that is a message to the agent: a turn with ``text``, ``context`` on top of what runs are started with."""

    text: str
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])


Reply = str | Begin
Run = Callable[[Asked], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """A slash command, as the terminal has it: ``usage`` begins with its name."""

    usage: str
    help: str
    run: Run

    @property
    def name(self) -> str:
        return self.usage.split()[0].removeprefix("/")


class Services(Protocol):
    """The services that commands call, with the rights of the person who gave them."""

    async def models(self, principal: Principal) -> Sequence[tuple[str, str]]:
        """Return name and description of each model, the default one first."""
        ...

    async def agents(self, principal: Principal) -> Sequence[tuple[str, str]]:
        """Return name and description of each agent that the person can use."""
        ...

    async def facts(self, principal: Principal, agent: str | None) -> Sequence[str]:
        """Return what is remembered of the person."""
        ...

    async def usage(self, principal: Principal) -> Mapping[str, Any]:
        """Return today's ``{total_tokens, calls, cost: {currency: money}}`` of the person."""
        ...

    async def stop(self, principal: Principal, thread_id: str) -> int:
        """Stop the runs of a thread and return how many there were."""
        ...

    async def state(self, principal: Principal, thread_id: str) -> Mapping[str, Any] | None:
        """Return ``{title, status}`` of a thread, or None if nothing was written in it yet."""
        ...

    def page(self, path: str) -> str:
        """Return the address of a page, or an empty text if the server does not know its own."""
        ...


class Commands:
    """The registry. Features of other rooms add theirs with :meth:`register`."""

    def __init__(self, services: Services, conversations: Conversations) -> None:
        self._services = services
        self._conversations = conversations
        self._commands: dict[str, ChatCommand] = {}
        for command in (
            ChatCommand("/new", "start a new conversation", self._new),
            ChatCommand("/status", "show the conversation, its agent and model", self._status),
            ChatCommand("/stop", "stop the work that is going on here", self._stop),
            ChatCommand("/model [name]", "show or choose the model", self._model),
            ChatCommand("/models", "list the models", self._models),
            ChatCommand("/agent [name]", "show or choose the agent", self._agent),
            ChatCommand("/memory", "show what I remember about you", self._memory),
            ChatCommand("/compact [what to keep]", "summarize the conversation, which makes room", self._compact),
            ChatCommand("/usage", "show what you used today", self._usage),
            ChatCommand("/bootstrap [text]", "make an agent of your own, in a talk", self._bootstrap),
            ChatCommand("/help", "list the commands", self._help),
        ):
            self.register(command)

    def register(self, command: ChatCommand) -> None:
        """Add a command. Raises ValueError if its name is taken."""
        if command.name in self._commands or not _SLASH.fullmatch(f"/{command.name}"):
            raise ValueError(
                f"/{command.name} cannot be a command: the name is taken, or more than one word of letters."
            )
        self._commands[command.name] = command

    def find(self, text: str, me: str = "") -> tuple[ChatCommand, str] | None:
        """Return the command that a message gives, and what stands behind it; None: the message is text.

        Args:
            me: the bot's name; ``/new@other`` is for another bot.
        """
        found = _SLASH.fullmatch(text.strip())
        if found is None or (found[2] and me and found[2].lower() != me.lower()):
            return None
        command = self._commands.get(found[1].lower())
        return (command, (found[3] or "").strip()) if command is not None else None

    async def run(self, command: ChatCommand, asked: Asked) -> Reply:
        """Carry a command out. What goes wrong is an answer, too."""
        try:
            return await command.run(asked)
        except RequestError as error:
            return str(error)

    async def _new(self, asked: Asked) -> Reply:
        if asked.conversation.thread_id is not None:
            await self._services.stop(asked.principal, asked.conversation.thread_id)
        await self._conversations.renew(asked.conversation)
        return "A new conversation begins with your next message."

    async def _status(self, asked: Asked) -> Reply:
        here = asked.conversation
        state = await self._services.state(asked.principal, here.thread_id) if here.thread_id else None
        lines = [
            f"Conversation: {(state or {}).get('title') or 'new'}",
            f"State: {(state or {}).get('status') or 'nothing written yet'}",
            f"Agent: {here.agent or 'default'}",
            f"Model: {here.model or 'default'}",
        ]
        if state is not None and (link := self._services.page(f"/chats/{here.thread_id}")):
            lines.append(f"Page: {link}")
        return "\n".join(f"- {line}" for line in lines)

    async def _stop(self, asked: Asked) -> Reply:
        thread_id = asked.conversation.thread_id
        stopped = await self._services.stop(asked.principal, thread_id) if thread_id else 0
        return "Stopping." if stopped else "Nothing is going on here."

    async def _models(self, asked: Asked) -> Reply:
        found = await self._services.models(asked.principal)
        return _listed(found, asked.conversation.model, "/model NAME chooses one.") or "No model is configured."

    async def _model(self, asked: Asked) -> Reply:
        if not asked.argument:
            return await self._models(asked)
        return await self._choose(asked, "model", await self._services.models(asked.principal))

    async def _agent(self, asked: Asked) -> Reply:
        found = await self._services.agents(asked.principal)
        if not asked.argument:
            listed = _listed(found, asked.conversation.agent, "/agent NAME chooses one, /agent default none of them.")
            return listed or "You have no agents of your own. /bootstrap makes one."
        return await self._choose(asked, "agent", found)

    async def _choose(self, asked: Asked, what: str, found: Sequence[tuple[str, str]]) -> str:
        if asked.argument.lower() == "default":
            await self._conversations.change(asked.conversation, **{what: None})
            return f"The default {what} answers from now on."
        name = next((name for name, _ in found if name.lower() == asked.argument.lower()), None)
        if name is None:
            known = ", ".join(f"`{name}`" for name, _ in found) or "none"
            return f"There is no {what} of this name. There are: {known}."
        await self._conversations.change(asked.conversation, **{what: name})
        return f"`{name}` answers from now on."

    async def _memory(self, asked: Asked) -> Reply:
        facts = await self._services.facts(asked.principal, asked.conversation.agent)
        if not asked.message.place.is_private:
            return f"I remember {len(facts)} facts about you. Ask in a private chat to see them."
        shown = "\n".join(f"- {fact}" for fact in facts[:20])
        more = f"\n\n{len(facts) - 20} more stand on the page." if len(facts) > 20 else ""
        return f"{shown}{more}" if facts else "I remember nothing about you yet."

    async def _compact(self, asked: Asked) -> Reply:
        return Begin(f"/compact {asked.argument}".strip())

    async def _usage(self, asked: Asked) -> Reply:
        used = await self._services.usage(asked.principal)
        money = ", ".join(f"{amount:.2f} {currency}" for currency, amount in used["cost"].items())
        return f"Today: {used['total_tokens']:,} tokens in {used['calls']:,} calls{f', {money}' if money else ''}."

    async def _bootstrap(self, asked: Asked) -> Reply:
        return Begin(asked.argument or "I want to make an agent of my own.", {"is_bootstrap": True})

    async def _help(self, asked: Asked) -> Reply:
        lines = [f"- `{command.usage}` – {command.help}" for command in self._commands.values()]
        lines.append("- `/connect CODE` – connect this account; the page makes the code, under Settings → Channels")
        lines.append("- `/disconnect` – disconnect this account")
        return "\n".join(lines)


def _listed(found: Sequence[tuple[str, str]], chosen: str | None, hint: str) -> str:
    lines = [
        f"- {'**' if name == chosen else ''}`{name}`{'**' if name == chosen else ''}{f' – {what}' if what else ''}"
        for name, what in found
    ]
    return "\n".join([*lines, "", hint]) if lines else ""
