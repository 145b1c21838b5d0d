"""Check a podcast script: length when spoken, balance of the speakers, long turns, what cannot be spoken."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

SPEED = {"words": 150, "signs": 240}
"""Per minute: words of languages with spaces, signs of Chinese, Japanese and Korean."""
EAST = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")


def seconds(text: str) -> float:
    signs = len(EAST.findall(text))
    words = len(re.findall(r"[\w'’-]+", EAST.sub(" ", text)))
    return 60 * (words / SPEED["words"] + signs / SPEED["signs"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "script", type=Path, help='JSON: {"title", "speakers": {name: description}, "lines": [{"speaker", "text"}]}'
    )
    parser.add_argument("--minutes", type=float, help="the length that is wanted")
    parser.add_argument("--transcript", type=Path, help="write it as Markdown")
    options = parser.parse_args()
    try:
        script = json.loads(options.script.read_text("utf-8"))
        speakers, lines = script["speakers"], script["lines"]
    except (OSError, ValueError, KeyError) as error:
        print(f"The script cannot be read: {error!r}", file=sys.stderr)
        return 2
    problems, time = [], Counter()
    for number, line in enumerate(lines, 1):
        text = re.sub(r"\[(?:laughs|pause|music|sigh)[^\]]*\]", "", line.get("text", ""))
        who = line.get("speaker")
        if who not in speakers:
            problems.append(f"Line {number}: {who!r} is not one of the speakers.")
        if not text.strip():
            problems.append(f"Line {number} is empty.")
        time[who] += seconds(text)
        if seconds(text) > 50:
            problems.append(f"Line {number} ({who}) lasts {seconds(text):.0f} seconds; let the other one ask or react.")
        if found := re.search(r"https?://\S+|[*_#`|]{1,3}\w|\bFigure \d|\(see|\d{5,}|[→≈±]", text):
            problems.append(f"Line {number}: {found[0][:40]!r} cannot be spoken; write what one says.")
        if number > 2 and all(other.get("speaker") == who for other in lines[number - 3 : number]):
            problems.append(f"Line {number}: {who} speaks three times in a row.")
    total = sum(time.values())
    starts = Counter(" ".join(line.get("text", "").lower().split()[:1]).strip(",.!") for line in lines)
    for word, count in starts.items():
        if count > max(3, len(lines) / 5) and len(lines) > 8:
            problems.append(f"{count} lines begin with {word!r}.")
    if options.minutes and abs(total / 60 - options.minutes) > 0.15 * options.minutes:
        problems.append(f"It lasts {total / 60:.1f} minutes; {options.minutes:g} are wanted.")
    print(
        f"{total / 60:.1f} minutes, {len(lines)} lines; "
        + ", ".join(f"{who} {100 * spent / max(total, 1):.0f}%" for who, spent in time.items())
    )
    if len(speakers) > 1 and total and max(time.values()) > 0.75 * total:
        problems.append("One speaker has more than three quarters of the time.")
    if options.transcript:
        body = "\n\n".join(f"**{line['speaker']}:** {line['text']}" for line in lines)
        options.transcript.parent.mkdir(parents=True, exist_ok=True)
        options.transcript.write_text(f"# {script.get('title', 'Podcast')}\n\n{body}\n", "utf-8")
        print(options.transcript)
    for problem in problems:
        print(f"- {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
