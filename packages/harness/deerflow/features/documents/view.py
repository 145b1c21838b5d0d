"""What clients see of a document among uploads."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class DocumentState(TypedDict, total=False):
    """``conversion``: of the document to Markdown; not there for other files. The rest says where the Markdown is, or why there is none."""

    conversion: Literal["running", "done", "failed"]
    conversion_error: str
    markdown_file: str
    markdown_path: str
    markdown_virtual_path: str
    markdown_artifact_url: str
