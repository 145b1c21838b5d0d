"""Kinds of parameters in the paths of routes."""

from __future__ import annotations

from starlette.convertors import Convertor, register_url_convertor

FILE_PATH = "{path:file}"
"""As ``{path:path}``, but a file's name may hold line breaks."""
WEB_PATH = "{path:web}"
"""Nothing of the API, where a wrong path or method has to be told as JSON and not as a page."""


class _Text(Convertor[str]):
    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


class _FilePath(_Text):
    regex = r"(?s:.*)"


class _WebPath(_Text):
    regex = r"(?!(?:api|preview|health)(?:/|$))(?s:.*)"


register_url_convertor("file", _FilePath())
register_url_convertor("web", _WebPath())
