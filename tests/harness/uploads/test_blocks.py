"""Every shape in which clients put files into messages is read as the same file."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from deerflow.uploads.blocks import file_block

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
DATA = base64.b64encode(PNG).decode()
URL = f"data:image/png;base64,{DATA}"

PICTURES: dict[str, dict[str, Any]] = {
    "OpenAI chat": {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
    "bare text": {"type": "image_url", "image_url": URL},
    "OpenAI responses": {"type": "input_image", "image_url": URL, "detail": "auto"},
    "Anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
    "LangChain JS": {"type": "image", "mimeType": "image/png", "data": DATA},
    "LangChain JS with a data URL": {"type": "image", "url": URL},
    "LangChain v1": {"type": "image", "base64": DATA, "mime_type": "image/png"},
    "LangChain v0": {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": DATA},
    "file of JS": {"type": "file", "mimeType": "image/png", "data": DATA, "metadata": {"filename": "cat.png"}},
    "OpenAI file": {"type": "file", "file": {"filename": "cat.png", "file_data": URL}},
    "OpenAI input_file": {"type": "input_file", "filename": "cat.png", "file_data": URL},
    "Gemini": {"type": "media", "mime_type": "image/png", "data": DATA},
}
ELSEWHERE: dict[str, dict[str, Any]] = {
    "OpenAI": {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    "bare text": {"type": "image_url", "image_url": "https://example.org/a.png"},
    "LangChain v1": {"type": "image", "url": "https://example.org/a.png"},
    "LangChain v0": {"type": "image", "source_type": "url", "url": "https://example.org/a.png"},
    "Anthropic": {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
}


@pytest.mark.parametrize("shape", PICTURES)
def test_a_picture_is_found_in_every_shape(shape: str) -> None:
    file = file_block(PICTURES[shape])
    assert file is not None and file.is_picture and not file.is_elsewhere
    assert file.content() == PNG
    stem = "cat" if file.name else "picture"
    assert file.filename(PNG, "0123456789") == f"{stem}-01234567.png"


@pytest.mark.parametrize("shape", ELSEWHERE)
def test_a_picture_at_an_address_is_told_from_one_that_came(shape: str) -> None:
    file = file_block(ELSEWHERE[shape])
    assert file is not None and file.is_picture and file.is_elsewhere
    assert (file.address, file.filename(PNG, "0" * 8)) == ("https://example.org/a.png", "a-00000000.png")


def test_other_files_keep_their_ending_and_texts_their_words() -> None:
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}}
    assert file_block(pdf).filename(b"%PDF", "0" * 8) == "file-00000000.pdf"  # type: ignore[union-attr]
    text = file_block({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Grüße"}})
    assert text is not None and text.content().decode() == "Grüße"
    named = file_block({"type": "input_file", "filename": "../../a\\b.csv", "file_data": "YSxi"})
    assert named is not None and named.filename(b"a,b", "0" * 8) == "a_b-00000000.csv"


@pytest.mark.parametrize("block", ["text", {"type": "text", "text": "x"}, {"type": "tool_use", "id": "1"}, 1, {}])
def test_what_is_no_file_is_left(block: Any) -> None:
    assert file_block(block) is None


@pytest.mark.parametrize("data", ["no base64!", "data:image/png;base64,###", "data:image/png;base64,"])
def test_broken_data_is_an_error_that_says_so(data: str) -> None:
    file = file_block({"type": "image_url", "image_url": data} if "," in data else {"type": "image", "data": data})
    assert file is not None
    with pytest.raises(ValueError, match=r"base64|empty"):
        file.content()
