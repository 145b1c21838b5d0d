"""Signatures are those that Amazon publishes as examples."""

from __future__ import annotations

import hashlib

import pytest

from deerflow_app.sigv4 import EMPTY, Signer, escaped, query_string

S3 = Signer("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
"""Of the examples at https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html."""
SUITE = Signer("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1", "service")
"""Of the suite ``aws-sig-v4-test-suite``."""
WELCOME = hashlib.sha256(b"Welcome to Amazon S3.").hexdigest()
_ARCHIVED = {"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"}


@pytest.mark.parametrize(
    ("method", "path", "query", "headers", "payload", "signature"),
    [
        ("GET", "/test.txt", {}, {"range": "bytes=0-9"}, EMPTY, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        ("PUT", "/test$file.text", {}, _ARCHIVED, WELCOME, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        ("GET", "/", {"lifecycle": ""}, {}, EMPTY, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("GET", "/", {"prefix": "J", "max-keys": "2"}, {}, EMPTY, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
    ids=["get", "put", "a query without value", "list"],
)  # fmt: skip
def test_requests_of_s3(
    method: str, path: str, query: dict[str, str], headers: dict[str, str], payload: str, signature: str
) -> None:
    signed = {
        "host": "examplebucket.s3.amazonaws.com",
        "x-amz-date": "20130524T000000Z",
        "x-amz-content-sha256": payload,
        **headers,
    }
    made = S3.authorization(method, escaped(path), query, signed, payload)
    assert made == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        f"SignedHeaders={';'.join(sorted(signed))}, Signature={signature}"
    )


@pytest.mark.parametrize(
    ("query", "signature"),
    [
        ({}, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ({"Param2": "value2", "Param1": "value1"}, "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
    ],
    ids=["get-vanilla", "get-vanilla-query-order-key-case"],
)
def test_requests_of_the_suite(query: dict[str, str], signature: str) -> None:
    headers = {"host": "example.amazonaws.com", "x-amz-date": "20150830T123600Z"}
    assert SUITE.authorization("GET", "/", query, headers, EMPTY).endswith(f" Signature={signature}")


def test_all_but_unreserved_characters_are_escaped() -> None:
    assert escaped("/a b/c+d=é(1)~.txt") == "/a%20b/c%2Bd%3D%C3%A9%281%29~.txt"
    assert query_string({"b": "x/y+z=", "a": ""}) == "a=&b=x%2Fy%2Bz%3D"
    assert "secret" not in repr(Signer("id", "secret", "r"))
