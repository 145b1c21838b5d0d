"""The tools for the web, one shape of result for each, whatever the provider.

``web_search`` gives a JSON array of ``{title, url, snippet}`` with ``published`` and ``also_at`` where they are known, ``image_search`` a JSON object with ``results`` of ``{title,
image_url, thumbnail_url, source_url}`` and, where it is known, ``width`` and ``height``, ``web_fetch`` a text that begins with ``# title``. What a page said is kept in the
thread, so that a citation can be opened as it was read.
"""

from __future__ import annotations

import asyncio
import json
import mimetypes
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import httpx
from langchain_core.tools import BaseTool, ToolException
from pydantic import Field

from deerflow.config.schema import ToolConfig
from deerflow.sandbox.converters import UnreadableError
from deerflow.sandbox.interface import SandboxError
from deerflow.security.addresses import Blocked
from deerflow.security.door import harmless
from deerflow.security.html import Page, decoded
from deerflow.security.outbound import Outbound, tls
from deerflow.security.text import inline, sanitize
from deerflow.storage.pages import ThreadPages
from deerflow.storage.provenance import Via
from deerflow.tools.decorator import REACHES, Runtime, async_tool
from deerflow.tools.download import Download, WebError, body, fetch, kept_path, network_of, reached
from deerflow.tools.shell import settings

OPENS_ADDRESS = {"openWorldHint": True, "readOnlyHint": True, REACHES: "address"}
SEARCHES = {"openWorldHint": True, "readOnlyHint": True, REACHES: "search"}
MAX_ANSWER = 10 << 20
DEFAULTS: Mapping[str, Any] = {"max_results": 5, "timeout": 20, "contents_max_characters": 16_000}
_TEXT = re.compile(r"text/.*|application/(?:.*\+)?(?:json|xml|yaml|javascript)|application/x-(?:yaml|ndjson|sh)")
_HTML = ("text/html", "application/xhtml+xml")


class Options(dict[str, Any]):
    """What the tool's entry in the configuration says, over the defaults. What nobody says is None."""

    def __missing__(self, key: str) -> None:
        return None


Ask = Callable[[str, Options], Awaitable[Any]]
"""What a provider finds for a query, as mappings, or how it shows an address, as a :class:`Page` or its HTML. Raises WebError."""


@dataclass(frozen=True, slots=True)
class Api:
    """A question to a service's HTTP API.

    Args:
        service: its name.
        url: where it stands; the option ``base_url`` replaces what comes before the path.
        content: what it is sent for the query or address: JSON, or parameters of a GET. What is None in it is left out.
        read: what counts in the JSON of its answer.
        key: the environment variable that holds the key; the option ``api_key`` goes first.
        key_header: where the key goes.
        needs_key: nothing works without one.
        headers: further ones.
        method: of HTTP.
    """

    service: str
    url: str
    content: Callable[[str, Options], dict[str, Any]]
    read: Callable[[Any], Any]
    key: str = ""
    key_header: str = "Authorization"
    needs_key: bool = True
    headers: Callable[[Options], dict[str, str]] = lambda _: {}
    method: str = "POST"

    async def __call__(self, asked: str, options: Options) -> Any:
        """What it answers. Raises WebError, with a sentence that says what to do."""
        key = (options["api_key"] or options["environ"].get(self.key)) if self.key else None
        if self.key and self.needs_key and not key:
            raise WebError(f"{self.service} needs a key. Set {self.key}, or api_key of this tool in config.yaml.")
        if not (base := str(options["base_url"] or "").rstrip("/")) and self.url.startswith("/"):
            raise WebError(f"{self.service} has no address. Set base_url of this tool in config.yaml.")
        url = base + (httpx.URL(self.url).path if base else self.url)
        headers = {"Accept-Encoding": "gzip, deflate", **self.headers(options)}
        if key:
            headers[self.key_header] = f"Bearer {key}" if self.key_header == "Authorization" else key
        content = {name: value for name, value in self.content(asked, options).items() if value is not None}
        part: dict[str, Any] = {"params" if self.method == "GET" else "json": content}
        timeout = float(options["timeout"])
        async with (
            reached(self.service, timeout),
            httpx.AsyncClient(timeout=timeout, verify=await asyncio.to_thread(tls)) as client,
            client.stream(self.method, url, headers=headers, **part) as answer,
        ):
            data = await body(answer, MAX_ANSWER)
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


