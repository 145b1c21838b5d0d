"""The tool image appears whole or not at all, and says what is missing."""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import socket
import ssl
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.support.certificates import issued
from tests.support.shared import shared_directory

from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.interface import Mount
from deerflow.sandbox.tool_image import MANIFEST, PACKAGED_REQUIREMENTS, ToolImage, ToolImageError

REPOSITORY = Path(__file__).parents[3]


def site_packages(image: ToolImage) -> Path:
    [packages] = image.path().glob("lib/python*/site-packages")
    return packages


def has_suitable_python() -> bool:
    return "python" not in ToolImage(Path("/nonexistent")).status().missing


needs_python = pytest.mark.skipif(not has_suitable_python(), reason="this machine has no system Python 3.11 or newer")


def make_wheel(directory: Path, name: str = "smallpkg", body: str = "ANSWER = 42\n") -> str:
    """A wheel of our own; returns its line for a requirements file."""
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/__init__.py", body)
        archive.writestr(f"{name}/tests/test_it.py", "assert True\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name} = {name}:main\n")
        archive.writestr(f"{info}/RECORD", "")
    return f"{name} @ {wheel.as_uri()} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    body = "import sys\nANSWER = 42\ndef main():\n    print('from the image', sys.prefix)\n"
    path = tmp_path / "requirements.txt"
    path.write_text(make_wheel(tmp_path / "wheels", body=body))
    return path


def nothing_half_made(root: Path) -> bool:
    return not root.exists() or all(path.name.endswith(".lock") for path in root.iterdir())


@needs_python
def test_one_that_came_with_the_program_is_used_and_nothing_is_written_there(
    tmp_path: Path, requirements: Path
) -> None:
    shipped = tmp_path / "shipped"
    built = ToolImage(shipped, requirements).build()
    image = ToolImage(tmp_path / "tools", requirements, shipped=shipped)
    assert image.status().ready and image.path() == image.build() == built and not (tmp_path / "tools").exists()
    requirements.write_text(make_wheel(tmp_path / "wheels", "another"))
    assert not image.status().ready and image.path().parent == tmp_path / "tools", "it has other packages"


@needs_python
def test_an_image_is_built_once_and_works_where_it_lies(tmp_path: Path, requirements: Path) -> None:
    image = ToolImage(tmp_path / "tools", requirements)
    before = image.status()
    assert not before.ready and before.missing == () and "not been built" in before.reason
    said: list[str] = []
    path = image.build(said.append)
    assert path == image.path() == before.path and image.status().ready
    assert any("smallpkg" in line for line in said)
    assert (site_packages(image) / "smallpkg/__init__.py").is_file()
    assert list((site_packages(image) / "smallpkg/__pycache__").glob("*.pyc")), "compiled beforehand"
    assert not (site_packages(image) / "smallpkg/tests").exists()
    run = subprocess.run(
        [str(image.path() / "bin" / "smallpkg")], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}
    )
    assert run.stdout == f"from the image {path}\n"
    decide = "import text_encodings; print(text_encodings.recognised(b'\\xff\\xfea\\0').name)"
    run = subprocess.run([str(path / "bin/python"), "-c", decide], capture_output=True, text=True)
    assert run.stdout == "UTF-16\n", run.stderr
    said.clear()
    assert image.build(said.append) == path and said == []


