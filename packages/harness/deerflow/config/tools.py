"""``tools``, ``tool_groups``, ``tool_search`` and ``uploads``."""

from __future__ import annotations

from typing import Any

from pydantic import field_validator

from deerflow.config.env import require
from deerflow.config.section import OpenSection, Section


class ToolGroupConfig(OpenSection):
    """A label under which agents may be given tools."""

    name: str


class ToolConfig(OpenSection):
    """One tool. Keys that are not listed here are options of the tool."""

    name: str
    group: str
    use: str
    """Path ``package.module:attribute`` of a LangChain tool."""
    max_results: int | None = None
    api_key: str | None = None
    timeout: float | None = None
    """Seconds."""
    search_type: str | None = None
    contents_max_characters: int | None = None
    search_time_range: int | None = None
    fetch_time: int | None = None
    navigation_timeout: int | None = None
    image_search_time_range: int | None = None
    image_size: str | None = None

    def options(self) -> dict[str, Any]:
        """Everything that configures the tool itself, without nulls. Raises ConfigError if a variable is missing."""
        self.require()
        own = {name: getattr(self, name) for name in type(self).model_fields if name not in ("name", "group", "use")}
        return {key: value for key, value in {**own, **require(self.model_extra or {})}.items() if value is not None}


class ToolSearchConfig(Section):
    """Whether MCP tools are hidden behind ``tool_search`` until the model asks for them."""

    enabled: bool = False


class UploadsConfig(OpenSection):
    """What happens to uploaded files."""

    auto_convert_documents: bool = False
    pdf_converter: str = "auto"
    """``auto``, ``pymupdf4llm`` or ``markitdown``."""

    @field_validator("pdf_converter", mode="after")
    @classmethod
    def _known_converter(cls, value: str) -> str:
        name = value.strip().lower()
        if name not in ("auto", "pymupdf4llm", "markitdown"):
            raise ValueError("should be 'auto', 'pymupdf4llm' or 'markitdown'")
        return name


DEFAULT_TOOLS = tuple(
    ToolConfig(name=name, group=group, use=f"deerflow.sandbox.tools:{name}_tool")
    for name, group in (
        ("ls", "file:read"),
        ("read_file", "file:read"),
        ("glob", "file:read"),
        ("grep", "file:read"),
        ("write_file", "file:write"),
        ("str_replace", "file:write"),
        ("bash", "bash"),
    )
)
DEFAULT_TOOL_GROUPS = tuple(ToolGroupConfig(name=name) for name in ("web", "file:read", "file:write", "bash"))
