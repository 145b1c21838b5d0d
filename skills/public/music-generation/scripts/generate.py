"""Make music with an audio endpoint that the operator has configured."""

from __future__ import annotations

import argparse
import base64
import os
import sys
from pathlib import Path

import httpx

MISSING = """No music provider is configured, so no music can be generated here.
The operator sets MUSIC_API_BASE (an address ending in /v1 whose MUSIC_API_PATH, /audio/generations if not given, takes model, prompt and
duration), MUSIC_API_KEY and MUSIC_MODEL for the sandbox, and allows its host in sandbox.network. Until then offer the brief and the lyrics."""
KINDS = {b"ID3": ".mp3", b"RIFF": ".wav", b"OggS": ".ogg", b"fLaC": ".flac", b"\xff\xfb": ".mp3", b"\xff\xf3": ".mp3"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompt-file", type=Path, required=True)
    parser.add_argument("--lyrics-file", type=Path, help="with [Verse], [Chorus] and so on")
    parser.add_argument("--output-file", type=Path, required=True, help="its ending is corrected to what comes back")
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    base, key, model = (os.environ.get(f"MUSIC_{name}") for name in ("API_BASE", "API_KEY", "MODEL"))
    if not base:
        print(MISSING, file=sys.stderr)
        return 3
    body = {"prompt": options.prompt_file.read_text("utf-8").strip(), "duration": options.seconds}
    body |= {"model": model} if model else {}
    body |= {"lyrics": options.lyrics_file.read_text("utf-8").strip()} if options.lyrics_file else {}
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        path = os.environ.get("MUSIC_API_PATH", "/audio/generations")
        answer = httpx.post(base.rstrip("/") + path, headers=headers, json=body, timeout=600)
        answer.raise_for_status()
        content = answer.content
        if "json" in answer.headers.get("content-type", ""):
            sound = answer.json()
            sound = (sound.get("data") or [sound])[0]
            encoded = sound.get("b64_json") or sound.get("audio")
            content = (
                base64.b64decode(encoded)
                if encoded
                else httpx.get(sound["url"], timeout=300).raise_for_status().content
            )
    except httpx.HTTPStatusError as error:
        print(f"The provider refused: {error.response.status_code} {error.response.text[:500]}", file=sys.stderr)
        return 2
    except (httpx.HTTPError, ValueError, KeyError, AttributeError) as error:
        print(f"No music came back: {error!r}", file=sys.stderr)
        return 2
    ending = next((ending for mark, ending in KINDS.items() if content.startswith(mark)), None)
    if ending is None:
        print("What came back is no sound that is known (MP3, WAV, OGG, FLAC).", file=sys.stderr)
        return 2
    file = options.output_file.with_suffix(ending)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    print(f"{file}: {len(content) / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
