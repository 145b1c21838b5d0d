"""`deerflow skills …`: which skills there are, which are on, and new ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from deerflow_app.cli.commands import AsJson, Settings, command, print_json, with_client
from deerflow_app.cli.failures import CommandFailure, usage_failure
from deerflow_app.cli.terminal import clean, one_line

app = typer.Typer(help="List, install and switch skills.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As 'deerflow skills list' shows it.")]
Suggestion = Annotated[str, typer.Argument(metavar="ID", help="As 'deerflow skills suggestions' shows it.")]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder with SKILL.md.")]

_NEW = """---
name: {name}
description: What it does, and when to use it.
---

# {name}

1. …
"""


@command(app, "list")
def list_skills(settings: Settings, as_json: AsJson = False) -> None:
    """List all skills."""
    found = with_client(settings, lambda client: client.alist_skills())
    if as_json:
        return print_json(found)
    for skill in found["skills"]:
        state = "on" if skill["enabled"] else "off"
        typer.echo(f"{clean(skill['name'])}\t{state}\t{skill['category']}\t{one_line(skill['description'], 100)}")


@command(app, "show")
def show(settings: Settings, name: Name, as_json: AsJson = False) -> None:
    """Show a skill and its text."""
    skill = with_client(settings, lambda client: client.aget_skill(name))
    if skill is None:
        raise CommandFailure(f"There is no skill {name!r}.", "`deerflow skills list` shows those there are.")
    if as_json:
        return print_json(skill)
    typer.echo(clean(skill["content"]))


@command(app, "install")
def install(
    settings: Settings,
    source: Annotated[str, typer.Argument(help="An archive, a folder, or https://host/repository#folder.")],
    as_json: AsJson = False,
) -> None:
    """Install a skill for yourself."""
    done = with_client(settings, lambda client: client.ainstall_skill(source))
    if as_json:
        return print_json(done)
    typer.echo(done["message"])
    _print_advice(done)


@command(app, "remove")
def remove(settings: Settings, name: Name) -> None:
    """Delete a skill of your own."""
    with_client(settings, lambda client: client.adelete_skill(name))
    typer.echo("Deleted.")


@command(app, "enable")
def enable(settings: Settings, name: Name) -> None:
    """Switch a skill on, for yourself."""
    with_client(settings, lambda client: client.aupdate_skill(name, enabled=True))
    typer.echo(f"{name} is on.")


@command(app, "disable")
def disable(settings: Settings, name: Name) -> None:
    """Switch a skill off, for yourself."""
    with_client(settings, lambda client: client.aupdate_skill(name, enabled=False))
    typer.echo(f"{name} is off.")


@command(app, "suggestions")
def suggestions(settings: Settings, as_json: AsJson = False) -> None:
    """Show what agents would change in your skills."""
    found = with_client(settings, lambda client: client.askill_suggestions())
    if as_json:
        return print_json(found)
    for one in found["suggestions"]:
        typer.echo(f"{one['id']}: {one['action']} {clean(one['name'])}/{clean(one['file_path'])}")
        _print_advice(one)
        typer.echo(clean(one["diff"]))
    if not found["suggestions"]:
        typer.echo("Nothing is suggested.")


@command(app, "accept")
def accept(settings: Settings, suggestion: Suggestion) -> None:
    """Make a suggested change."""
    with_client(settings, lambda client: client.areview_skill_suggestion(suggestion, accept=True))
    typer.echo("Accepted. `deerflow skills list` shows what is on.")


@command(app, "drop")
def drop(settings: Settings, suggestion: Suggestion) -> None:
    """Drop a suggested change."""
    with_client(settings, lambda client: client.areview_skill_suggestion(suggestion, accept=False))
    typer.echo("Dropped.")


@command(app, "secret")
def secret(
    settings: Settings,
    name: Name,
    secret: Annotated[str, typer.Argument(metavar="SECRET", help="Such as WEATHER_API_KEY.")],
    forget: Annotated[bool, typer.Option("--forget", help="Delete it.")] = False,
) -> None:
    """Keep a secret that scripts of a skill need; it is asked for, or read from stdin."""
    value = None if forget else typer.prompt(secret, hide_input=True)
    with_client(settings, lambda client: client.aset_skill_secret(name, secret, value))
    typer.echo(f"{secret} is {'forgotten' if forget else 'set'}.")


@command(app, "confirm")
def confirm(settings: Settings, name: Name) -> None:
    """Give a skill that has changed the secrets that you set for it."""
    skill = with_client(settings, lambda client: client.aget_skill(name))
    if skill is None:
        raise CommandFailure(f"There is no skill {name!r}.", "`deerflow skills list` shows those there are.")
    if not skill["unconfirmed_secrets"]:
        return typer.echo(f"Nothing is to be confirmed for {name}.")
    typer.echo(clean(skill["content"]))
    typer.confirm(
        f"Give {', '.join(skill['unconfirmed_secrets'])} to the scripts of {name} as they are now?", abort=True
    )
    with_client(settings, lambda client: client.aconfirm_skill_secrets(name, skill["digest"]))
    typer.echo("Confirmed.")


@command(app, "check")
def check(settings: Settings, folder: Folder) -> None:
    """Check a folder as if it was installed."""
    import tempfile

    from deerflow.errors import RequestError
    from deerflow.features.skills.installer import pack, unpacked
    from deerflow.features.skills.parser import KEYS, front_matter, notes, problems, read_skill_file
    from deerflow.features.skills.scan import scan

    with tempfile.TemporaryDirectory() as place:
        try:
            with unpacked(pack(folder), Path(place)) as (name, root):
                front = front_matter(read_skill_file(root / "SKILL.md"))
                findings = scan(root)
        except RequestError as error:
            raise CommandFailure(str(error)) from None
    if wrong := problems(front, folder.resolve().name):
        raise CommandFailure(f"Invalid skill: {' '.join(wrong)}")
    typer.echo(f"{name} is a skill.")
    for note in notes(front):
        typer.echo(f"  {note}")
    if unknown := sorted(front.keys() - KEYS):
        typer.echo(f"  Without a meaning here: {', '.join(unknown)}.")
    _print_findings(findings)


@command(app, "new")
def new(settings: Settings, folder: Folder) -> None:
    """Make a folder with a SKILL.md to begin with."""
    from deerflow.features.skills.parser import name_problem

    name = folder.resolve().name
    if problem := name_problem(name):
        raise usage_failure(f"The folder's name is the skill's: {problem}")
    if (folder / "SKILL.md").exists():
        raise usage_failure(f"{folder} is a skill already.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(_NEW.format(name=name), "utf-8")
    typer.echo(f"{folder / 'SKILL.md'} is yours to fill. Then: deerflow skills check {folder}")


def _print_advice(given: Mapping[str, Any]) -> None:
    _print_findings(given["findings"])
    if review := given.get("review"):
        typer.echo(f"  {clean(review['model'])}: {review['verdict']}. {clean(review['text'])}")


def _print_findings(findings: list[Any]) -> None:
    for finding in findings:
        typer.echo(f"  {clean(finding['file'])}:{finding['line']}: {finding['why']}: {clean(finding['text'])}")
