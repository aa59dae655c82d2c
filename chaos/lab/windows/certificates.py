"""Certificates as Windows shows them."""

from __future__ import annotations

from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

_SHORT = {NameOID.COMMON_NAME: "CN", NameOID.ORGANIZATION_NAME: "O", NameOID.ORGANIZATIONAL_UNIT_NAME: "OU"}


@dataclass(frozen=True, slots=True)
class Certificate:
    """``subject`` as in ``CN=system:node:a, O=system:nodes``: the last part first. Times in epoch seconds."""

    subject: str
    issuer: str
    thumbprint: str
    serial: str
    not_before: float
    not_after: float
    der: bytes


def read_certificate(pem: str | None) -> Certificate | None:
    """The first certificate in a text, None if there is none."""
    try:
        found = x509.load_pem_x509_certificate((pem or "").encode())
    except ValueError:
        return None
    return Certificate(
        _name(found.subject),
        _name(found.issuer),
        found.fingerprint(hashes.SHA1()).hex().upper(),  # noqa: S303 - what Windows calls the thumbprint
        f"{found.serial_number:040X}",
        found.not_valid_before_utc.timestamp(),
        found.not_valid_after_utc.timestamp(),
        found.public_bytes(serialization.Encoding.DER),
    )


def _name(name: x509.Name) -> str:
    parts = [f"{_SHORT.get(item.oid, item.oid.dotted_string)}={item.value!s}" for item in name]
    return ", ".join(reversed(parts))
