"""Skills that ask servers: their requests and what they make of the answers, with a server on the sandbox's own loopback."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.skills.conftest import SkillRunner

SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

answers = json.loads(Path("/mnt/user-data/uploads/answers.json").read_text())

class Handler(BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        with open("/mnt/user-data/outputs/requests.jsonl", "a") as log:
            log.write(json.dumps({"method": self.command, "path": path, "query": query, "headers": dict(self.headers), "body": body.decode("latin-1")}) + "\\n")
        status, kind, content = answers.get(f"{self.command} {path}", [404, "application/json", "{}"])
        content = bytes.fromhex(content) if kind.startswith(("audio", "image", "video")) else content.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer
    def log_message(self, *a): ...

server = ThreadingHTTPServer(("127.0.0.1", 8123), Handler)
import os, threading
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(os.waitstatus_to_exitcode(os.system(sys.argv[1])))
"""
HERE = "http://127.0.0.1:8123"


def asked(
    skill: SkillRunner, command: str, answers: dict[str, Any], files: dict[str, bytes | str] | None = None
) -> tuple[Any, list[dict[str, Any]]]:
    """The result of a command while a server gives these answers, and the requests that it got."""
    bodies = {
        name: [200, "application/json", json.dumps(answer)] if not isinstance(answer, list) else answer
        for name, answer in answers.items()
    }
    given = {"answers.json": json.dumps(bodies), "server.py": SERVER, "run.sh": f"set -e\n{command}\n", **(files or {})}
    result = skill("python3 /mnt/user-data/uploads/server.py 'bash /mnt/user-data/uploads/run.sh'", files=given)
    log = result.directory / "outputs/requests.jsonl"
    return result, [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


ATOM = """<?xml version="1.0"?><!DOCTYPE feed [<!ENTITY x SYSTEM "file:///etc/passwd">]><feed xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom"><entry>
<id>http://arxiv.org/abs/2401.00001v2</id><title>Graph
  Networks</title><summary> We &x; predict. </summary><published>2024-01-02T00:00:00Z</published><updated>2024-02-02T00:00:00Z</updated>
<author><name>Ada Lovelace</name></author><category term="cs.LG"/><arxiv:doi>10.1/x</arxiv:doi></entry></feed>"""


def test_arxiv_is_asked_in_its_language_and_its_answer_read(skill: SkillRunner):
    script = "python3 /mnt/skills/public/systematic-literature-review/scripts/arxiv_search.py"
    command = f"{script} 'graph molecules' --category cs.LG --start-date 2022-01-01 --max-results 5 --endpoint {HERE}/api/query"
    result, [request] = asked(skill, command, {"GET /api/query": [200, "application/atom+xml", ATOM]})
    [paper] = json.loads(result.output)
    assert paper["id"] == "2401.00001" and paper["title"] == "Graph Networks" and paper["doi"] == "10.1/x"
    assert paper["abstract"].startswith("We") and "root" not in paper["abstract"]
    assert "all%3Agraph+AND+all%3Amolecules+AND+cat%3Acs.LG" in request["query"] and "202201010000" in request["query"]


def test_references_of_a_review_are_complete(skill: SkillRunner):
    example = skill.example("systematic-literature-review")
    assert (
        "Lovelace, A., & Hopper, G. B. (2024). Graph Networks for Molecules. *Journal of Examples*. https://doi.org/10.1000/example.1"
        in example.file("references.md").read_text()
    )
    assert "@article{lovelace2024graph," in example.file("references.bib").read_text()
    flow = example.file("flow.md").read_text()
    for row in (
        "| Doubles removed | 1 |",
        "| - E3: no evaluation | 1 |",
        "| **Included** | 1 |",
        "| Not yet decided | 0 |",
    ):
        assert row in flow


def test_a_repository_is_summed_up(skill: SkillRunner):
    person = {"login": "ada", "contributions": 90}
    commit = {
        "sha": "a" * 40,
        "commit": {"author": {"date": "2026-01-02T00:00:00Z", "name": "Ada"}, "message": "Fix\n\nmore"},
    }
    answers = {
        "GET /repos/o/n": {
            "full_name": "o/n",
            "license": {"spdx_id": "MIT"},
            "stargazers_count": 7,
            "default_branch": "main",
        },
        "GET /repos/o/n/languages": {"Python": 300, "C": 100},
        "GET /repos/o/n/contributors": [
            200,
            "application/json",
            json.dumps([person, {"login": "bo", "contributions": 10}]),
        ],
        "GET /repos/o/n/commits": [200, "application/json", json.dumps([commit])],
        "GET /repos/o/n/releases": [200, "application/json", "[]"],
    }
    script = f"GITHUB_TOKEN=t python3 /mnt/skills/public/github-deep-research/scripts/github.py https://github.com/o/n --api {HERE}"
    result, requests = asked(skill, script, answers)
    found = json.loads(result.output)
    assert (found["license"], found["languages"]["Python"], found["share_of_first_three"]) == ("MIT", "75.0%", "100%")
    assert found["last_commits"][0]["message"] == "Fix" and requests[0]["headers"]["Authorization"] == "Bearer t"
    result, _ = asked(skill, f"{script} readme", {})
    assert "There is no o/n/readme, or it is private." in result.output


def test_without_network_a_skill_says_so(skill: SkillRunner):
    for command in (
        "github-deep-research/scripts/github.py o/n",
        "systematic-literature-review/scripts/arxiv_search.py x",
    ):
        result = skill(f"python3 /mnt/skills/public/{command}")
        assert result.exit_code == 2 and "needs the network" in result.output and "Traceback" not in result.output


def test_a_script_for_listening_is_measured_and_spoken(skill: SkillRunner):
    assert "**Mara:** There is a bridge" in skill.example("podcast-script").file("transcript.md").read_text()
    folder = "/mnt/skills/public/podcast-script"
    without = skill(f"python3 {folder}/scripts/speak.py {folder}/assets/example.json -o /mnt/user-data/outputs/a.wav")
    assert without.exit_code == 3 and "No speech provider is configured" in without.output
    sound = "524946462c00000057415645666d74201000000001000100401f0000803e0000020010006461746108000000" + "00" * 8
    command = f"SPEECH_API_BASE={HERE}/v1 SPEECH_API_KEY=k python3 {folder}/scripts/speak.py {folder}/assets/example.json -o /mnt/user-data/outputs/a.wav --voices Mara=nova"
    result, requests = asked(skill, command, {"POST /v1/audio/speech": [200, "audio/wav", sound]})
    assert result.exit_code == 0, result.output
    assert [json.loads(request["body"])["voice"] for request in requests[:2]] == ["nova", "onyx"]
    assert requests[0]["headers"]["Authorization"] == "Bearer k" and len(requests) == 8
    code = "import wave\nanswer = wave.open('a.wav').getparams()[:4]"
    assert skill.look(result, code) == [1, 2, 8000, 8 * (4 + 2800)]


def test_what_cannot_be_spoken_is_found(skill: SkillRunner):
    script = {
        "speakers": {"A": "", "B": ""},
        "lines": [{"speaker": "A", "text": "See https://x.org " + "word " * 150}, {"speaker": "C", "text": "Hm."}],
    }
    result = skill(
        "python3 /mnt/skills/public/podcast-script/scripts/check_script.py ../uploads/s.json",
        files={"s.json": json.dumps(script)},
    )
    for part in ("'C' is not one of the speakers", "lasts 62 seconds", "cannot be spoken", "more than three quarters"):
        assert part in result.output, result.output


def test_a_page_is_published_only_after_a_yes(skill: SkillRunner):
    script = "python3 /mnt/skills/public/vercel-deploy/scripts/deploy.py /mnt/user-data/uploads/site"
    files: dict[str, bytes | str] = {"site/index.html": "<h1>Hi</h1>", "site/.env": "KEY=1", "site/.git/config": "x"}
    answers = {
        "POST /v2/files": {},
        "POST /v13/deployments": {"id": "d", "url": "hi.vercel.app", "readyState": "BUILDING"},
        "GET /v13/deployments/d": {"id": "d", "url": "hi.vercel.app", "readyState": "READY"},
    }
    result, requests = asked(skill, f"VERCEL_TOKEN=t {script} --api {HERE}", answers, files)
    assert result.exit_code == 0 and "Nothing was sent" in result.output and requests == [], result.output
    result, requests = asked(skill, f"VERCEL_TOKEN=t {script} --name 'My Page' --yes --api {HERE}", answers, files)
    assert result.output.strip().endswith("https://hi.vercel.app")
    assert [request["path"] for request in requests] == ["/v2/files", "/v13/deployments", "/v13/deployments/d"]
    body = json.loads(requests[1]["body"])
    assert (
        body["name"] == "my-page"
        and [file["file"] for file in body["files"]] == ["index.html"]
        and "target" not in body
    )
    assert (
        requests[0]["headers"]["X-Vercel-Digest" if "X-Vercel-Digest" in requests[0]["headers"] else "x-vercel-digest"]
        == body["files"][0]["sha"]
    )
    assert skill(f"{script} --yes", files=files).exit_code == 3


def test_what_must_not_be_public_is_not_published(skill: SkillRunner):
    script = "VERCEL_TOKEN=t python3 /mnt/skills/public/vercel-deploy/scripts/deploy.py ../uploads/site --yes"
    result = skill(script, files={"site/index.html": "sk-" + "a" * 30})
    assert result.exit_code == 1 and "index.html seems to hold a key" in result.output
    assert "neither index.html nor package.json" in skill(script, files={"site/a.txt": "x"}).output


PNG = "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
KINDS = ("image", "video", "music")


def test_without_a_provider_generation_says_so_plainly(skill: SkillRunner):
    for kind in KINDS:
        result = skill(
            f"echo x > p.txt; python3 /mnt/skills/public/{kind}-generation/scripts/generate.py --prompt-file p.txt --output-file /mnt/user-data/outputs/o"
        )
        assert (
            result.exit_code == 3
            and f"No {kind} provider is configured" in result.output
            and f"{kind.upper()}_API_BASE" in result.output
        )
        assert list((result.directory / "outputs").iterdir()) == []


def test_a_picture_is_made_and_changed(skill: SkillRunner):
    answer = {"data": [{"b64_json": base64.b64encode(bytes.fromhex(PNG)).decode()}]}
    script = f"IMAGE_API_BASE={HERE}/v1 IMAGE_API_KEY=k IMAGE_MODEL=m python3 /mnt/skills/public/image-generation/scripts/generate.py --prompt-file p.txt"
    command = f"echo 'a cat' > p.txt; {script} --output-file /mnt/user-data/outputs/a.png --aspect-ratio 1:1; {script} --output-file /mnt/user-data/outputs/b.jpg --reference-images /mnt/user-data/outputs/a.png"
    result, requests = asked(skill, command, {"POST /v1/images/generations": answer, "POST /v1/images/edits": answer})
    assert result.exit_code == 0, result.output
    assert json.loads(requests[0]["body"]) == {"model": "m", "prompt": "a cat", "size": "1024x1024", "n": 1}
    assert (
        'name="image[]"; filename="a.png"' in requests[1]["body"]
        and requests[1]["headers"]["Authorization"] == "Bearer k"
    )
    assert result.file("b.jpg").read_bytes()[:2] == b"\xff\xd8"
    refused, _ = asked(
        skill,
        f"echo x > p.txt; {script} --output-file o.png",
        {"POST /v1/images/generations": [400, "application/json", '{"error": "no"}']},
    )
    assert refused.exit_code == 2 and 'The provider refused: 400 {"error": "no"}' in refused.output


def test_a_video_is_awaited_and_music_gets_its_right_ending(skill: SkillRunner):
    mp4 = "00000018667479706d703432" + "00" * 12
    answers = {
        "POST /v1/videos": {"id": "v1", "status": "queued"},
        "GET /v1/videos/v1": {"id": "v1", "status": "completed"},
        "GET /v1/videos/v1/content": [200, "video/mp4", mp4],
        "POST /v1/audio/generations": [200, "audio/mpeg", "494433" + "00" * 20],
    }
    command = f"""echo rain > p.txt
VIDEO_API_BASE={HERE}/v1 python3 /mnt/skills/public/video-generation/scripts/generate.py --prompt-file p.txt --output-file /mnt/user-data/outputs/v.mp4 --poll 0
MUSIC_API_BASE={HERE}/v1 python3 /mnt/skills/public/music-generation/scripts/generate.py --prompt-file p.txt --output-file /mnt/user-data/outputs/m.wav --seconds 5"""
    result, requests = asked(skill, command, answers)
    assert result.exit_code == 0, result.output
    assert result.file("v.mp4").read_bytes()[4:8] == b"ftyp" and result.file("m.mp3").read_bytes()[:3] == b"ID3"
    assert json.loads(requests[-1]["body"]) == {"prompt": "rain", "duration": 5}