def first_page(service: str, text: str) -> Callable[[Any], Page]:
    """Reads a page out of JSON: the first of ``results``, with its ``title`` and what ``text`` names."""

    def read(answer: Any) -> Page:
        if not answer["results"]:
            raise WebError(f"{service} could not read this page.")
        return Page(answer["results"][0].get("title") or "", answer["results"][0][text])

    return read


Period = Literal["day", "week", "month", "year"]
DAYS: Mapping[str, int] = {"day": 1, "week": 7, "month": 31, "year": 366}
LETTERS: Mapping[str, str] = {period: period[0] for period in DAYS}
"""Names of periods, as several providers have them."""
MOST_RESULTS = 20


def search_tool(ask: Ask, *, takes_site: bool = False, takes_period: bool = True) -> BaseTool:
    """``web_search`` by a provider whose hits say ``title``, ``url``, ``snippet`` and perhaps ``published``.

    Args:
        ask: finds the option ``max_results``, and where the model asked for them ``period`` and ``site``.
        takes_site: it looks at ``site`` itself; else that is written into the query, as people do.
        takes_period: it looks at ``period``.
    """

    @async_tool("web_search", metadata=SEARCHES)
    async def web_search(
        query: str,
        runtime: Runtime,
        max_results: Annotated[int | None, Field(description="Up to 20")] = None,
        period: Annotated[Period | None, Field(description="Only what is at most this old")] = None,
        site: Annotated[str | None, Field(description="Only pages of this host, e.g. who.int")] = None,
    ) -> str:
        """Search the web. Gives titles, addresses, snippets and days: read a page with web_fetch before you rely on it."""
        options = options_of(runtime, "web_search")
        if period and not takes_period:
            raise WebError(
                "This provider cannot search by period. Leave it out, and look at the days of what is found."
            )
        host = _host(site) if site else ""
        options |= {"period": period, "site": host or options["site"]}
        options["max_results"] = min(
            max_results or int(options["max_results"]), max(MOST_RESULTS, int(options["max_results"]))
        )
        hits = await ask(f"{query} site:{host}" if host and not takes_site else query, options)
        kept = [hit for hit in _usable(hits, "url") if not host or _is_of(hit["url"], host)]
        results = _joined([_hit(hit) for hit in kept])[: int(options["max_results"])]
        await _named(runtime, [url for result in results for url in (result["url"], *result.get("also_at", ()))], "hit")
        return _json(results)

    return web_search


def _hit(hit: Mapping[str, Any]) -> dict[str, Any]:
    published = _line(hit.get("published"), 40)
    shown = {"title": _line(hit.get("title")), "url": hit["url"], "snippet": _line(hit.get("snippet"), 2000)}
    return {**shown, "published": published} if published else shown


def _host(site: str) -> str:
    """The host that a model names, with or without what stands around it in an address. Raises WebError."""
    try:
        host = httpx.URL(site if "://" in site else f"https://{site.strip()}").host.removeprefix("www.")
    except httpx.InvalidURL:
        host = ""
    if "." not in host:
        raise WebError(f"{inline(site)} is no host: name one like who.int.")
    return host


def _is_of(url: str, host: str) -> bool:
    own = httpx.URL(url).host
    return own == host or own.endswith(f".{host}")


