"""The tools for the web, one shape of result for each, whatever the provider.

``web_search`` gives a JSON array of ``{title, url, snippet}``, ``image_search`` a JSON object with ``results`` of ``{title,
image_url, thumbnail_url, source_url}`` and, where it is known, ``width`` and ``height``, ``web_fetch`` a text that begins with ``# title``. What a page said is kept in the
thread, so that a citation can be opened as it was read.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import mimetypes
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast

import httpx
from langchain_core.tools import BaseTool, ToolException
from pydantic import Field

from deerflow.community.fetcher import Download, Fetcher, WebError, body, unreachable
from deerflow.config.schema import AppConfig, ToolConfig
from deerflow.sandbox.interface import PAGES, SandboxError
from deerflow.security.addresses import Blocked, Network
from deerflow.security.door import harmless
from deerflow.security.html import Page, decoded, readable
from deerflow.security.outbound import Outbound, tls
from deerflow.security.text import inline, sanitize
from deerflow.tools.decorator import Runtime, async_tool
from deerflow.tools.shell import settings

READS_OUTSIDE = {"openWorldHint": True, "readOnlyHint": True}
MAX_ANSWER = 10 << 20
DEFAULTS: Mapping[str, Any] = {"max_results": 5, "timeout": 20, "contents_max_characters": 16_000}
_TEXT = re.compile(r"text/.*|application/(?:.*\+)?(?:json|xml|yaml|javascript)|application/x-(?:yaml|ndjson|sh)")
_HTML = ("text/html", "application/xhtml+xml")


class Options(dict[str, Any]):
    """What the tool's entry in the configuration says, over the defaults. What nobody says is None."""

    def __missing__(self, key: str) -> None:
        return None


Ask = Callable[[str, Options], Awaitable[Any]]
"""What a provider finds for a query, as mappings, or how it shows an address, as a :class:`Page`. Raises WebError."""


@dataclass(frozen=True, slots=True)
class Api:
    """A question to a service's HTTP API.

    Args:
        service: its name.
        url: where it stands; the option ``base_url`` replaces what comes before the path.
        request: arguments of httpx' ``request`` for the query or address; what is None in them is left out.
        read: what counts in the JSON of its answer.
        key: the environment variable that holds the key; the option ``api_key`` goes first.
        needs_key: nothing works without one.
        method: of HTTP.
    """

    service: str
    url: str
    request: Callable[[str, Options], dict[str, Any]]
    read: Callable[[Any], Any]
    key: str = ""
    needs_key: bool = True
    method: str = "POST"

    async def __call__(self, asked: str, options: Options) -> Any:
        """What it answers. Raises WebError, with a sentence that says what to do."""
        if self.key and self.needs_key and not options["api_key"]:
            raise WebError(f"{self.service} needs a key. Set {self.key}, or api_key of this tool in config.yaml.")
        if not (base := str(options["base_url"] or "").rstrip("/")) and self.url.startswith("/"):
            raise WebError(f"{self.service} has no address. Set base_url of this tool in config.yaml.")
        url = base + (httpx.URL(self.url).path if base else self.url)
        request: dict[str, Any] = {
            name: {key: value for key, value in part.items() if value is not None}
            for name, part in self.request(asked, options).items()
        }
        request["headers"] = {"Accept-Encoding": "gzip, deflate", **request.get("headers", {})}
        timeout = float(options["timeout"])
        try:
            async with (
                asyncio.timeout(timeout),
                httpx.AsyncClient(timeout=timeout, verify=await asyncio.to_thread(tls)) as client,
                client.stream(self.method, url, **request) as answer,
            ):
                data = await body(answer, MAX_ANSWER)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            raise WebError(unreachable(self.service, error, timeout)) from error
        if answer.status_code != 200:
            raise WebError(self._refusal(answer.status_code, data))
        try:
            is_json = "json" in answer.headers.get("content-type", "")
            return await asyncio.to_thread(lambda: self.read(json.loads(data) if is_json else decoded(data)))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise WebError(f"{self.service} answered in a shape that is not known here.") from error

    def _refusal(self, status: int, data: bytes) -> str:
        advice = {
            401: f"Its key is not valid: see {self.key}." if self.key else "It wants a key.",
            402: "Its account has no credit.",
            403: "It refuses; a SearXNG must list json in search.formats of its settings." if not self.key else "It refuses the key.",
            429: "Its limit is reached: try again later, or ask less.",
        }  # fmt: skip
        said = inline(decoded(data[:2000]), 200)
        return f"{self.service} answered {status}. {advice.get(status, 'Try again later, or use another source.')} {said}".rstrip()