@needs_python
def test_an_image_is_built_where_no_cache_can_be_written(
    tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", "/dev/null/cache")
    assert ToolImage(tmp_path / "tools", requirements).build().is_dir()


@needs_python
def test_no_file_names_the_place_where_the_image_was_built(tmp_path: Path, requirements: Path) -> None:
    path = ToolImage(tmp_path / "tools", requirements).build()
    assert not [
        file
        for file in path.rglob("*")
        if file.is_file() and b".building-" in file.read_bytes() and file.suffix != ".pyc"
    ]


@needs_python
def test_every_user_can_read_the_image_whatever_the_umask(tmp_path: Path, requirements: Path) -> None:
    code = (
        "import os, sys; os.umask(0o077)\nfrom pathlib import Path\nfrom deerflow.sandbox.tool_image import ToolImage\n"
        "print(ToolImage(Path(sys.argv[1]), Path(sys.argv[2])).build())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "tools"), str(requirements)], capture_output=True, text=True
    )
    path = Path(run.stdout.strip())
    closed = [
        entry
        for entry in (path.parent, path, *path.rglob("*"))
        if not entry.is_symlink()
        and entry.stat().st_mode & 0o555 != (0o555 if entry.is_dir() else entry.stat().st_mode & 0o111 | 0o444)
    ]
    assert closed == [], run.stderr


@needs_python
def test_other_packages_make_another_image(tmp_path: Path, requirements: Path) -> None:
    first = ToolImage(tmp_path / "tools", requirements).build()
    requirements.write_text(requirements.read_text() + make_wheel(tmp_path / "wheels", "another"))
    second = ToolImage(tmp_path / "tools", requirements)
    assert second.path() != first and not second.status().ready
    second.build()
    assert first.is_dir() and (site_packages(second) / "another").is_dir()


@needs_python
def test_builders_wait_for_each_other(tmp_path: Path, requirements: Path) -> None:
    said: list[str] = []
    paths: list[Path] = []

    def build() -> None:
        paths.append(ToolImage(tmp_path / "tools", requirements).build(said.append))

    builders = [threading.Thread(target=build) for _ in range(4)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert len(paths) == 4 and len(set(paths)) == 1
    assert len([line for line in said if line.startswith("Building")]) == 1


@needs_python
def test_what_a_killed_builder_left_is_cleared_away(tmp_path: Path, requirements: Path) -> None:
    image = ToolImage(tmp_path / "tools", requirements)
    left = tmp_path / "tools" / f".{image.path().name}.building-dead"
    left.mkdir(parents=True)
    (left / "half").write_text("")
    image.path().mkdir()
    (image.path() / "without-manifest").write_text("")
    assert not image.status().ready
    image.build()
    assert image.status().ready and not left.exists() and not (image.path() / "without-manifest").exists()


@needs_python
def test_a_wrong_hash_is_refused(tmp_path: Path, requirements: Path) -> None:
    good = requirements.read_text()
    requirements.write_text(good[:-5] + ("0000\n" if good[-5:-1] != "0000" else "1111\n"))
    with pytest.raises(ToolImageError, match="hash differs"):
        ToolImage(tmp_path / "tools", requirements).build()
    assert nothing_half_made(tmp_path / "tools")


@needs_python
def test_a_package_without_a_hash_is_refused(tmp_path: Path, requirements: Path) -> None:
    requirements.write_text(requirements.read_text().partition(" --hash")[0] + "\n")
    with pytest.raises(ToolImageError, match="could not be built"):
        ToolImage(tmp_path / "tools", requirements).build()
    assert nothing_half_made(tmp_path / "tools")


@needs_python
def test_without_network_it_says_so(tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    requirements.write_text("somepackage==1.0 --hash=sha256:" + "0" * 64 + "\n")
    with pytest.raises(ToolImageError, match="could not be downloaded"):
        ToolImage(tmp_path / "tools", requirements).build()
    assert nothing_half_made(tmp_path / "tools")


@pytest.fixture
def company(tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An index whose certificate is of an authority of its own, in place of all others; the file of that authority."""
    certificate, authority = issued("localhost", tmp_path)
    found = re.search(r"(sha256):(\w+)", requirements.read_text())
    assert found
    requirements.write_text(f"smallpkg==1.0 --hash={found[0]}\n")
    (page := tmp_path / "wheels/simple/smallpkg/index.html").parent.mkdir(parents=True)
    page.write_text(f'<a href="/smallpkg-1.0-py3-none-any.whl#{found[1]}={found[2]}">smallpkg-1.0-py3-none-any.whl</a>')

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    with ThreadingHTTPServer(("localhost", 0), partial(Quiet, directory=str(tmp_path / "wheels"))) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, value in {
            "UV_DEFAULT_INDEX": f"https://localhost:{server.server_port}/simple",
            "UV_CACHE_DIR": str(tmp_path / "cache"),
            "UV_HTTP_RETRIES": "0",
            "NO_PROXY": "localhost",
        }.items():
            monkeypatch.setenv(name, value)
        for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "UV_SYSTEM_CERTS", "UV_INDEX", "UV_INDEX_URL", "UV_CONFIG_FILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("UV_NO_CONFIG", "1")
        yield authority
        server.shutdown()


@needs_python
def test_packages_come_from_an_index_with_a_certificate_of_the_company(
    tmp_path: Path, requirements: Path, company: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = ToolImage(tmp_path / "tools", requirements)
    with pytest.raises(ToolImageError, match=r"issuer that is not known here.*UV_SYSTEM_CERTS=1"):
        image.build()
    assert nothing_half_made(tmp_path / "tools")
    monkeypatch.setenv("SSL_CERT_FILE", str(company))
    image.build()
    assert (site_packages(image) / "smallpkg/__init__.py").is_file()


@needs_python
def test_packages_come_through_the_proxy_of_the_company(
    tmp_path: Path, requirements: Path, company: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            asked.append(self.path)
            host, port = self.path.split(":")
            with socket.create_connection((host, int(port))) as there:
                self.send_response(200)
                self.end_headers()
                ways = {self.connection: there, there: self.connection}
                while ready := select.select([*ways], [], [], 60)[0]:
                    for way in ready:
                        if not (piece := way.recv(65_536)):
                            return
                        ways[way].sendall(piece)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        monkeypatch.setenv("SSL_CERT_FILE", str(company))
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.server_port}")
        for name in ("NO_PROXY", "no_proxy", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
        image = ToolImage(tmp_path / "tools", requirements)
        image.build()
        proxy.shutdown()
    assert (site_packages(image) / "smallpkg/__init__.py").is_file()
    assert asked and set(asked) == {os.environ["UV_DEFAULT_INDEX"].split("/")[2]}


@needs_python
def test_a_full_or_forbidden_place_is_an_error_in_words(tmp_path: Path, requirements: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolImageError, match="could not be built in"):
        ToolImage(tmp_path / "file/tools", requirements).build()


def test_what_is_missing_is_named_all_at_once(tmp_path: Path) -> None:
    image = ToolImage(tmp_path / "tools", tmp_path / "no.txt", pythons=["/nonexistent/python3"], uv="/nonexistent/uv")
    status = image.status()
    assert status.missing == ("requirements", "python", "uv")
    for word in ("no.txt does not exist", "install python3", "pip install uv"):
        assert word in status.reason
    with pytest.raises(ToolImageError, match="pip install uv"):
        image.build()
    assert not (tmp_path / "tools").exists()


def test_an_old_python_is_passed_over(tmp_path: Path, requirements: Path) -> None:
    old = tmp_path / "python3.8"
    old.write_text("#!/bin/sh\nprintf 3.8\n")
    old.chmod(0o755)
    assert "python" in ToolImage(tmp_path / "tools", requirements, pythons=[str(old)]).status().missing
    both = ToolImage(tmp_path / "tools", requirements, pythons=[str(old), sys.executable])
    assert "python" not in both.status().missing
    assert both._find_python() == (sys.executable, f"{sys.version_info[0]}.{sys.version_info[1]}")


def test_a_home_gets_the_list_of_fonts_once_and_safely(tmp_path: Path, requirements: Path) -> None:
    image = ToolImage(tmp_path / "tools", requirements)
    cache = image.path() / "share/matplotlib-cache"
    cache.mkdir(parents=True)
    (cache / "fontlist-v1.json").write_text("{}")
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    image.seed_home(home)
    seeded = home / ".cache/matplotlib/fontlist-v1.json"
    assert seeded.read_text() == "{}"
    seeded.write_text("the agent's own")
    image.seed_home(home)
    assert seeded.read_text() == "the agent's own"
    trapped = tmp_path / "trapped"
    trapped.mkdir()
    (trapped / ".cache").symlink_to(outside)
    image.seed_home(trapped)
    assert list(outside.iterdir()) == []


def test_the_shipped_list_pins_every_package_and_names_no_index() -> None:
    text = PACKAGED_REQUIREMENTS.read_text()
    pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(pins) > 20 and all("==" in line and line.endswith("\\") for line in pins)
    assert text.count("--hash=sha256:") >= len(pins)
    assert "://" not in text and "index" not in text.replace("# via", "")
    wanted = (REPOSITORY / "requirements/tools.in").read_text().splitlines()
    names = {re.split(r"[=<>\[]", line)[0].strip().lower() for line in wanted if line and not line.startswith("#")}
    assert names <= {line.partition("==")[0] for line in pins}


IMPORTS = (
    "import bs4, cchardet, docx, duckdb, httpx, html_to_markdown, imageio, jinja2, lxml.etree, markdown, numpy, openpyxl, pandas, pi_heif, PIL.Image, pip, pptx, "
    "pdf2image, pdfminer.high_level, pdfplumber, pypdf, pypdfium2, reportlab.pdfgen.canvas, requests, scipy.stats, seaborn, tabulate, text_encodings, xlsxwriter, yaml"
)
CHART = """
import matplotlib.pyplot as plt, pandas as pd, duckdb
frame = pd.DataFrame({"x": [1, 2, 3]})
print(duckdb.sql("select sum(x) from frame").fetchone()[0])
frame.plot(); plt.savefig("chart.png")
frame.to_excel("table.xlsx"); print(pd.read_excel("table.xlsx")["x"].sum())
"""


@needs_python
@pytest.mark.nightly
def test_the_shipped_image_builds_and_does_an_analysts_work(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    image = ToolImage(shared_directory(tmp_path_factory) / "home" / "tools")
    try:
        path = image.build()
    except ToolImageError as error:
        if "could not be downloaded" in str(error):
            pytest.skip("no package index can be reached from here")
        raise
    home = tmp_path / "home"
    home.mkdir()
    image.seed_home(home)
    files = SandboxFiles([Mount(home, "/home/agent")])
    assert files.glob("/home/agent", "fontlist-*.json")[0], "matplotlib's fonts were collected"
    environment = {
        "PATH": f"{image.path()}/bin:/usr/bin:/bin",
        "HOME": str(home),
        "MPLBACKEND": "Agg",
        "LANG": "C.UTF-8",
    }

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "font cache" not in done.stderr
        return done.stdout

    run("python3", "-c", IMPORTS)
    assert run("python3", "-c", CHART).split() == ["6", "6"]
    assert (home / "chart.png").read_bytes().startswith(b"\x89PNG")
    assert run("rg", "--version").startswith("ripgrep ")
    assert run("pip", "--version").startswith("pip ")
    assert json.loads((path / MANIFEST).read_text())["python"] in run("python3", "--version")
    size = sum(entry.lstat().st_blocks for entry in path.rglob("*")) * 512
    assert size <= 490 << 20, f"{size >> 20} MiB"
    print(f"tool image: {size >> 20} MiB at {path.name}")
