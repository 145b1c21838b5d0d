"""Speak a podcast script with an OpenAI-compatible speech endpoint, one request per line, and join the sound as WAV."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import wave
from pathlib import Path

import httpx


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("script", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True, help="a .wav file")
    parser.add_argument("--voices", default="", help="Ada=alloy,Ben=onyx; else the voices of SPEECH_VOICES in order")
    options = parser.parse_args()
    base, model = os.environ.get("SPEECH_API_BASE"), os.environ.get("SPEECH_MODEL", "tts-1")
    if not base:
        print(
            "No speech provider is configured, so no audio can be made here. The script and its transcript are complete without it.\nTo have audio, the operator sets SPEECH_API_BASE (an OpenAI-compatible address ending in /v1), SPEECH_API_KEY, SPEECH_MODEL and SPEECH_VOICES for the sandbox, and allows its host.",
            file=sys.stderr,
        )
        return 3
    script = json.loads(options.script.read_text("utf-8"))
    offered = os.environ.get("SPEECH_VOICES", "alloy,onyx,nova,echo").split(",")
    voices = {name: offered[index % len(offered)] for index, name in enumerate(script["speakers"])}
    voices |= dict(pair.split("=", 1) for pair in options.voices.split(",") if "=" in pair)
    headers = {"Authorization": f"Bearer {os.environ['SPEECH_API_KEY']}"} if os.environ.get("SPEECH_API_KEY") else {}
    frames, form = [], None
    with httpx.Client(headers=headers, timeout=180) as client:
        for number, line in enumerate(script["lines"], 1):
            body = {"model": model, "input": line["text"], "voice": voices[line["speaker"]], "response_format": "wav"}
            try:
                answer = client.post(f"{base.rstrip('/')}/audio/speech", json=body)
                answer.raise_for_status()
                with wave.open(io.BytesIO(answer.content)) as sound:
                    form = form or sound.getparams()
                    if sound.getparams()[:3] != form[:3]:
                        raise wave.Error("the voices have different sample rates")
                    pause = b"\0" * (form.nchannels * form.sampwidth * (form.framerate * 35 // 100))
                    frames += [sound.readframes(sound.getnframes()), pause]
            except (httpx.HTTPError, wave.Error, EOFError) as error:
                print(f"Line {number} could not be spoken: {error}", file=sys.stderr)
                return 2
    assert form is not None
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(options.output), "wb") as joined:
        joined.setparams(form)
        joined.writeframes(b"".join(frames))
    print(f"{options.output}: {sum(map(len, frames)) / (form.framerate * form.nchannels * form.sampwidth):.0f} seconds")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
