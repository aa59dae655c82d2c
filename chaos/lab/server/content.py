"""Options of a lab's servers, their certificates, and what a lab has in it when it starts.

That is machines without workloads, or the copy of a cluster. And tuning of Python's garbage collector: objects of the
store are long-lived and have no reference cycles.
"""

from __future__ import annotations

import gc
import ipaddress
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from chaos.lab.apiserver.store import Change, Store
from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, SpecError


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of a lab's servers.

    ``speed``: maximum of simulated seconds per wall second; with ``free``, time runs at that speed without lockstep;
    ``careful``: as of Lockstep. ``linger``: wall seconds without a client after which a lab without owner ends.
    ``watch_cache_size``: maximum number of changes per resource from which a watch can continue. ``name``: context of
    the kubeconfig. ``port`` of the API server, 0 for any free port.
    """

    speed: float = 20.0
    free: bool = False
    linger: float = 120.0
    watch_cache_size: int = 10_000
    name: str = "nodefall-lab"
    port: int = 0
    careful: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """``start`` starts the cluster of ``spec``; after it, ``facts`` has more for the ready line."""

    spec: LabSpec
    start: Callable[[Cluster], None] = Cluster.start
    facts: dict[str, Any] = field(default_factory=dict)


def content_of(text: bytes, snapshot: Path | None) -> Content:
    """Content by a LabSpec in JSON, which has no nodes if there is a snapshot. Raises SpecError."""
    if snapshot is None:
        return Content(LabSpec.from_json(text))
    from chaos.lab.snapshot.load import Copy  # noqa: PLC0415 - few labs need it
    from chaos.lab.snapshot.reader import SnapshotError, read_snapshot  # noqa: PLC0415

    facts: dict[str, Any] = {}
    try:
        copy = Copy(read_snapshot(snapshot), msgspec.json.decode(text, type=dict[str, Any]))
    except (SnapshotError, msgspec.DecodeError) as error:
        raise SpecError(str(error)) from error
    spec = copy.spec

    def start(cluster: Cluster) -> None:
        try:
            copy.start(cluster)
        except SnapshotError as error:
            raise SpecError(str(error)) from error
        workers = sum(node.role == "worker" for node in spec.nodes)
        facts["snapshot"] = {"kubernetes": spec.kubernetes, "workers": workers, "notModelled": copy.not_modelled}

    return Content(spec, start, facts)


_GROWTH = 500  # objects
_GENERATIONS = (50_000, 20, 100)


class GcTuner:
    """Excludes live objects from collection each time the store has grown by 500 objects beyond its largest size."""

    def __init__(self, store: Store) -> None:
        self._size, self._largest = 0, 0
        gc.set_threshold(*_GENERATIONS)
        store.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.type == "ADDED":
            self._size += 1
            if self._size > self._largest + _GROWTH:
                self._largest = self._size
                gc.freeze()
        elif change.type == "DELETED":
            self._size -= 1


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
