"""Archives in a bucket of an S3-compatible storage, by the few requests that backups need.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html. Buckets stand in the path of the
address, as every such storage allows. Everything here blocks.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from deerflow.errors import UnavailableError
from deerflow_app.sigv4 import EMPTY, Signer, escaped, query_string

if TYPE_CHECKING:
    from deerflow.config import AppConfig

KEY_ID, SECRET = "DEER_FLOW_BACKUP_KEY_ID", "DEER_FLOW_BACKUP_SECRET_KEY"
SCHEME = "s3://"
PART_BYTES = 64 << 20
"""Parts are sent again one by one where the connection breaks. Storages take at least 5 MB each, and 10,000 of them."""
MOST_PARTS = 10_000
TRIAL = ".deerflow-doctor"
"""The name of an object that is deleted at once."""
_CHUNK = 1 << 20
_TIMEOUT = httpx.Timeout(60, connect=10, read=300)
_TRIES = 4
_STAMP = "%Y%m%dT%H%M%SZ"

_SENTENCES: Mapping[str, str] = {
    "NoSuchBucket": "There is no bucket {bucket!r} at {host}: create it, or correct backups.bucket.name.",
    "NoSuchKey": "There is no {key!r} in the bucket {bucket!r} at {host}.",
    "RequestTimeTooSkewed": "The clock of this machine differs too much from that of {host}: set it, e.g. by NTP.",
    "SignatureDoesNotMatch": "{host} refuses the signature: {secret} does not belong to {key_id}.",
    "InvalidAccessKeyId": "{host} does not know the key in {key_id}.",
    "AccessDenied": "{host} does not let the key in {key_id} do this: it may have to list the bucket {bucket!r}, and get, put "
    "and delete its objects.",
    "AuthorizationHeaderMalformed": "The bucket {bucket!r} is in another region: set backups.bucket.region{region}.",
    "PermanentRedirect": "The bucket {bucket!r} is in another region: set backups.bucket.region and address{region}.",
}
"""Sentences by the code of an error."""


class BucketError(UnavailableError):
    """The storage does not do what it should; ``str()`` says why and what to do, in one sentence."""

    code = "bucket_unavailable"


class _PassingError(BucketError):
    """Another attempt may succeed."""


class _Body(NamedTuple):
    """``read`` gives the content, at each attempt from its beginning."""

    read: Callable[[], Iterator[bytes]]
    size: int
    digest: str


class Bucket:
    """Args:
    address: of the storage, such as ``https://s3.eu-central-1.amazonaws.com``.
    name: of the bucket.
    prefix: how keys begin.
    part_bytes: size of a part; larger where a file would have too many.
    pause: seconds before the second attempt; four times as much before each further one.
    tries: attempts at a request.
    timeout: of a request.

    Every method raises BucketError.
    """

    def __init__(
        self,
        address: str,
        name: str,
        prefix: str,
        signer: Signer,
        *,
        part_bytes: int = PART_BYTES,
        pause: float = 1.0,
        tries: int = _TRIES,
        timeout: httpx.Timeout | float = _TIMEOUT,
    ) -> None:
        address = address.rstrip("/")
        self.name = name
        self.prefix = prefix
        self._signer = signer
        self._part_bytes = part_bytes
        self._host, self._path = urlsplit(address).netloc, urlsplit(address).path
        self._base = address.removesuffix(self._path)
        self._client = httpx.Client(timeout=timeout)
        self._retry = Retrying(
            stop=stop_after_attempt(tries),
            wait=wait_exponential(multiplier=pause, exp_base=4),
            retry=retry_if_exception_type(_PassingError),
            reraise=True,
        )

    @classmethod
    def of(cls, config: AppConfig, name: str | None = None, prefix: str | None = None, **options: Any) -> Bucket:
        """Return that of the configuration, or another one of the same storage. Raises BucketError: none is configured."""
        bucket, environ = config.backups.bucket, config.origin.environ
        if bucket is None:
            raise BucketError("No storage is configured: set backups.bucket.address and name in config.yaml.")
        if missing := [variable for variable in (KEY_ID, SECRET) if not environ.get(variable)]:
            raise BucketError(
                f"backups.bucket needs {' and '.join(missing)}: run `deerflow config secret {missing[0]}`."
            )
        signer = Signer(environ[KEY_ID], environ[SECRET], bucket.region)
        prefix = bucket.prefix if prefix is None else prefix
        return cls(bucket.address, name or bucket.name, prefix, signer, **options)

    def __str__(self) -> str:
        return f"{SCHEME}{self.name}/{self.prefix}"

    def names(self) -> list[str]:
        """Return the names directly below the prefix, without it, in order."""
        found: list[str] = []
        query = {"list-type": "2", "prefix": self.prefix, "delimiter": "/"}
        while True:
            page = self._asked_for("GET", "", query)
            found += [key.text or "" for key in page.iterfind("{*}Contents/{*}Key")]
            if page.findtext("{*}IsTruncated") != "true":
                return sorted(key.removeprefix(self.prefix) for key in found)
            query["continuation-token"] = page.findtext("{*}NextContinuationToken") or ""

    def put(self, file: Path, name: str) -> None:
        """Upload a file, in parts; it is there once all of it has arrived."""
        key = self.prefix + name
        begun = self._asked_for("POST", key, {"uploads": ""})
        upload = {"uploadId": begun.findtext("{*}UploadId") or ""}
        try:
            tags = [
                self._ask("PUT", key, {**upload, "partNumber": str(number)}, part).headers.get("etag", "")
                for number, part in enumerate(self._parts(file), 1)
            ]
            parts = (
                f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag></Part>"
                for number, tag in enumerate(tags, 1)
            )
            text = f"<CompleteMultipartUpload>{''.join(parts)}</CompleteMultipartUpload>".encode()
            body = _Body(lambda: iter([text]), len(text), hashlib.sha256(text).hexdigest())
            self._asked_for("POST", key, upload, body)
        except BaseException:
            with suppress(BucketError):  # the first error says more
                self._ask("DELETE", key, upload)
            raise

    def get(self, name: str, target: Path) -> None:
        """Download to a file, which only its owner may read."""
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            self._ask("GET", self.prefix + name, sink=file)

    def delete(self, name: str) -> None:
        self._ask("DELETE", self.prefix + name)

    def try_out(self) -> None:
        """Do all that backups need: list, put and delete, with an object of a few bytes."""
        self.names()
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"deerflow doctor\n")
            file.flush()
            self.put(Path(file.name), TRIAL)
        self.delete(TRIAL)

    def clear(self) -> None:
        """Delete the parts of uploads below the prefix that came to no end."""
        page = self._asked_for("GET", "", {"uploads": "", "prefix": self.prefix})
        for upload in page.iterfind("{*}Upload"):
            query = {"uploadId": upload.findtext("{*}UploadId") or ""}
            self._ask("DELETE", upload.findtext("{*}Key") or "", query)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _parts(self, file: Path) -> Iterator[_Body]:
        size = file.stat().st_size
        each = max(self._part_bytes, -(-size // MOST_PARTS))
        for start in range(0, max(size, 1), each):
            length, digest = min(each, size - start), hashlib.sha256()
            for chunk in _chunks(file, start, length):
                digest.update(chunk)
            yield _Body(partial(_chunks, file, start, length), length, digest.hexdigest())

    def _asked_for(
        self, method: str, key: str, query: Mapping[str, str], body: _Body | None = None
    ) -> ElementTree.Element:
        """Return the answer, which is XML."""
        answer = self._ask(method, key, query, body)
        try:
            found = ElementTree.fromstring(answer.content)
        except ElementTree.ParseError:
            raise BucketError(
                f"{self._host} does not answer as an S3-compatible storage: correct backups.bucket.address."
            ) from None
        if found.tag == "Error":  # with status 200: the answer began before it was known
            raise self._refused(answer, key)
        return found

    def _ask(
        self,
        method: str,
        key: str,
        query: Mapping[str, str] = {},
        body: _Body | None = None,
        *,
        sink: IO[bytes] | None = None,
    ) -> httpx.Response:
        """Send a request, up to four times, and read the answer, into ``sink`` if there is one."""
        return self._retry(self._asked, method, key, query, body, sink)

    def _asked(
        self, method: str, key: str, query: Mapping[str, str], body: _Body | None, sink: IO[bytes] | None
    ) -> httpx.Response:
        path = escaped(f"{self._path}/{self.name}{'/' * bool(key)}{key}")
        digest = body.digest if body else EMPTY
        now = time.strftime(_STAMP, time.gmtime())
        headers = {"host": self._host, "x-amz-content-sha256": digest, "x-amz-date": now}
        headers["authorization"] = self._signer.authorization(method, path, query, headers, digest)
        if body is not None:
            headers["content-length"] = str(body.size)
        url = f"{self._base}{path}{'?' * bool(query)}{query_string(query)}"
        try:
            content = body.read() if body else None
            with self._client.stream(method, url, headers=headers, content=content) as answer:
                if sink is not None and answer.is_success:
                    sink.seek(0)
                    sink.truncate()
                    for chunk in answer.iter_raw(_CHUNK):
                        sink.write(chunk)
                else:
                    answer.read()
        except httpx.HTTPError as error:
            raise self._unanswered(error) from error
        if not answer.is_success:
            raise self._refused(answer, key)
        return answer

    def _refused(self, answer: httpx.Response, key: str) -> BucketError:
        try:
            error = ElementTree.fromstring(answer.content)
        except ElementTree.ParseError:
            error = ElementTree.Element("Error")
        code, message = error.findtext("{*}Code") or "", error.findtext("{*}Message") or answer.reason_phrase
        if not code and answer.status_code == 403:
            code = "AccessDenied"
        region = error.findtext("{*}Region") or answer.headers.get("x-amz-bucket-region", "")
        text = _SENTENCES.get(code, "{host} answered {status} {code}: {message}.").format(
            bucket=self.name,
            host=self._host,
            key=key,
            key_id=KEY_ID,
            secret=SECRET,
            region=f" to {region}" * bool(region),
            status=answer.status_code,
            code=code,
            message=message.rstrip("."),
        )
        passes = answer.status_code >= 500 or answer.status_code == 429 or code == "RequestTimeout"
        return (_PassingError if passes else BucketError)(text)

    def _unanswered(self, error: httpx.HTTPError) -> BucketError:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            return BucketError(
                f"The certificate of {self._host} is not trusted ({cause.verify_message}): let SSL_CERT_FILE name the "
                "certificates of its authority."
            )
        what = "did not answer in time" if isinstance(error, httpx.TimeoutException) else "cannot be reached"
        reason = str(error) or type(error).__name__
        return _PassingError(f"{self._host} {what} ({reason}): check the network and backups.bucket.address.")


def _chunks(file: Path, start: int, length: int) -> Iterator[bytes]:
    with file.open("rb") as opened:
        opened.seek(start)
        while length > 0 and (chunk := opened.read(min(_CHUNK, length))):
            length -= len(chunk)
            yield chunk
