"""Address and login of the WinRM service of one host, with pauses after rejected logins.

The service's quotas must permit what a run uses.

Domains lock an account after a few wrong passwords.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Literal

from chaos.core.errors import NodefallError, Refused
from chaos.machines.local import refuse_untrusted

MAX_COMMANDS = 1000  # in one shell; each counts against the operations of a user until the shell is deleted
# The one in use; the one before it, while its last commands run; one that a lost connection left until it is idle.
_SHELLS = 3
# A step's command, an observer's reading and a proof, each PowerShell with a program that it starts.
_PROCESSES = 6
# Least values by the names of winrm/config. Above the operations of a full shell are those of the former one.
LEAST_QUOTAS = {
    "MaxShellsPerUser": _SHELLS,
    "MaxProcessesPerShell": _PROCESSES,
    "MaxConcurrentOperationsPerUser": MAX_COMMANDS + _PROCESSES,
}
Authentication = Literal["ntlm", "kerberos", "credssp", "certificate", "basic"]
Scheme = Literal["https", "http"]
PORTS = {"https": 5986, "http": 5985}
ENCRYPTING: tuple[Authentication, ...] = ("ntlm", "kerberos", "credssp")  # these encrypt messages without TLS
_FIRST, _LONGEST = 15.0, 120.0  # seconds; a host that has just booted may reject a right password for a while


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The service of one host. ``hostname``: the name in its certificate and its Kerberos principal, "": the address.

    ``fingerprint``: SHA-256 of the certificate as 64 hexadecimal digits; it is then trusted by that alone.
    """

    name: str
    address: str
    port: int
    auth: Authentication
    user: str = ""
    password: str = field(default="", repr=False)
    scheme: Scheme = "https"
    hostname: str = ""
    ca_file: Path | None = None
    fingerprint: str = ""
    certificate: Path | None = None
    key: Path | None = None
    connect_timeout: float = 10.0  # seconds of wall time

    @property
    def label(self) -> str:
        """Name, login and address, for messages."""
        login = f"{self.user}@" if self.user else ""
        return f"{self.name} ({login}{self._host}:{self.port})"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self._host}:{self.port}/wsman"

    @property
    def _host(self) -> str:
        return f"[{self.address}]" if ":" in self.address else self.address

    def tls_context(self) -> ssl.SSLContext:
        """Verifies the service, and has the client's certificate. Raises Refused for files that cannot be used."""
        try:
            if self.ca_file:
                refuse_untrusted(self.ca_file)
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise Refused(
                f"caFile {self.ca_file} of {self.name} cannot be used: {error.strerror or 'it has no certificate'}",
                hint="it must be a PEM file with the certificates of the authorities",
            ) from error
        if self.fingerprint:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE  # the fingerprint is compared instead, before anything is sent
        if self.certificate:
            self._load_certificate(context, self.certificate)
        return context

    def _load_certificate(self, context: ssl.SSLContext, path: Path) -> None:
        try:
            for file in filter(None, (path, self.key)):
                refuse_untrusted(file)
            # An encrypted key would make OpenSSL ask on the terminal.
            context.load_cert_chain(path, self.key, password=lambda: b"")
        except (OSError, ssl.SSLError) as error:
            raise Refused(
                f"certificate {path} and key {self.key} of {self.name} cannot be used: {error.strerror or error}",
                hint="they must be PEM files, the key without a passphrase",
            ) from error


def certificate_key(fingerprint: str) -> str:
    """A certificate as host keys are written: ``certificate SHA256:`` and hexadecimal digits."""
    return f"certificate SHA256:{fingerprint}"


class RejectedLogin(Refused):
    """The host did not accept user and password."""


class LoginPause:
    """Whether one account may log in to one host now. Thread safe; ``now`` in seconds.

    After each rejection in a row the pause is twice as long.
    """

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now, self._lock = now, Lock()
        self._pause, self._until = 0.0, 0.0
        self._rejection: NodefallError | None = None

    def check(self) -> None:
        """Raises RejectedLogin, with what the host answered last, during a pause."""
        with self._lock:
            left = self._until - self._now()
            if self._rejection is None or left <= 0:
                return
            message = f"{self._rejection.message}; not tried again for {left:.0f} s, as accounts get locked"
            raise RejectedLogin(message, hint=self._rejection.hint)

    def reject(self, rejection: NodefallError) -> None:
        """A login was rejected: begin a pause."""
        with self._lock:
            self._rejection = rejection
            self._pause = min(max(_FIRST, self._pause * 2), _LONGEST)
            self._until = self._now() + self._pause

    def accept(self) -> None:
        """A login was accepted."""
        with self._lock:
            self._rejection, self._pause = None, 0.0
