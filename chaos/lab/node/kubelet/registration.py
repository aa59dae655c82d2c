"""What a new Node says of its kubelet, and the certificate that the kubelet has.

How long a Node that its kubelet has just created is not Ready, and what it says until then.

It is Ready once its kubelet has checked the container runtime and created the CSINode, for which it waits until the
Node is there, in retries 15 ms to 3 s apart (pkg/volume/csi/csi_plugin.go, initializeCSINode).

The kubelet's client certificate: the file that a real kubelet rotates, with the certificate and its private key.

Nothing here is drawn: digests of the file are in plans, and the same seed writes the same recording in every process.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

RUNTIME_UNCHECKED = "container runtime status check may not have completed yet"
_NO_CSI_NODE = "CSINode is not yet initialized"
MESSAGES = (RUNTIME_UNCHECKED, _NO_CSI_NODE, f"[{RUNTIME_UNCHECKED}, {_NO_CSI_NODE}]")  # in the order of ReadyCondition


class Registration(NamedTuple):
    """A message of :data:`MESSAGES`, and for how many seconds the Node has it."""

    message: str
    seconds: float


FILE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
TARGET = "/var/lib/kubelet/pki/kubelet-client-2020-01-01-00-00-00.pem"  # of the symbolic link FILE
_VALIDITY = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC))  # fixed: the lab reads no clock
_PEM = serialization.Encoding.PEM


@cache
def client_certificate(node: str) -> str:
    """Content of the file on the host of ``node``. Nothing authenticates with it."""
    return make_certificate(f"/O=system:nodes/CN=system:node:{node}", *_VALIDITY) + private_key()


def make_certificate(subject: str, begin: datetime, end: datetime) -> str:
    """A certificate in PEM; ``subject`` as of openssl's option: ``/O=system:nodes/CN=NAME``."""
    organization, _, name = subject.removeprefix("/O=").partition("/CN=")
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)]
    names.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(names))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nodefall lab")]))
        .public_key(_key().public_key())
        .serial_number(int.from_bytes(_digest(f"{subject} {begin} {end}")[:16]))
        .not_valid_before(begin)
        .not_valid_after(end)
        .sign(_authority(), None)
    )
    return certificate.public_bytes(_PEM).decode()


def has_expired(pem: str, now: float) -> bool:
    """Whether there is a certificate in ``pem``, and it has expired."""
    return bool(pem) and x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc.timestamp() <= now


@cache
def private_key() -> str:
    """The key of all certificates, in PEM."""
    return (
        _key()
        .private_bytes(_PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
        .decode()
    )


@cache
def _key() -> ec.EllipticCurvePrivateKey:
    """One for all nodes: making one for each of a thousand would take seconds."""
    return ec.derive_private_key(int.from_bytes(_digest("key")), ec.SECP256R1())


@cache
def _authority() -> Ed25519PrivateKey:
    """The lab's certificate authority: a key whose signatures, other than those of ECDSA, have no random part."""
    return Ed25519PrivateKey.from_private_bytes(_digest("authority"))


def _digest(text: str) -> bytes:
    return hashlib.sha256(f"nodefall lab: {text}".encode()).digest()
