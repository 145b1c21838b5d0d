from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES128, AES256
from cryptography.hazmat.primitives.ciphers.modes import CBC, ECB

from deerflow.features.channels.types import Unreachable
from deerflow_app.channels.ciphers import decrypted, encrypted, padded

KEY = bytes(range(32))
CIPHERS = [(Cipher(AES256(KEY), CBC(KEY[:16])), 32), (Cipher(AES128(KEY[:16]), ECB()), 16)]


async def pieces(content: bytes, sizes: Iterable[int]) -> AsyncIterator[bytes]:
    start = 0
    for size in sizes:
        yield content[start : start + size]
        start += size
    yield content[start:]


@pytest.mark.parametrize(("cipher", "block"), CIPHERS)
async def test_what_was_encrypted_in_any_pieces_is_decrypted_in_any_others(cipher: Cipher, block: int):
    chance = random.Random(1)
    for size in (0, 1, 15, 16, 17, 31, 32, 33, 1000):
        content = chance.randbytes(size)
        sizes = [[chance.randint(0, 40) for _ in range(9)] for _ in range(2)]
        sealed = b"".join([piece async for piece in encrypted(pieces(content, sizes[0]), cipher, block)])
        opened = b"".join([piece async for piece in decrypted(pieces(sealed, sizes[1]), cipher, block)])

        assert opened == content
        assert len(sealed) == padded(size, block)


@pytest.mark.parametrize(("cipher", "block"), CIPHERS)
@pytest.mark.parametrize("sealed", [b"", b"x" * 7, b"x" * 64])
async def test_a_damaged_file_may_be_fetched_again(cipher: Cipher, block: int, sealed: bytes):
    with pytest.raises(Unreachable, match="send it again"):
        _ = [piece async for piece in decrypted(pieces(sealed, [3]), cipher, block)]
