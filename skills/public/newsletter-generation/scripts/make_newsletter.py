"""Turn a Markdown newsletter into HTML that mail programs show rightly (tables, inline styles) and a plain text version."""

from __future__ import annotations

import argparse
import html
import re
import sys
from pathlib import Path

import markdown
import yaml
from bs4 import BeautifulSoup, Tag

FONT = "font-family:-apple-system,'Segoe UI',Helvetica,Arial,'PingFang SC','Microsoft YaHei',sans-serif"
STYLES = {
    "h2": "margin:32px 0 8px;font-size:21px;line-height:1.3;color:{color}",
    "h3": "margin:22px 0 6px;font-size:17px;line-height:1.35;color:#1f2933",
    "p": "margin:0 0 14px;font-size:16px;line-height:1.55;color:#1f2933",
    "ul": "margin:0 0 14px;padding-left:22px",
    "ol": "margin:0 0 14px;padding-left:22px",
    "li": "margin:0 0 7px;font-size:16px;line-height:1.5;color:#1f2933",
    "a": "color:{color};text-decoration:underline",
    "blockquote": "margin:0 0 16px;padding:4px 0 4px 16px;border-left:3px solid {color}",
    "img": "display:block;width:100%;max-width:552px;height:auto;border:0",
    "hr": "margin:28px 0;border:0;border-top:1px solid #d9dee3",
    "table": "width:100%;border-collapse:collapse;margin:0 0 16px;font-size:15px",
    "th": "text-align:left;padding:7px 8px;border-bottom:2px solid {color}",
    "td": "padding:7px 8px;border-bottom:1px solid #e4e8ec",
    "code": "font-family:Consolas,monospace;font-size:14px",
}
PAGE = """<!doctype html>
<html lang="{lang}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title></head>
<body style="margin:0;padding:0;background:#eef1f4;{font}">
<div style="display:none;max-height:0;overflow:hidden">{preheader}</div>
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="background:#eef1f4"><tr><td align="center" style="padding:24px 10px">
<table role="presentation" width="600" cellpadding="0" cellspacing="0" style="width:100%;max-width:600px;background:#ffffff">
<tr><td style="padding:26px 24px 20px;background:{color};color:#ffffff;{font}"><div style="font-size:13px;letter-spacing:.06em;text-transform:uppercase;opacity:.85">{kicker}</div>
<h1 style="margin:6px 0 0;font-size:28px;line-height:1.2;color:#ffffff">{title}</h1></td></tr>
<tr><td style="padding:22px 24px 26px;{font}">{body}</td></tr>
<tr><td style="padding:16px 24px 24px;border-top:1px solid #e4e8ec;font-size:13px;line-height:1.5;color:#66727f;{font}">{footer}</td></tr>
</table></td></tr></table></body></html>
"""


def plain(text: str) -> str:
    """Markdown as text with its links written out."""
    text = re.sub(r"!\[([^\]]*)\]\([^)]+\)", r"[\1]", text)
    text = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r"\1 (\2)", text)
    text = re.sub(r"^#{1,6}\s*(.+)$", lambda m: f"\n{m[1].upper()}", text, flags=re.MULTILINE)
    return re.sub(r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|`", "", text).strip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "source", type=Path, help="Markdown; between --- lines: title, kicker, preheader, footer, color, lang"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="the .html file; the text is written beside it"
    )
    options = parser.parse_args()
    text, settings = options.source.read_text("utf-8"), {}
    if found := re.match(r"---\n(.*?)\n---\n", text, re.DOTALL):
        settings, text = yaml.safe_load(found[1]) or {}, text[found.end() :]
    problems = [f"{key} is missing" for key in ("title", "preheader", "footer") if not settings.get(key)]
    color = "#" + str(settings.get("color", "1F4E79")).lstrip("#")
    soup = BeautifulSoup(markdown.markdown(text, extensions=["tables", "sane_lists"]), "html.parser")
    for element in soup.find_all(True):
        assert isinstance(element, Tag)
        if element.name in STYLES:
            element["style"] = STYLES[element.name].format(color=color)
        if element.name == "img" and not str(element.get("src", "")).startswith("https://"):
            problems.append(f"picture {element.get('src')}: mail needs an https address")
        if element.name == "img" and not element.get("alt"):
            problems.append(f"picture {element.get('src')}: there is no alternative text")
        if element.name == "a" and not re.match(r"https?://|mailto:", str(element.get("href", ""))):
            problems.append(f"link {element.get('href')!r} is not complete")
        if element.name == "a" and element.get_text().strip().lower() in (
            "here",
            "click here",
            "link",
            "more",
            "hier",
            "这里",
        ):
            problems.append(f"the link to {element.get('href')} should say where it leads")
    safe = {key: html.escape(str(settings.get(key, ""))) for key in ("title", "kicker", "preheader", "footer")}
    page = PAGE.format(font=FONT, color=color, lang=html.escape(str(settings.get("lang", "en"))), body=soup, **safe)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page, "utf-8")
    header = f"{settings.get('title', '')}\n{'=' * len(str(settings.get('title', '')))}\n\n"
    options.output.with_suffix(".txt").write_text(f"{header}{plain(text)}\n--\n{settings.get('footer', '')}\n", "utf-8")
    size, words = len(page.encode()) / 1024, len(plain(text).split())
    print(f"{options.output}: {size:.0f} kB, about {max(1, round(words / 220))} minutes to read")
    if size > 100:
        problems.append("it is larger than 100 kB; some mail programs cut it off")
    for problem in problems:
        print(f"- {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
