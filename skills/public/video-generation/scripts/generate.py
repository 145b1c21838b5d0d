"""Make a video with an OpenAI-compatible video endpoint that the operator has configured: start, wait, fetch."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import httpx

SIZES = {"16:9": "1280x720", "9:16": "720x1280"}
MISSING = """No video provider is configured, so no video can be generated here.
The operator sets VIDEO_API_BASE (an OpenAI-compatible address ending in /v1), VIDEO_API_KEY and VIDEO_MODEL for the sandbox, and allows
its host in sandbox.network. Until then offer the prompt and a storyboard."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompt-file", type=Path, required=True)
    parser.add_argument("--reference-image", type=Path, help="the first picture of the video")
    parser.add_argument("--output-file", type=Path, required=True, help="an .mp4 file")
    parser.add_argument("--aspect-ratio", choices=list(SIZES), default="16:9")
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--resume", metavar="ID", help="wait for a video that was started before")
    parser.add_argument("--wait", type=float, default=900, help="seconds to wait at most (%(default)s)")
    parser.add_argument("--poll", type=float, default=10, help=argparse.SUPPRESS)
    options = parser.parse_args()
    base, key, model = (os.environ.get(f"VIDEO_{name}") for name in ("API_BASE", "API_KEY", "MODEL"))
    if not base:
        print(MISSING, file=sys.stderr)
        return 3
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with httpx.Client(base_url=base.rstrip("/"), headers=headers, timeout=120, follow_redirects=True) as client:
            number = options.resume
            if number is None:
                fields = {
                    "model": model or "sora-2",
                    "prompt": options.prompt_file.read_text("utf-8").strip(),
                    "size": SIZES[options.aspect_ratio],
                    "seconds": str(options.seconds),
                }
                files = (
                    {"input_reference": (options.reference_image.name, options.reference_image.read_bytes())}
                    if options.reference_image
                    else None
                )
                answer = (
                    client.post("/videos", data=fields, files=files) if files else client.post("/videos", json=fields)
                )
                number = answer.raise_for_status().json()["id"]
                print(f"Started {number}", flush=True)
            end = time.monotonic() + options.wait
            while (state := client.get(f"/videos/{number}").raise_for_status().json())["status"] not in (
                "completed",
                "failed",
            ):
                if time.monotonic() > end:
                    print(
                        f"It is not finished yet ({state['status']}, {state.get('progress', '?')}%). Go on with --resume {number}.",
                        file=sys.stderr,
                    )
                    return 4
                time.sleep(options.poll)
            if state["status"] == "failed":
                print(
                    f"The provider failed: {(state.get('error') or {}).get('message', 'no reason given')}",
                    file=sys.stderr,
                )
                return 2
            content = client.get(f"/videos/{number}/content").raise_for_status().content
    except httpx.HTTPStatusError as error:
        print(f"The provider refused: {error.response.status_code} {error.response.text[:500]}", file=sys.stderr)
        return 2
    except (httpx.HTTPError, ValueError, KeyError, OSError) as error:
        print(f"No video came back: {error!r}", file=sys.stderr)
        return 2
    if content[4:8] != b"ftyp":
        print("What came back is no MP4 video.", file=sys.stderr)
        return 2
    options.output_file.parent.mkdir(parents=True, exist_ok=True)
    options.output_file.write_bytes(content)
    print(f"{options.output_file}: {len(content) / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
