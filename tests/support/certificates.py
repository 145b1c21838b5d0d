"""Certificates as companies issue them: by an authority that nobody else knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM


def issued(host: str, directory: Path) -> tuple[Path, Path]:
    """Files in ``directory``: key and certificate of ``host``, and the certificate of the authority that signed it."""
    authority, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Authority of {host}")])

    def signed(name: x509.Name, public_key: ec.EllipticCurvePublicKey, *, ca: bool) -> bytes:
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if not ca:
            made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return made.sign(authority, hashes.SHA256()).public_bytes(PEM)

    server, trusted = directory / "server.pem", directory / "authority.pem"
    private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    server.write_bytes(private + signed(subject, key.public_key(), ca=False))
    trusted.write_bytes(signed(issuer, authority.public_key(), ca=True))
    return server, trusted
