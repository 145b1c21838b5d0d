"""Make or change pictures with an OpenAI-compatible image endpoint that the operator has configured."""

from __future__ import annotations

import argparse
import base64
import io
import os
import sys
from pathlib import Path

import httpx
from PIL import Image

SIZES = {"1:1": "1024x1024", "3:2": "1536x1024", "16:9": "1536x1024", "2:3": "1024x1536", "9:16": "1024x1536"}
MISSING = """No image provider is configured, so no picture can be generated here.
The operator sets IMAGE_API_BASE (an OpenAI-compatible address ending in /v1), IMAGE_API_KEY and IMAGE_MODEL for the sandbox, and allows
its host in sandbox.network. Until then offer the prompt itself, a drawing in SVG, or a chart."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompt-file", type=Path, required=True, help="the prompt as text")
    parser.add_argument("--reference-images", type=Path, nargs="*", default=[], help="pictures to change or to follow")
    parser.add_argument("--output-file", type=Path, required=True, help=".png, .jpg or .webp")
    parser.add_argument("--aspect-ratio", choices=list(SIZES), default="16:9")
    parser.add_argument("--crop", action="store_true", help="cut the picture to exactly this ratio")
    options = parser.parse_args()
    base, key, model = (os.environ.get(f"IMAGE_{name}") for name in ("API_BASE", "API_KEY", "MODEL"))
    if not base:
        print(MISSING, file=sys.stderr)
        return 3
    prompt = options.prompt_file.read_text("utf-8").strip()
    for path in options.reference_images:
        if not path.is_file():
            print(f"{path} does not exist", file=sys.stderr)
            return 2
    fields = {"model": model or "gpt-image-1", "prompt": prompt, "size": SIZES[options.aspect_ratio], "n": 1}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with httpx.Client(base_url=base.rstrip("/"), headers=headers, timeout=300) as client:
            if options.reference_images:
                files = [("image[]", (path.name, path.read_bytes())) for path in options.reference_images]
                answer = client.post(
                    "/images/edits", data={name: str(value) for name, value in fields.items()}, files=files
                )
            else:
                answer = client.post("/images/generations", json=fields)
            answer.raise_for_status()
            picture = answer.json()["data"][0]
            content = (
                base64.b64decode(picture["b64_json"])
                if picture.get("b64_json")
                else httpx.get(picture["url"], timeout=120).raise_for_status().content
            )
        image = Image.open(io.BytesIO(content))
        image.load()
    except httpx.HTTPStatusError as error:
        print(f"The provider refused: {error.response.status_code} {error.response.text[:500]}", file=sys.stderr)
        return 2
    except (httpx.HTTPError, ValueError, KeyError, IndexError, OSError) as error:
        print(f"No picture came back: {error!r}", file=sys.stderr)
        return 2
    if options.crop:
        wide, high = map(int, options.aspect_ratio.split(":"))
        width, height = min(image.width, image.height * wide // high), min(image.height, image.width * high // wide)
        left, top = (image.width - width) // 2, (image.height - height) // 2
        image = image.crop((left, top, left + width, top + height))
    options.output_file.parent.mkdir(parents=True, exist_ok=True)
    image = image.convert("RGB") if options.output_file.suffix.lower() in (".jpg", ".jpeg") else image
    image.save(options.output_file)
    print(f"{options.output_file}: {image.width} x {image.height}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
