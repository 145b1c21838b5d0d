"""Put a page and everything it uses into one HTML file, and check that it refers to nothing outside."""

from __future__ import annotations

import argparse
import base64
import mimetypes
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

CSS_URL = re.compile(r"""url\(\s*(['"]?)([^'")]+)\1\s*\)""")
CSS_IMPORT = re.compile(r"""@import\s+(?:url\()?\s*['"]?([^'")\s;]+)['"]?\s*\)?([^;]*);""")
SCRIPT_FETCH = re.compile(
    r"""(?:fetch|import|importScripts|new\s+(?:WebSocket|EventSource|Worker))\s*\(\s*[`'"]([^`'"]+)|\bfrom\s*['"]([^'"]+)['"]|\bimport\s*['"]([^'"]+)['"]"""
)
SOURCES = {
    "img": ["src", "srcset"],
    "script": ["src"],
    "source": ["src", "srcset"],
    "video": ["src", "poster"],
    "audio": ["src"],
    "iframe": ["src"],
    "embed": ["src"],
    "object": ["data"],
    "track": ["src"],
    "input": ["src"],
    "image": ["href", "xlink:href"],
    "use": ["href", "xlink:href"],
}


class Bundle:
    """One page. ``problems`` names what cannot be put inside."""

    def __init__(self, page: Path) -> None:
        self.page = page
        self.problems: list[str] = []
        self.used: set[Path] = set()

    def local(self, address: str, base: Path) -> Path | None:
        """The file behind an address; None (and a problem, if it is one) for all else."""
        if not address or address.startswith(("data:", "#", "blob:", "about:", "mailto:", "javascript:")):
            return None
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            self.problems.append(f"{address} is outside; put the file beside the page, or leave it out")
            return None
        path = (
            self.page.parent / unquote(parts.path).lstrip("/")
            if parts.path.startswith("/")
            else base / unquote(parts.path)
        ).resolve()
        if not path.is_file() or not path.is_relative_to(self.page.parent.resolve()):
            self.problems.append(f"{address} is no file beside the page")
            return None
        self.used.add(path)
        return path

    def data(self, path: Path) -> str:
        kind = mimetypes.guess_type(path.name)[0] or {".woff2": "font/woff2", ".woff": "font/woff"}.get(
            path.suffix, "application/octet-stream"
        )
        return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"

    def css(self, text: str, base: Path, depth: int = 0) -> str:
        def imported(match: re.Match[str]) -> str:
            path = self.local(match[1], base)
            if path is None or depth > 5:
                return ""
            inner = self.css(path.read_text("utf-8"), path.parent, depth + 1)
            return f"@media {match[2].strip()} {{{inner}}}" if match[2].strip() else inner

        def inlined(match: re.Match[str]) -> str:
            path = self.local(match[2], base)
            return f'url("{self.data(path)}")' if path else match[0]

        return CSS_URL.sub(inlined, CSS_IMPORT.sub(imported, text))

    def script(self, text: str) -> str:
        for groups in SCRIPT_FETCH.findall(text):
            address = next(filter(None, groups))
            if not address.startswith(("data:", "blob:", "#")):
                self.problems.append(f"a script loads {address}; write the data into the page instead")
        return text.replace("</script", "<\\/script")

    def build(self) -> str:
        soup = BeautifulSoup(self.page.read_text("utf-8"), "html.parser")
        base = self.page.parent
        for link in soup.find_all("link"):
            relation, address = " ".join(link.get("rel", [])), str(link.get("href", ""))
            if "stylesheet" in relation:
                if path := self.local(address, base):
                    style = soup.new_tag("style")
                    if link.get("media"):
                        style["media"] = link["media"]
                    style.string = self.css(path.read_text("utf-8"), path.parent)
                    link.replace_with(style)
            elif "icon" in relation:
                if path := self.local(address, base):
                    link["href"] = self.data(path)
            elif relation in ("preload", "preconnect", "dns-prefetch", "modulepreload", "prefetch", "manifest"):
                link.decompose()
        for style in soup.find_all("style"):
            if style.string:
                style.string = self.css(style.string, base)
        for script in soup.find_all("script"):
            kind = str(script.get("type", ""))
            if script.get("src"):
                if path := self.local(str(script["src"]), base):
                    script.string = self.script(path.read_text("utf-8"))
                    del script["src"]
                    if script.has_attr("defer") and kind != "module":
                        script["type"] = "module"  # without src, only modules wait for the page
                        del script["defer"]
            elif script.string and kind in ("", "module", "text/javascript"):
                self.script(script.string)
        for name, attributes in SOURCES.items():
            for element in soup.find_all(name):
                for attribute in attributes:
                    self.attribute(element, attribute, base)
        for element in soup.find_all(style=True):
            element["style"] = self.css(str(element["style"]), base).replace('"', "'")
        for form in soup.find_all("form", action=True):
            if urlsplit(str(form["action"])).netloc:
                self.problems.append(f"a form sends to {form['action']}")
        return str(soup)

    def attribute(self, element: Tag, name: str, base: Path) -> None:
        value = str(element.get(name, ""))
        if not value or (element.name == "script" and name == "src" and not value):
            return
        if name == "srcset":
            del element[name]
        elif path := self.local(value, base):
            element[name] = self.data(path)


def remarks(html: str) -> list[str]:
    """What a good page has and this one lacks."""
    soup = BeautifulSoup(html, "html.parser")
    found = []
    if not html.lstrip().lower().startswith("<!doctype html"):
        found.append("the page does not begin with <!doctype html>")
    if soup.html is None or not soup.html.get("lang"):
        found.append("<html> has no lang")
    if soup.find("meta", attrs={"name": "viewport"}) is None:
        found.append("there is no viewport for phones")
    if soup.find("meta", charset=True) is None:
        found.append('there is no <meta charset="utf-8">')
    if soup.title is None or not soup.title.get_text().strip():
        found.append("there is no title")
    found += [f"a picture has no alt: {str(image)[:60]}" for image in soup.find_all("img") if not image.has_attr("alt")]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("-o", "--output", type=Path, help="the file to write; without it, the page is only checked")
    options = parser.parse_args()
    if not options.page.is_file():
        print(f"{options.page} does not exist", file=sys.stderr)
        return 2
    bundle = Bundle(options.page)
    html = bundle.build()
    for problem in dict.fromkeys(bundle.problems):
        print(f"- {problem}")
    for remark in remarks(html):
        print(f"? {remark}")
    if bundle.problems:
        return 1
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(html, "utf-8")
        print(f"{options.output}: {len(html.encode()) / 1024:.0f} kB, {len(bundle.used)} files inside")
    elif bundle.used:
        print(f"{len(bundle.used)} files would go inside: {', '.join(sorted(path.name for path in bundle.used))}")
    else:
        print("The page stands alone.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
