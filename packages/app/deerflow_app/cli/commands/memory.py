"""`deerflow memory …`: what agents remember of you."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from deerflow_app.cli.commands import AsJson, Settings, command, print_json, with_client
from deerflow_app.cli.failures import usage_failure
from deerflow_app.cli.terminal import clean

T = TypeVar("T")
Id = Annotated[str, typer.Argument(metavar="ID", help="As 'deerflow memory list' shows it.")]

app = typer.Typer(help="See and change what DeerFlow remembers about you.", no_args_is_help=True, rich_markup_mode=None)


@command(app, "list")
def list_facts(settings: Settings, as_json: AsJson = False) -> None:
    """List the facts, the surest first, those that wait for you last."""
    memory = with_client(settings, lambda client: client.aget_memory())
    print_json(memory) if as_json else _print(memory["facts"])


@command(app, "search")
def search(settings: Settings, query: Annotated[str, typer.Argument(help="Words.")], as_json: AsJson = False) -> None:
    """Find facts, the best first."""
    facts = with_client(settings, lambda client: client.asearch_memory(query))
    print_json({"facts": facts}) if as_json else _print(facts)


@command(app, "add")
def add(
    settings: Settings,
    content: Annotated[str, typer.Argument(help="One sentence.")],
    category: Annotated[str, typer.Option("--category", help="preference, knowledge, goal, …")] = "context",
    confidence: Annotated[float, typer.Option("--confidence", min=0, max=1)] = 1.0,
) -> None:
    """Remember something."""
    with_client(settings, lambda client: client.acreate_memory_fact(content, category, confidence))
    typer.echo("Remembered.")


@command(app, "forget")
def forget(settings: Settings, fact_id: Id) -> None:
    """Forget a fact. 'deerflow memory undo' restores it within 30 days."""
    with_client(settings, lambda client: client.adelete_memory_fact(fact_id))
    typer.echo("Forgotten.")


@command(app, "confirm")
def confirm(settings: Settings, fact_id: Id) -> None:
    """Let a fact count that came from a chat with text from outside."""
    with_client(settings, lambda client: client.aconfirm_memory_fact(fact_id))
    typer.echo("Confirmed.")


@command(app, "undo")
def undo(settings: Settings, fact_id: Id) -> None:
    """Restore a fact that was forgotten or superseded, or take one back."""
    with_client(settings, lambda client: client.aundo_memory_fact(fact_id))
    typer.echo("Done.")


@command(app, "export")
def export(settings: Settings) -> None:
    """Print everything as JSON."""
    print_json(with_client(settings, lambda client: client.aget_memory()))


@command(app, "import")
def import_(settings: Settings, file: Annotated[str, typer.Argument(help="An export; '-' reads stdin.")]) -> None:
    """Replace everything by an export."""
    try:
        document = json.loads(sys.stdin.read() if file == "-" else Path(file).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise usage_failure(
            f"{file} cannot be read: {error}", "Give a file that `deerflow memory export` wrote."
        ) from error
    memory = with_client(settings, lambda client: client.aimport_memory(document))
    typer.echo(f"Imported {len(memory['facts'])} facts.")


def _print(facts: list[dict[str, Any]]) -> None:
    for fact in facts:
        mark = f"  (not confirmed, from {clean(fact['untrusted'])})" if fact.get("untrusted") else ""
        typer.echo(
            f"{clean(fact['id'])}\t{clean(fact['category'])}\t{fact['confidence']:.2f}\t{clean(fact['content'])}{mark}"
        )
