"""What the person types: the prompt, and Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style

LEAVE_HINT = "Ctrl-D or /exit leaves"

_STYLE = Style.from_dict(
    {"prompt": "ansicyan bold", "bottom-toolbar": "noreverse ansibrightblack", "hint": "ansiyellow"}
)


class _CommandCompleter(WordCompleter):
    """Completes a slash command while it is the whole line."""

    def get_completions(self, document: Document, complete_event: object):  # type: ignore[no-untyped-def]
        if document.text.startswith("/") and " " not in document.text:
            yield from super().get_completions(document, complete_event)  # type: ignore[arg-type]


class Prompt:
    """Args:
    history_file: where entered lines are kept; kept in memory only when it cannot be written.
    commands: slash commands to list and to complete, by how they are used: what they do.
    status: text for the line below the prompt, asked for at every redraw.
    """

    def __init__(self, history_file: Path, commands: Mapping[str, str], status: Callable[[], str]) -> None:
        self._status = status
        self._commands = commands
        self._hint = ""
        self._session: PromptSession[str] = PromptSession(
            history=_history(history_file),
            multiline=True,
            key_bindings=self._keys(),
            completer=_CommandCompleter([usage.split()[0] for usage in commands], sentence=True),
            complete_style=CompleteStyle.READLINE_LIKE,
            complete_while_typing=False,
            reserve_space_for_menu=0,
            bottom_toolbar=self._toolbar,
            refresh_interval=1,
            style=_STYLE,
            prompt_continuation=lambda width, line, wrapped: "  ",
        )
        self._session.default_buffer.on_text_changed += self._forget_hint

    async def line(self, begun: str = "") -> str | None:
        """Return what the person entered, who may have ``begun`` before; None when they want to leave."""
        self._hint = ""
        try:
            return await self._session.prompt_async([("class:prompt", "› ")], default=begun)
        except EOFError:
            return None
        except KeyboardInterrupt:
            return ""

    def _forget_hint(self, _buffer: Buffer) -> None:
        self._hint = ""

    def _toolbar(self) -> StyleAndTextTuples:
        if self._hint:
            return [("class:hint", f"  {self._hint}")]
        text = self._session.default_buffer.text
        if text.startswith("/") and " " not in text:
            found = {usage: what for usage, what in self._commands.items() if usage.startswith(text)}
            if found:
                width = max(map(len, found))
                return [("", "\n".join(f"  {usage:<{width}}  {what}" for usage, what in found.items()))]
        return [("", f"  {self._status()}")]

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def _enter(event: KeyPressEvent) -> None:
            event.current_buffer.validate_and_handle()

        @keys.add("escape", "enter")
        @keys.add("c-j")
        def _new_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-c")
        def _clear_or_hint(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.reset()
            else:
                self._hint = LEAVE_HINT

        return keys


def _history(file: Path) -> History:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.open("a").close()
        file.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
