"""The parts of an Office file: a ZIP archive of XML, of which no entity, network or endless part is ever taken."""

# pyright: reportMissingImports=false

from __future__ import annotations

import io
import posixpath
import zipfile
from typing import Any
from urllib.parse import unquote

from deerflow.sandbox.converters.program import Unreadable

MOST_UNPACKED, MOST_XML = 512 << 20, 40 << 20
"""Bytes of an Office file's parts, and of one that holds text: more of it is never read in time."""
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_STRICT = (
    (
        b"http://purl.oclc.org/ooxml/wordprocessingml/main",
        b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    ),
    (
        b"http://purl.oclc.org/ooxml/officeDocument/relationships",
        b"http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    ),
)
"""Names of the standard's strict variant, and what everyone else writes."""


class OfficeParts:
    """The parts of one file by name."""

    def __init__(self, data: bytes) -> None:
        """Raises Unreadable if they are too large, and zipfile.BadZipFile."""
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        sizes = {part.filename: part.file_size for part in self._zip.infolist()}
        if sum(sizes.values()) > MOST_UNPACKED:
            raise Unreadable(f"unpacks to more than {MOST_UNPACKED >> 20} MB.")
        if any(size > MOST_XML for name, size in sizes.items() if name.endswith((".xml", ".html", ".xhtml"))):
            raise Unreadable(f"holds more than {MOST_XML >> 20} MB of text in one part. Read parts of it with Python.")
        self.sizes = sizes

    def bytes(self, name: str) -> bytes:
        """Return the bytes of a part; nothing if it is missing."""
        return self._zip.read(name) if name in self.sizes else b""

    def xml(self, name: str) -> Any:
        """The root element of a part; None if it is missing or broken beyond repair."""
        data = self.bytes(name)
        for strict, usual in _STRICT:
            data = data.replace(strict, usual)
        return parsed(data) if data.strip() else None

    def main(self, name: str, usual: str) -> str:
        """The part that a file begins with: its name begins with ``name``; else the usual one."""
        targets = [*self.relations("").values(), *self.sizes]
        found = (
            each
            for each in targets
            if posixpath.basename(each).startswith(name) and each.endswith(".xml") and "/" in each
        )
        return next(found, usual)

    def relations(self, part: str) -> dict[str, str]:
        """Return the meaning of the ids in a part: names of other parts, or addresses."""
        folder, name = posixpath.split(part)
        root = self.xml(f"{folder}/_rels/{name}.rels".lstrip("/"))
        found: dict[str, str] = {}
        for relation in root if root is not None else ():
            target = relation.get("Target") or ""
            if relation.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join(folder, unquote(target))).lstrip("/")
            found[relation.get("Id")] = target
        return found


def parsed(data: bytes) -> Any:
    from lxml import etree  # type: ignore[attr-defined]

    return etree.fromstring(
        data, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, recover=True)
    )


def local(element: Any) -> str:
    """An element's name without its namespace; empty for comments and the like."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def all_text(element: Any, name: str = "t") -> str:
    """The text of all elements of this name below ``element``."""
    return "".join(each.text or "" for each in element.iter() if local(each) == name)
