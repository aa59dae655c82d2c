"""One certificate authority per lab, and the server certificate that it signs."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALIDITY = (
    datetime(2020, 1, 1, tzinfo=UTC),
    datetime(2120, 1, 1, tzinfo=UTC),
)  # fixed, as the lab reads no clock; the keys are short-lived


def _builder(name: str, issuer: str, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    def subject(common_name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])

    return (
        x509.CertificateBuilder()
        .subject_name(subject(name))
        .issuer_name(subject(issuer))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_VALIDITY[0])
        .not_valid_after(_VALIDITY[1])
    )


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        _builder("nodefall lab CA", "nodefall lab CA", key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def make_tls(directory: Path) -> tuple[Path, ssl.SSLContext]:
    """Create a CA certificate file, and a TLS context for 127.0.0.1 and localhost. The CA's key is not written."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _authority(ca_key)
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    certificate = (
        _builder("nodefall lab", "nodefall lab CA", key.public_key())
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    ca_file, chain, key_file = directory / "ca.crt", directory / "server.crt", directory / "server.key"
    ca_file.write_bytes(authority.public_bytes(pem))
    chain.write_bytes(certificate.public_bytes(pem))
    write_private(
        key_file,
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key_file)
    return ca_file, context


def write_private(path: Path, data: bytes) -> None:
    """Write a file that is readable by its owner only."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(data)
