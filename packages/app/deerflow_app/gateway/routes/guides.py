"""The documentation of this version, and what is new in it, as Markdown."""

from __future__ import annotations

import asyncio
from pathlib import Path as File
from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, Field

from deerflow.errors import NotFoundError
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal

router = Router(tags=["system"])
CHANGES = "changes"
_PACKAGED = File(__file__).parents[2] / "guides"
_REPOSITORY = File(__file__).parents[5]


class Guide(BaseModel):
    text: str = Field(description="Markdown.")


@router.get("/api/guides/{name:path}", summary="A page of the documentation, or what is new")
async def read_guide(
    name: Annotated[str, Path(pattern=r"^[a-z-]+(/[a-z-]+)?$", max_length=100)], principal: CurrentPrincipal
) -> Guide:
    """`changes` is the changelog; every other name is that of a file of the documentation, such as `workspace`."""
    try:
        return Guide(text=await asyncio.to_thread(_read, name))
    except FileNotFoundError as error:
        raise NotFoundError(f"The documentation has no page {name!r}.") from error


def _read(name: str) -> str:
    """Return the text as the wheel has it, or the repository that this runs from."""
    if _PACKAGED.is_dir():
        file = _PACKAGED / f"{name}.md"
    else:
        file = _REPOSITORY / "CHANGELOG.md" if name == CHANGES else _REPOSITORY / "docs" / f"{name}.md"
    return file.read_text("utf-8")
