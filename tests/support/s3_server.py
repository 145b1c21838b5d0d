"""A storage that speaks S3 over real HTTP or HTTPS: it verifies each signature and digest by itself, and keeps objects on the disk."""

from __future__ import annotations

import hashlib
import hmac
import re
import shutil
import ssl
import time
from calendar import timegm
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote, unquote_to_bytes
from xml.sax.saxutils import escape

KEY_ID, SECRET, REGION, NAME = "AKIATEST", "a secret/of+the test", "eu-central-1", "backups"
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)


class Refused(Exception):
    """``args``: status, code, and further elements of the answer."""


@dataclass
class S3Server:
    """Contents of the storage, and its faults. ``fails``: so many further requests end with 503; ``cuts``: with nothing."""

    directory: Path
    url: str = ""
    objects: dict[str, Path] = field(default_factory=dict[str, Path])
    uploads: dict[str, tuple[str, dict[int, tuple[str, Path]]]] = field(
        default_factory=dict[str, tuple[str, dict[int, tuple[str, Path]]]]
    )
    requests: list[str] = field(default_factory=list[str])
    clock: float = 0
    """Seconds by which its clock is ahead."""
    page_size: int = 2
    least_part: int = 5 << 20
    fails: int = 0
    cuts: int = 0
    denies: frozenset[str] = frozenset()
    """Methods that the key may not use."""
    says: bytes = b""
    """The answer to everything, as of another server."""
    breaks_completion: bool = False
    """Answer the end of an upload with 200 and an error."""

    def new_file(self) -> Path:
        return self.directory / f"{len(list(self.directory.iterdir()))}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    storage: S3Server

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def _handle(self) -> None:
        path, _, query = self.path.partition("?")
        self.storage.requests.append(f"{self.command} {self.path}")
        body, digest = self._body()
        if self.storage.cuts:
            self.storage.cuts -= 1
            self.close_connection = True
            return
        if self.storage.says:
            return self._send(200, self.storage.says)
        try:
            if self.storage.fails:
                self.storage.fails -= 1
                raise Refused(503, "SlowDown")
            self._verify(path, query, digest)
            bucket, _, key = path.removeprefix("/").partition("/")
            if bucket != NAME:
                raise Refused(404, "NoSuchBucket")
            pairs = dict(pair.split("=", 1) for pair in query.split("&") if pair)
            known = {unquote_to_bytes(name).decode(): unquote_to_bytes(value).decode() for name, value in pairs.items()}
            self._answer(unquote_to_bytes(key).decode(), known, body)
        except Refused as refused:
            status, code, *more = refused.args
            text = f"<Error><Code>{code}</Code><Message>It is so.</Message>{''.join(more)}</Error>"
            self._send(status, text.encode())

    do_GET = do_PUT = do_POST = do_DELETE = _handle

    def _body(self) -> tuple[Path, str]:
        left, digest, file = int(self.headers.get("content-length", 0)), hashlib.sha256(), self.storage.new_file()
        with file.open("wb") as target:
            while left and (chunk := self.rfile.read(min(left, 65536))):
                left -= len(chunk)
                digest.update(chunk)
                target.write(chunk)
        return file, digest.hexdigest()

    def _verify(self, path: str, query: str, digest: str) -> None:
        found = _AUTHORIZATION.fullmatch(self.headers["authorization"] or "")
        if found is None:
            raise Refused(403, "AccessDenied")
        key_id, day, region, names, signature = found.groups()
        date = self.headers["x-amz-date"]
        if key_id != KEY_ID:
            raise Refused(403, "InvalidAccessKeyId")
        if region != REGION:
            raise Refused(400, "AuthorizationHeaderMalformed", f"<Region>{REGION}</Region>")
        if abs(timegm(time.strptime(date, "%Y%m%dT%H%M%SZ")) - time.time() - self.storage.clock) > 900:
            raise Refused(403, "RequestTimeTooSkewed")
        assert {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names.split(";")) and day == date[:8]
        if self.headers["x-amz-content-sha256"] != digest:
            raise Refused(400, "XAmzContentSHA256Mismatch")
        # Escaped by us: a character that was sent as it is would be signed by the client as it is, and refused.
        canonical_path = quote(unquote_to_bytes(path), safe="/-_.~")
        pairs = [pair.partition("=")[::2] for pair in query.split("&") if pair]
        escaped = sorted(
            (quote(unquote_to_bytes(name), safe="-_.~"), quote(unquote_to_bytes(value), safe="-_.~"))
            for name, value in pairs
        )
        request = [self.command, canonical_path, "&".join(f"{name}={value}" for name, value in escaped)]
        request += [f"{name}:{self.headers[name].strip()}" for name in names.split(";")]
        request += ["", names, digest]
        hashed = hashlib.sha256("\n".join(request).encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{date}\n{day}/{region}/s3/aws4_request\n{hashed}"
        key = b"AWS4" + SECRET.encode()
        for part in (day, region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        if not hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), signature):
            raise Refused(403, "SignatureDoesNotMatch")
        if self.command in self.storage.denies:
            raise Refused(403, "AccessDenied")

    def _answer(self, key: str, query: dict[str, str], body: Path) -> None:
        storage = self.storage
        if not key:
            return self._list(query)
        if self.command == "POST" and "uploads" in query:
            upload_id = f"up/load+{len(storage.requests)}=="
            storage.uploads[upload_id] = key, {}
            return self._xml("InitiateMultipartUploadResult", f"<UploadId>{upload_id}</UploadId>")
        if "uploadId" in query:
            if storage.uploads.get(query["uploadId"], ("",))[0] != key:
                raise Refused(404, "NoSuchUpload")
            return self._upload(key, query, body)
        if self.command == "DELETE":
            storage.objects.pop(key, None)
            return self._send(204, b"")
        if key not in storage.objects:
            raise Refused(404, "NoSuchKey")
        with storage.objects[key].open("rb") as file:
            self._send(200, b"", **{"content-length": str(storage.objects[key].stat().st_size)})
            shutil.copyfileobj(file, self.wfile)

    def _upload(self, key: str, query: dict[str, str], body: Path) -> None:
        storage, parts = self.storage, self.storage.uploads[query["uploadId"]][1]
        if self.command == "PUT":
            with body.open("rb") as file:
                tag = f'"{hashlib.file_digest(file, "md5").hexdigest()}"'
            parts[int(query["partNumber"])] = tag, body
            return self._send(200, b"", etag=tag)
        if self.command == "DELETE":
            del storage.uploads[query["uploadId"]]
            return self._send(204, b"")
        if storage.breaks_completion:
            return self._send(200, b'<?xml version="1.0"?>  <Error><Code>InternalError</Code></Error>')
        named = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>(.*?)</ETag>", body.read_text())
        if [(int(number), tag.replace("&quot;", '"')) for number, tag in named] != [
            (number, parts[number][0]) for number in sorted(parts)
        ]:
            raise Refused(400, "InvalidPart")
        files = [parts[number][1] for number in sorted(parts)]
        if any(file.stat().st_size < storage.least_part for file in files[:-1]):
            raise Refused(400, "EntityTooSmall")
        whole = storage.new_file()
        with whole.open("wb") as target:
            for file in files:
                with file.open("rb") as part:
                    shutil.copyfileobj(part, target)
        storage.objects[key] = whole
        del storage.uploads[query["uploadId"]]
        self._xml("CompleteMultipartUploadResult", f"<Key>{escape(key)}</Key>")

    def _list(self, query: dict[str, str]) -> None:
        prefix = query.get("prefix", "")
        if "uploads" in query:
            found = [(upload_id, key) for upload_id, (key, _) in self.storage.uploads.items() if key.startswith(prefix)]
            entries = (f"<Upload><Key>{escape(key)}</Key><UploadId>{name}</UploadId></Upload>" for name, key in found)
            return self._xml("ListMultipartUploadsResult", "".join(entries))
        assert query["list-type"] == "2"
        keys = sorted(key for key in self.storage.objects if key.startswith(prefix) and "/" not in key[len(prefix) :])
        keys = [key for key in keys if key > query.get("continuation-token", "")]
        page = keys[: self.storage.page_size]
        entries = "".join(f"<Contents><Key>{escape(key)}</Key></Contents>" for key in page)
        more = len(page) < len(keys)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        self._xml("ListBucketResult", f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{entries}")

    def _xml(self, name: str, inner: str) -> None:
        namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
        self._send(200, f'<?xml version="1.0"?><{name} xmlns="{namespace}">{inner}</{name}>'.encode())

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def s3_server(directory: Path, certificate: Path | None = None) -> Iterator[S3Server]:
    """A storage with one empty bucket, at ``localhost``. With a certificate it speaks TLS."""
    directory.mkdir(exist_ok=True)
    storage = S3Server(directory)
    handler = type("Handler", (_Handler,), {"storage": storage})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        storage.url = f"http{'s' * bool(certificate)}://localhost:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield storage
        finally:
            server.shutdown()
            thread.join()