def found(at: str, **names: str) -> Callable[[Any], list[dict[str, Any]]]:
    """Reads hits out of JSON: ``at`` is the path of their list, ``names`` that of each thing that a hit says."""

    def value(data: Any, path: str) -> Any:
        for name in path.split(".") if path else ():
            data = data.get(name) if isinstance(data, dict) else None
        return data

    return lambda data: [{name: value(hit, path) for name, path in names.items()} for hit in value(data, at) or ()]


def search_tool(ask: Ask) -> BaseTool:
    """``web_search`` by a provider whose hits say ``title``, ``url`` and ``snippet``."""

    @async_tool("web_search")
    async def web_search(query: str, runtime: Runtime) -> str:
        """Search the web. Gives titles, addresses and snippets: read a page with web_fetch before you rely on it."""
        options = options_of(runtime, "web_search")
        hits = await _asked(ask, query, options)
        results = [
            {"title": _line(hit.get("title")), "url": hit["url"], "snippet": _line(hit.get("snippet"), 2000)}
            for hit in _usable(hits, "url")[: int(options["max_results"])]
        ]
        return _json(results)

    return outside(web_search)


def image_tool(ask: Ask) -> BaseTool:
    """``image_search`` by a provider whose hits say ``title``, ``image_url``, ``thumbnail_url`` and ``source_url``."""

    @async_tool("image_search")
    async def image_search(query: str, runtime: Runtime) -> str:
        """Search the web for pictures. Gives addresses of pictures and of the pages that they stand on."""
        options = options_of(runtime, "image_search")
        hits = _usable(await _asked(ask, query, options), "image_url")[: int(options["max_results"])]
        results = [
            {
                "title": _line(hit.get("title")),
                "image_url": hit["image_url"],
                "thumbnail_url": _address(hit.get("thumbnail_url")) or hit["image_url"],
                "source_url": _address(hit.get("source_url")) or "",
                **_pixels(hit),
            }
            for hit in hits
        ]
        return _json({"query": _line(query), "total_results": len(results), "results": results})

    return outside(image_search)


def fetch_tool(ask: Ask | None = None) -> BaseTool:
    """``web_fetch``, by a provider that gives a :class:`Page`, or by ourselves."""

    @async_tool("web_fetch")
    async def web_fetch(
        url: Annotated[str, Field(description="With https://, exactly as the user or a tool gave it")], runtime: Runtime
    ) -> str:
        """Read a web page as Markdown, or download a file. Works without login only. The whole of it is kept in a file."""
        options, outbound = options_of(runtime, "web_fetch"), Outbound(network_of(settings(runtime)))
        if ask is None:
            try:
                loaded = await Fetcher(outbound, timeout=float(options["timeout"])).get(url)
            except WebError as error:
                raise ToolException(f"Error: {error}") from error
            if (page := await asyncio.to_thread(_page, loaded)) is None:
                return await _kept_file(loaded, runtime)
            return await shown_page(page, loaded.url, options, runtime)
        try:
            outbound.check(url)
        except Blocked as blocked:
            raise ToolException(f"Error: {inline(url)}: {blocked}") from blocked
        page = cast(Page, await _asked(ask, url, options))
        return await shown_page(page, url, options, runtime)

    return outside(web_fetch)


def network_of(config: AppConfig) -> Network:
    """What of the web is open to agents and people, whether commands have a network or not."""
    network = config.sandbox.network
    mode = "allowlist" if network.mode == "allowlist" else "internet"
    return Network(mode, network.allow, network.deny, network.ports, network.allow_nets)


def outside(tool: BaseTool) -> BaseTool:
    tool.metadata = READS_OUTSIDE
    return tool


def options_of(runtime: Runtime, name: str) -> Options:
    config = settings(runtime)
    entry = next((entry for entry in config.tools if entry.name == name), ToolConfig(name=name, group="web", use=""))
    return Options({**DEFAULTS, **entry.options(), "environ": config.origin.environ})


async def _asked(ask: Ask, what: str, options: Options) -> Any:
    if isinstance(ask, Api) and ask.key:
        options["api_key"] = options["api_key"] or options["environ"].get(ask.key)
    try:
        return await ask(what, options)
    except WebError as error:
        raise ToolException(f"Error: {error}") from error


