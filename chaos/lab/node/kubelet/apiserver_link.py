"""The kubelet's connection to the API server: its certificate, and how it registers.

What a new Node says of its kubelet, and the certificate that the kubelet has.
How long a Node that its kubelet has just created is not Ready, and what it says until then.
It is Ready once its kubelet has checked the container runtime and created the CSINode, for which it waits until the
Node is there, in retries 15 ms to 3 s apart (pkg/volume/csi/csi_plugin.go, initializeCSINode).
The kubelet's client certificate: the file that a real kubelet rotates, with the certificate and its private key.
Nothing here is drawn: digests of the file are in plans, and the same seed writes the same recording in every process.
The kubelet's only HTTP/2 connection to the API server: it stalls, is closed after 45 s, and is dialled again.
Checked against recordings 07 and 12: a gap of 45.0 s in the Lease, then the other family; seconds after a heal.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple, Protocol

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from chaos.lab.node.network import Family, Network
from chaos.lab.sim import SimClock, Timer

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
    """One key for all nodes: creating a thousand keys would take seconds."""
    return ec.derive_private_key(int.from_bytes(_digest("key")), ec.SECP256R1())


@cache
def _authority() -> Ed25519PrivateKey:
    """The lab's certificate authority: a key whose signatures, other than those of ECDSA, have no random part."""
    return Ed25519PrivateKey.from_private_bytes(_digest("authority"))


def _digest(text: str) -> bytes:
    return hashlib.sha256(f"nodefall lab: {text}".encode()).digest()


_FALLBACK = 0.3  # net.Dialer: delay before the other family is dialled as well (RFC 6555)
_HANDSHAKE = 0.004
_SYN = (0.0, 1.0, 3.0, 7.0)  # tcp(7): retransmissions double
_REDIAL = 10.0  # requests time out, and the next one dials again
_RTO = 0.2  # tcp(7): the first retransmission of data on an established connection
_HEARTBEATS = ("lease", "status")  # keys of what the heartbeat client sends
_HEARTBEAT_TIMEOUT = 10.0  # nodeStatusUpdateFrequency: of the heartbeat client (cmd/kubelet/app/server.go)
_FLUSH_INTERVAL = (0.002, 0.012)  # between two queued requests once the connection is up again


