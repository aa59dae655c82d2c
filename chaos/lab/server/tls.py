"""One certificate authority per lab, and the server certificates that it signs."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterable
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


class LabAuthority:
    """The authority of a lab, whose key is not written. ``ca_file``: its certificate in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._key = directory, ec.generate_private_key(ec.SECP256R1())
        self.ca_file = directory / "ca.crt"
        self.ca_file.write_bytes(_authority(self._key).public_bytes(serialization.Encoding.PEM))

    def context(self, name: str, more_addresses: Iterable[str] = ()) -> ssl.SSLContext:
        """A TLS context for 127.0.0.1, localhost and more, with a new key; its files are called ``name``."""
        key = ec.generate_private_key(ec.SECP256R1())
        pem = serialization.Encoding.PEM
        chain, key_file = self._directory / f"{name}.crt", self._directory / f"{name}.key"
        chain.write_bytes(self._sign(key.public_key(), more_addresses).public_bytes(pem))
        write_private(
            key_file,
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key_file)
        return context

    def _sign(self, key: ec.EllipticCurvePublicKey, more_addresses: Iterable[str]) -> x509.Certificate:
        addresses = dict.fromkeys(["127.0.0.1", *more_addresses])
        names = [*(x509.IPAddress(ipaddress.ip_address(each)) for each in addresses), x509.DNSName("localhost")]
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            _builder("nodefall lab", "nodefall lab CA", key)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(issuer, critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def write_private(path: Path, data: bytes) -> None:
    """Write a file that is readable by its owner only."""
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(data)
