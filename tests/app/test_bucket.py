"""Archives in a bucket: whole, in parts, signed; and one sentence for whatever goes wrong."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.certificates import issued
from tests.support.s3_server import KEY_ID, NAME, REGION, SECRET, S3Server, s3_server

from deerflow_app.bucket import Bucket, BucketError
from deerflow_app.sigv4 import Signer

SIGNER = Signer(KEY_ID, SECRET, REGION)
ODD = "of us/ü + (1)/"


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[S3Server]:
    with s3_server(tmp_path / "storage") as server:
        yield server


def _bucket(
    url: str, prefix: str = ODD, *, name: str = NAME, signer: Signer = SIGNER, part_bytes: int = 5 << 20
) -> Bucket:
    return Bucket(url, name, prefix, signer, part_bytes=part_bytes, pause=0)


@pytest.mark.parametrize("size", [0, 5 << 20, (11 << 20) + 1])
def test_a_file_goes_there_in_parts_and_comes_back(tmp_path: Path, storage: S3Server, size: int) -> None:
    file, back, bucket = tmp_path / "file", tmp_path / "back", _bucket(storage.url)
    file.write_bytes(os.urandom(size))
    bucket.put(file, "a b.tar.zst")
    assert not storage.uploads
    bucket.get("a b.tar.zst", back)
    assert back.read_bytes() == file.read_bytes() and back.stat().st_mode & 0o077 == 0
    assert sum(request.startswith("PUT") for request in storage.requests) == max(1, -(-size // (5 << 20)))


def test_a_list_has_all_pages_of_what_lies_below_the_prefix_alone(tmp_path: Path, storage: S3Server) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    bucket = _bucket(storage.url)
    assert bucket.names() == []
    for name in ("5", "3", "1", "4", "2", "sub/6"):
        bucket.put(file, name)
    _bucket(storage.url, "others/").put(file, "7")
    bucket.delete("4")
    bucket.delete("never there")
    assert bucket.names() == ["1", "2", "3", "5"] and _bucket(storage.url, "").names() == []


def test_a_large_file_is_never_in_memory(tmp_path: Path, storage: S3Server) -> None:
    file, bucket = tmp_path / "file", _bucket(storage.url, part_bytes=16 << 20)
    with file.open("wb") as target:
        target.truncate(40 << 20)
    bucket.names()
    tracemalloc.start()
    try:
        bucket.put(file, "name")
        bucket.get("name", tmp_path / "back")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "back").stat().st_size == 40 << 20 and peak < 6 << 20


def test_what_passes_is_tried_again(tmp_path: Path, storage: S3Server) -> None:
    file, bucket = tmp_path / "file", _bucket(storage.url)
    file.write_bytes(os.urandom(6 << 20))
    storage.fails = 2
    bucket.put(file, "name")
    storage.cuts = 1
    bucket.get("name", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == file.read_bytes()
    storage.fails = 9
    with pytest.raises(BucketError, match=r"localhost:\d+ answered 503 SlowDown: It is so\."):
        bucket.names()


def test_an_upload_that_fails_leaves_nothing_behind(tmp_path: Path, storage: S3Server) -> None:
    file, bucket = tmp_path / "file", _bucket(storage.url, part_bytes=1 << 20)
    file.write_bytes(bytes(3 << 20))
    with pytest.raises(BucketError, match="EntityTooSmall"):
        bucket.put(file, "name")
    storage.least_part, storage.breaks_completion = 0, True
    with pytest.raises(BucketError, match="answered 200 InternalError"):
        bucket.put(file, "name")
    assert not storage.uploads and not storage.objects
    storage.uploads |= {"killed": (f"{ODD}old", {}), "of another": ("elsewhere", {})}
    bucket.clear()
    assert list(storage.uploads) == ["of another"]


def test_each_refusal_is_one_sentence_that_says_what_to_do(tmp_path: Path, storage: S3Server) -> None:
    def said(bucket: Bucket, work: Callable[[Bucket], object] = lambda bucket: bucket.names()) -> str:
        with pytest.raises(BucketError) as raised:
            work(bucket)
        text = str(raised.value)
        assert "\n" not in text and SECRET not in text, text
        return text

    assert "There is no bucket 'nowhere'" in said(_bucket(storage.url, name="nowhere"))
    assert "DEER_FLOW_BACKUP_SECRET_KEY does not belong" in said(
        _bucket(storage.url, signer=Signer(KEY_ID, "x", REGION))
    )
    assert "does not know the key in DEER_FLOW_BACKUP_KEY_ID" in said(
        _bucket(storage.url, signer=Signer("x", SECRET, REGION))
    )
    other = Signer(KEY_ID, SECRET, "us-east-1")
    assert "set backups.bucket.region to eu-central-1" in said(_bucket(storage.url, signer=other))
    assert f"There is no '{ODD}gone'" in said(_bucket(storage.url), lambda bucket: bucket.get("gone", tmp_path / "x"))
    storage.says = b"<html><p>Welcome<br>"
    assert "does not answer as an S3-compatible storage" in said(_bucket(storage.url))
    storage.says, storage.denies = b"", frozenset({"GET"})
    assert "may have to list the bucket 'backups'" in said(_bucket(storage.url))
    storage.clock = 3600
    assert "The clock of this machine differs too much" in said(_bucket(storage.url))
    assert "cannot be reached" in said(_bucket("http://127.0.0.1:1"))
    assert "cannot be reached" in said(_bucket(storage.url.replace("http:", "https:")))


def test_the_certificate_of_the_storage_must_be_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, authority = issued("localhost", tmp_path)
    with s3_server(tmp_path / "storage", certificate) as storage:
        with pytest.raises(BucketError, match=r"certificate of localhost:\d+ is not trusted .*SSL_CERT_FILE"):
            _bucket(storage.url).names()
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        assert _bucket(storage.url).names() == []