class Timers(Protocol):
    """Timers that end with the kubelet's process."""

    def after(self, delay: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Call ``delay`` seconds from now."""

    def after_jitter(self, low: float, high: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Call after a random delay between ``low`` and ``high`` seconds."""


class ApiServerLink:
    """Connection through which the process sends its requests; while it is down, the latest of each key is queued."""

    def __init__(self, sim: SimClock, timers: Timers, network: Network, connection_timeout: float) -> None:
        self._sim, self._timers, self._network = sim, timers, network
        self._connection_timeout = connection_timeout  # seconds after the last frame received
        self._queue: dict[Hashable, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
        self._family: Family | None = None
        self._is_stalled = self._is_awaiting_ack = False
        self.last_read = self._unacknowledged_since = self._dial_start = sim.now
        # delayed requests, the latest of each key
        self._in_flight: dict[Hashable, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
        self._in_order_until = 0.0  # when the last of them arrives
        self.answer_delay = 0.0  # seconds after which the request that is being made is answered
        self._timer: Timer | None = None
        self.on_up: list[Callable[[], None]] = []
        self._network.on_change.append(self._on_network_change)
        self._dial()

    @property
    def is_up(self) -> bool:
        """Whether requests are sent immediately."""
        return self._family is not None and not self._is_stalled

    @property
    def family(self) -> Family | None:
        """Address family of the connection, None without one."""
        return self._family

    def send(self, key: Hashable, call: Callable[..., Any], *args: Any) -> None:
        """Make the request ``call`` now, or once the connection is up: then only the latest of each key."""
        if self._family is not None and not self._is_stalled and not self._is_delayed(key, call, args):
            self.last_read = self._sim.now
            call(*args)
        if self._family is not None and not self._is_stalled:
            return
        if not self._is_awaiting_ack:
            self._is_awaiting_ack, self._unacknowledged_since = True, self._sim.now
        self._queue.pop(key, None)
        self._queue[key] = (call, args)

    def _is_delayed(self, key: Hashable, call: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        """Whether the request arrives later; TCP keeps the order, and one that would be too late stalls the rest."""
        waits = self._server_wait(key)
        if not waits and not (self._in_flight or self._network.is_impaired or self._in_order_until > self._sim.now):
            return False
        if key in self._in_flight:
            self._in_flight[key] = (call, args)
            return True
        now, limit = self._sim.now, self.last_read + self._connection_timeout
        lateness = answer = 0.0
        if self._family:
            lateness = self._network.tcp_lateness(self._family, self._sim.rng, limit - now)
            answer = self._network.answer_lateness(self._family, self._sim.rng, limit - now)
        arrival = max(now + lateness, self._in_order_until)
        if arrival + waits <= now and answer <= 0.0:
            return False
        if arrival + waits + answer >= limit:
            self._stall()
        else:
            self._in_order_until = arrival
            self._in_flight[key] = (call, args)
            self._timers.after(arrival + waits - now, self._arrive, key, answer)
        return True

    def _server_wait(self, key: Hashable) -> float:
        """Seconds until the API server writes the request, inf while its etcd has no majority.

        A request that is sent between the loss of a leader and the next election is lost: the member that received it
        has forwarded it to the last leader. The heartbeat client gives up after 10 s, and sends it again immediately.
        """
        when = self._network.server_ready_at() if self._network.server_ready_at else self._sim.now
        wait = math.inf if when is None else when - self._sim.now
        if key not in _HEARTBEATS or math.isinf(wait):
            return wait
        return _HEARTBEAT_TIMEOUT * math.ceil(wait / _HEARTBEAT_TIMEOUT)

    def _arrive(self, key: Hashable, answer: float) -> None:
        """Make a delayed request, also while a later one stalls; else queue it, unless a later one of its key is."""
        if key not in self._in_flight:
            return
        call, args = self._in_flight.pop(key)
        if self._family is not None and self._network.can_connect(self._family):
            self.last_read = self._sim.now
            self.answer_delay = answer
            call(*args)
            self.answer_delay = 0.0
        else:
            self._queue.setdefault(key, (call, args))

    def on_frame(self) -> None:
        """Handle a frame from the API server: the connection is alive."""
        self.last_read = self._sim.now

    def cancel(self, key: Hashable) -> bool:
        """Remove a queued request; whether there was one."""
        in_flight = self._in_flight.pop(key, None)
        return self._queue.pop(key, None) is not None or in_flight is not None

    def close(self) -> None:
        """Drop queued requests: the process has ended."""
        self._queue.clear()
        self._in_flight.clear()
        self._network.on_change.remove(self._on_network_change)

    def _on_network_change(self) -> None:
        if self._family is None:
            self._plan_dial()
        elif not self._network.can_connect(self._family):
            self._stall()
        elif self._is_stalled:
            self._retransmit()

    def _stall(self) -> None:
        if not self._is_stalled:
            self._is_stalled, self._is_awaiting_ack = True, False
            # of the ping, unless a request is sent before
            self._unacknowledged_since = self.last_read + self._connection_timeout
        self._set_timer(self.last_read + self._connection_timeout, self._drop_connection)

    def _retransmit(self) -> None:
        """Schedule TCP's next retransmission after packets pass again, unless the connection is closed before."""
        now, step = self._sim.now, _RTO
        when = self._unacknowledged_since if self._is_awaiting_ack else now
        while when < now:
            when, step = when + step, 2 * step
        if when < self.last_read + self._connection_timeout:
            self._set_timer(when, self._on_connect, self._family)

    def _drop_connection(self) -> None:
        self._family, self._is_stalled = None, False
        self._dial()

    def _dial(self) -> None:
        self._dial_start = self._sim.now
        self._plan_dial()

    def _plan_dial(self) -> None:
        """Schedule the connection for the first SYN that passes, else another dial 10 s after this one."""
        now, arrivals = self._sim.now, []
        for family in self._network.families:
            if self._network.can_connect(family):
                start = self._dial_start + (0.0 if family == self._network.families[0] else _FALLBACK)
                arrivals += [(start + wait, family) for wait in self._syns(family) if start + wait >= now][:1]
        redial = self._dial_start + _REDIAL
        when, chosen = min(arrivals, default=(redial, None))
        if chosen is None or when > redial:
            self._set_timer(redial, self._dial)
        else:
            self._set_timer(when + _HANDSHAKE, self._on_connect, chosen)

    def _syns(self, family: Family) -> list[float]:
        """Seconds after which those SYNs are sent that are not lost."""
        return [wait for wait in _SYN if self._network.passes(family, self._sim.rng)]

    def _on_connect(self, family: Family) -> None:
        self._family, self._is_stalled, self._is_awaiting_ack = family, False, False
        self.last_read = self._sim.now
        for call in list(self.on_up):
            call()
        self._flush()

    def _flush(self) -> None:
        """Send one queued request after the other, in order."""
        if self._queue and self.is_up:
            key = next(iter(self._queue))
            call, args = self._queue.pop(key)
            self.send(key, call, *args)
            self._timers.after_jitter(*_FLUSH_INTERVAL, self._flush)

    def _set_timer(self, when: float, call: Callable[..., Any], *args: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timers.after(when - self._sim.now, call, *args)