def _usable(hits: Iterable[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """Hits with an address that can be opened, once each."""
    kept: dict[str, dict[str, Any]] = {}
    for hit in hits:
        if (url := _address(hit.get(name))) is not None:
            kept.setdefault(url, {**hit, name: url})
    return list(kept.values())


def _address(url: Any) -> str | None:
    """``url`` if it is an ordinary address of the web: no other scheme, no password, nothing hidden."""
    if not isinstance(url, str) or len(url) > 2000 or re.search(r"[\s<>\"\x00-\x20\x7f]", url):
        return None
    try:
        parsed = httpx.URL(url)
        usable = parsed.scheme in ("http", "https") and parsed.host and not parsed.userinfo
    except (httpx.InvalidURL, UnicodeError):
        return None
    return str(parsed) if usable and sanitize(url) == url else None


def _pixels(hit: Mapping[str, Any]) -> dict[str, int]:
    """Width and height of a picture, which providers give as two numbers or as ``1920 x 1080``; or nothing."""
    numbers = re.findall(r"\d+", f"{hit.get('width')} {hit.get('height')} {hit.get('resolution')}")
    sides = [int(number) for number in numbers if len(number) < 6]
    return {"width": sides[0], "height": sides[1]} if len(sides) == 2 else {}


def _line(text: Any, limit: int = 300) -> str:
    return inline(harmless(re.sub(r"</?\w{1,10}>", "", str(text or "")), limit * 2), limit)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


# pages ---------------------------------------------------------------------------------------------------------------


def _page(loaded: Download) -> Page | None:
    """What was loaded as text; None: it is none."""
    is_text = _TEXT.fullmatch(loaded.media_type) or (
        loaded.media_type == "application/octet-stream"
        and b"\0" not in loaded.data[:8000]
        and loaded.data[:4] != b"%PDF"
    )
    if not (loaded.media_type in _HTML or is_text):
        return None
    text = decoded(loaded.data, loaded.charset)
    if loaded.media_type in _HTML or re.match(r"\s*<(?:!doctype html|html)\b", text[:1000], re.IGNORECASE):
        return readable(text, loaded.url)
    return Page("", text)


async def shown_page(page: Page, url: str, options: Options, runtime: Runtime, notes: Iterable[str] = ()) -> str:
    """A page as its tool shows it, once the whole of it is kept. ``notes`` are lines of its head."""
    title, text = _line(page.title) or "Untitled", await asyncio.to_thread(harmless, page.text)
    if not text.strip():
        raise ToolException(f"Error: {inline(url)} holds no text. It may need JavaScript, or a login.")
    head = f"# {title}\n\nSource: {inline(url, 2000)}\n"
    path = await keep(f"{head}\n{text}\n".encode(), url, ".md", runtime)
    most = int(options["contents_max_characters"])
    where = f"The whole page is in {path}: use grep or read_file." if path else "The rest is lost."
    cut = f"\n\n[{most} of {len(text)} characters. {where}]" if len(text) > most else ""
    kept = "".join(f"{note}\n" for note in ([f"Kept as: {path}"] if path else []) + [*notes])
    return f"{head}{kept}\n{text[:most]}{cut}"


async def _kept_file(loaded: Download, runtime: Runtime) -> str:
    ending = await asyncio.to_thread(mimetypes.guess_extension, loaded.media_type)
    path = await keep(loaded.data, loaded.url, ending or ".bin", runtime)
    if path is None:
        raise ToolException(
            f"Error: {inline(loaded.url)} is a file ({inline(loaded.media_type)}), and it could not be kept."
        )
    return (
        f"# {path.rpartition('/')[2]}\n\nSource: {inline(loaded.url, 2000)}\nThis is no page but a file: "
        f"{inline(loaded.media_type)}, {len(loaded.data)} bytes. It is kept as {path}."
    )


async def keep(data: bytes, url: str, ending: str, runtime: Runtime) -> str | None:
    """Where in the thread ``data`` stands from now on; None: this run has no files."""
    path = kept_path(data, url, ending)
    try:
        await (await runtime.context.sandbox()).write(path, data)
    except SandboxError:
        return None
    return path


def kept_path(data: bytes, url: str, ending: str) -> str:
    """Where a thread keeps what stood at an address: a name that people recognise, and another one when it has changed."""
    digest = hashlib.sha256(url.encode() + b"\0" + data).hexdigest()[:10]
    name = re.sub(r"[^A-Za-z0-9.]+", "-", re.sub(r"^https?://(?:www\.)?", "", url.partition("?")[0]))[:60].strip("-.")
    return f"{PAGES}/{name}-{digest}{ending}"
