"""Files that a platform keeps encrypted: AES over a stream of bytes, with the padding of PKCS #7, and their MD5."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.modes import CBC, ECB

from deerflow.features.channels.types import OutFile, Unreachable
from deerflow_app.channels.wire import whole

_DAMAGED = "The file arrived damaged. Please send it again."


async def decrypted(pieces: AsyncIterator[bytes], cipher: Cipher[CBC | ECB], block: int) -> AsyncIterator[bytes]:
    """Yield the plain bytes without their padding, which fills up to a multiple of ``block``.

    Raises:
        Unreachable: what came is not the file, but a part of it or a page of someone else.
    """
    decryptor = cipher.decryptor()
    kept = b""
    try:
        async for piece in pieces:
            kept += decryptor.update(piece)
            yield kept[:-block]
            kept = kept[-block:]
        kept += decryptor.finalize()
    except ValueError:
        raise Unreachable(_DAMAGED) from None
    padding = kept[-1] if kept else 0
    if not 1 <= padding <= block or kept[-padding:] != bytes([padding]) * padding:
        raise Unreachable(_DAMAGED)
    yield kept[:-padding]


async def encrypted(pieces: AsyncIterator[bytes], cipher: Cipher[CBC | ECB], block: int) -> AsyncIterator[bytes]:
    """Yield the bytes encrypted, filled up to a multiple of ``block``."""
    encryptor = cipher.encryptor()
    size = 0
    async for piece in pieces:
        size += len(piece)
        yield encryptor.update(piece)
    padding = block - size % block
    yield encryptor.update(bytes([padding]) * padding) + encryptor.finalize()


def padded(size: int, block: int) -> int:
    """Return how long ``size`` bytes are when they are encrypted."""
    return size + block - size % block


async def md5_of(file: OutFile) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    async for piece in whole(file):
        digest.update(piece)
    return digest.hexdigest()