def _joined(hits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hits, where one page that stands at several addresses is one hit; the others are in its ``also_at``."""
    kept: list[dict[str, Any]] = []
    known: dict[Any, dict[str, Any]] = {}
    for hit in hits:
        address, said = _same_page(hit["url"]), (hit["title"].lower(), hit["snippet"].lower())
        first = known.get(address) or (known.get(said) if len(hit["snippet"]) >= TELLING else None)
        if first is None:
            first = hit
            kept.append(hit)
        else:
            first.setdefault("also_at", []).append(hit["url"])
        known.setdefault(address, first)
        known.setdefault(said, first)
    return kept


TELLING = 60
"""Letters from which on two pages with the same title and snippet are the same."""
_TRACKING = re.compile(r"(?:utm_\w+|gclid|fbclid|mc_cid|mc_eid|ref_src)=[^&]*&?")


def _same_page(url: str) -> str:
    """An address without what makes no other page of it: scheme, ``www.``, a trailing slash, marks of advertising."""
    parsed = httpx.URL(url)
    host = re.sub(r"^(?:www|m|amp)\.", "", parsed.host)
    query = _TRACKING.sub("", parsed.query.decode("ascii", "replace")).rstrip("&")
    return f"{host}:{parsed.port or ''}{parsed.path.rstrip('/')}?{query}"


def image_tool(ask: Ask) -> BaseTool:
    """``image_search`` by a provider whose hits say ``title``, ``image_url``, ``thumbnail_url`` and ``source_url``."""

    @async_tool("image_search", metadata=SEARCHES)
    async def image_search(query: str, runtime: Runtime) -> str:
        """Search the web for pictures. Gives addresses of pictures and of the pages that they stand on."""
        options = options_of(runtime, "image_search")
        hits = _usable(await ask(query, options), "image_url")[: int(options["max_results"])]
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
        shown = [result[key] for result in results for key in ("image_url", "thumbnail_url", "source_url")]
        await _named(runtime, shown, "hit")
        return _json({"query": _line(query), "total_results": len(results), "results": results})

    return image_search


def fetch_tool(ask: Ask | None = None) -> BaseTool:
    """``web_fetch``, by a provider that gives a :class:`Page` or HTML, or by ourselves."""

    @async_tool("web_fetch", metadata=OPENS_ADDRESS)
    async def web_fetch(
        url: Annotated[str, Field(description="With https://, exactly as the user or a tool gave it")], runtime: Runtime
    ) -> str:
        """Read a web page as Markdown, or download a file. Works without login only. The whole of it is kept in a file."""
        options, outbound = options_of(runtime, "web_fetch"), Outbound(network_of(settings(runtime)))
        if ask is None:
            loaded = await fetch(outbound, url, timeout=float(options["timeout"]))
            if not _is_text(loaded):
                return await _kept_file(loaded, runtime)
            html = loaded.media_type in _HTML
            page = await read_page(loaded.data, loaded.url, runtime, charset=loaded.charset, html=html)
            return await shown_page(page, loaded.url, options, runtime, loaded=loaded)
        check(outbound, url)
        found = await ask(url, options)
        page = await read_page(found.encode("utf-8", "replace"), url, runtime) if isinstance(found, str) else found
        return await shown_page(page, url, options, runtime)

    return web_fetch


async def _named(runtime: Runtime, addresses: Sequence[str], via: Via) -> None:
    """Record addresses that a search or a page named: the agent may open them without a question."""
    if (rows := runtime.context.trust.provenance) is not None:
        await rows.add_addresses(addresses, via)


def options_of(runtime: Runtime, name: str) -> Options:
    config = settings(runtime)
    entry = next((entry for entry in config.tools if entry.name == name), ToolConfig(name=name, group="web", use=""))
    return Options({**DEFAULTS, **entry.options(), "environ": config.origin.environ})


def check(outbound: Outbound, url: str) -> None:
    """Raises WebError if agents may not call this address."""
    try:
        outbound.check(url)
    except Blocked as blocked:
        raise WebError(f"{inline(url)}: {blocked}") from blocked


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


# loading -------------------------------------------------------------------------------------------------------------


# pages ---------------------------------------------------------------------------------------------------------------


def _is_text(loaded: Download) -> bool:
    """Whether what was loaded is a page or other text, as its server says, or as it looks where the server says nothing."""
    return (
        loaded.media_type in _HTML
        or _TEXT.fullmatch(loaded.media_type) is not None
        or (
            loaded.media_type == "application/octet-stream"
            and b"\0" not in loaded.data[:8000]
            and loaded.data[:4] != b"%PDF"
        )
    )


async def read_page(data: bytes, url: str, runtime: Runtime, *, charset: str = "", html: bool = True) -> Page:
    """Have a converter read what stood at ``url``. Raises WebError.

    Args:
        charset: of the data, as its server has it.
        html: it is a page; else only if it begins like one.
    """
    context = runtime.context
    try:
        return await context.reader().page(data, context.principal.user_id, url=url, charset=charset, html=html)
    except UnreadableError as error:
        raise WebError(f"The page could not be read: it {error} Try another source.") from error
    except SandboxError as error:
        raise WebError(str(error)) from error


async def shown_page(
    page: Page,
    url: str,
    options: Options,
    runtime: Runtime,
    notes: Iterable[str] = (),
    *,
    loaded: Download | None = None,
) -> str:
    """A page as its tool shows it, once the whole of it is kept.

    Args:
        notes: lines of its head.
        loaded: what came: it is kept, too; what is no page is kept as it came alone.
    """
    title, text = _line(page.title) or "Untitled", await asyncio.to_thread(harmless, page.text)
    if not text.strip():
        raise ToolException(
            f"Error: {inline(url)} holds no text. It may need JavaScript, or a login: use web_capture if you have it."
        )
    head = _head(page, title, url)
    if loaded is not None and page.plain:
        path = await keep(loaded.data, url, await asyncio.to_thread(_ending, loaded), runtime, title)
    else:
        path = await keep(f"{head}\n{text}\n".encode(), url, ".md", runtime, title)
    if loaded is not None and path and not page.plain:
        raw = path.removesuffix(".md") + ".html"
        notes = [*([f"As it came: {raw}"] if await _write(loaded.data, raw, url, title, runtime) else []), *notes]
    if page.scripted:
        notes = [*notes, "This page shows little without JavaScript: use web_capture if you have it."]
    await _named(runtime, page.links, "link")
    most = int(options["contents_max_characters"])
    where = f"The whole page is in {path}: use grep or read_file." if path else "The rest is lost."
    cut = f"\n\n[{most} of {len(text)} characters. {where}]" if len(text) > most else ""
    kept = "".join(f"{note}\n" for note in ([f"Kept as: {path}"] if path else []) + [*notes])
    return f"{head}{kept}\n{text[:most]}{cut}"


def _head(page: Page, title: str, url: str) -> str:
    """Return the head that stands above a page's text."""
    said = {
        "Source": inline(url, 2000),
        "Author": _line(page.head.author),
        "Published": _line(page.head.published),
        "Site": _line(page.head.site),
        "Language": _line(page.head.language, 20),
    }
    return f"# {title}\n\n" + "".join(f"{name}: {value}\n" for name, value in said.items() if value)


def _ending(loaded: Download) -> str:
    """Of the name of a file that came: its own, if it has a usual one, else that of its type."""
    own = re.search(r"\.[a-z0-9]{1,8}$", httpx.URL(loaded.url).path.lower())
    return own[0] if own else mimetypes.guess_extension(loaded.media_type) or ".txt"


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


async def keep(data: bytes, url: str, ending: str, runtime: Runtime, title: str = "") -> str | None:
    """Keep ``data`` in the thread, record where it came from, and return its path; None if this run has no files."""
    path = kept_path(data, url, ending)
    return path if await _write(data, path, url, title, runtime) else None


async def _write(data: bytes, path: str, url: str, title: str, runtime: Runtime) -> bool:
    try:
        await (await runtime.context.sandbox()).write(path, data)
    except SandboxError:
        return False
    if (pages := runtime.context.of(ThreadPages)) is not None:
        await pages.add(path, url, title or path.rpartition("/")[2], data)
    return True
