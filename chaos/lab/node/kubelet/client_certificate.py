"""The kubelet's client certificate: the file that a real kubelet rotates, with the certificate and its private key."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

FILE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
_VALIDITY = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC))  # fixed: the lab reads no clock
_PEM = serialization.Encoding.PEM


@cache
def client_certificate(node: str) -> str:
    """Content of the file on the host of ``node``. Nothing authenticates with it."""
    key = _key()
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes")]
    names.append(x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node}"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(names))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nodefall lab")]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_VALIDITY[0])
        .not_valid_after(_VALIDITY[1])
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(_PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    return (certificate.public_bytes(_PEM) + private).decode()


@cache
def _key() -> ec.EllipticCurvePrivateKey:
    """One for all nodes of the process: making one for each of a thousand would take seconds."""
    return ec.generate_private_key(ec.SECP256R1())
