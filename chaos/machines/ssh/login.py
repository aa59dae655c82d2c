"""Logins by paramiko: which keys are offered, in the order of ssh, and why none was accepted."""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    SSHCertificate,
    load_pem_private_key,
    load_ssh_private_key,
    load_ssh_public_identity,
)

from chaos.core.errors import Refused, Unreachable
from chaos.machines.local import refuse_unsafe_key
from chaos.machines.sessions.settings import HostSettings
from chaos.machines.ssh.client import ClientTransport

_SHUTDOWN_GRACE = 0.2  # seconds for a broken transport's thread to notice
_FOREVER = 2**64 - 1  # of a certificate that does not expire
_Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
_CLASSES: tuple[tuple[type[_Private], type[paramiko.PKey]], ...] = (
    (rsa.RSAPrivateKey, paramiko.RSAKey),
    (ec.EllipticCurvePrivateKey, paramiko.ECDSAKey),
    (ed25519.Ed25519PrivateKey, paramiko.Ed25519Key),
)


@dataclass(frozen=True, slots=True)
class Identity:
    """A key that is offered to the host; ``source`` describes it in messages."""

    key: paramiko.PKey
    source: str


def log_in(transport: ClientTransport, settings: HostSettings) -> None:
    """Authenticate with the identity file, its certificate first, then with the keys of the agent.

    A host that refuses every login, as by /run/nologin, prints why and closes the connection: no key is to blame.
    Raises Unreachable, or Refused for an identity file that cannot be used.
    """
    tried: list[str] = []
    remaining: list[str] = []
    with ExitStack() as stack:
        try:
            for identity in _identities(settings, stack):
                tried.append(identity.source)
                try:
                    remaining = transport.auth_publickey(settings.user, identity.key)
                except paramiko.BadAuthenticationType as error:
                    remaining = error.allowed_types
                    break
                except paramiko.AuthenticationException:  # the next key may be accepted
                    transport.join(_SHUTDOWN_GRACE)
                    if not transport.is_active():
                        raise
                    continue
                if not remaining:
                    return
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise _login_closed(transport, settings, tried, error) from error
    raise _login_rejected(transport, settings, tried, remaining)


def _login_rejected(
    transport: ClientTransport, settings: HostSettings, tried: list[str], remaining: list[str]
) -> Unreachable:
    offered = ", ".join(tried) or "no key at all"
    why = f"{settings.label} rejected the login of {settings.user}; offered: {offered}"
    if remaining:
        return Unreachable(
            f"{why}; the host also requires {', '.join(remaining)}",
            hint="nodefall has no second factor and no password: give it a login with a key alone",
        )
    said = f"; it said {transport.said!r}" if transport.said else ""
    return Unreachable(
        f"{why}{said}",
        hint=f"set identityFile, or `ssh-add` the key, and add the public key to {settings.user}'s authorized_keys",
    )


def _login_closed(
    transport: ClientTransport, settings: HostSettings, tried: list[str], error: Exception
) -> Unreachable:
    """The error for a host that closed the connection during the login, with the host's message if there was one."""
    why = f"{settings.label} closed the connection during login of {settings.user}"
    said = f"it said {transport.said!r}" if transport.said else str(error)
    if len(tried) > 1:
        return Unreachable(
            f"{why}: {said}; offered: {', '.join(tried)}",
            hint="a host counts every key (MaxAuthTries): set identityFile, and agent: false, to offer only that one",
        )
    if not transport.said:
        return Unreachable(f"{why}: {said}", hint="check the log of its sshd")
    return Unreachable(
        f"{why}: {said}",
        hint="a host that starts, or is about to shut down, admits only root (/run/nologin): wait, or log in as root",
    )


def _identities(settings: HostSettings, stack: ExitStack) -> Iterator[Identity]:
    if settings.identity_file:
        yield from _of_file(settings, settings.identity_file)
    if settings.agent:
        agent = paramiko.Agent()
        stack.callback(agent.close)
        yield from (Identity(key, f"the agent's {key.get_name()}") for key in agent.get_keys())


def _of_file(settings: HostSettings, path: Path) -> Iterator[Identity]:
    """The certificate next to the key, if any, then the key itself, because a host may not trust the certificate."""
    key, source = _load(settings, path), str(path)
    certificate = Path(f"{path}-cert.pub")
    if certificate.is_file():
        certified = copy.copy(key)
        try:
            certified.load_certificate(str(certificate))
            yield Identity(certified, f"{certificate} ({_validity(certificate)})")
        except (
            ValueError,
            OSError,
            UnsupportedAlgorithm,
            paramiko.SSHException,
        ) as error:  # ssh offers the key alone, too
            source = f"{path} (without {certificate}, which cannot be used: {error})"
    yield Identity(key, source)


def _validity(path: Path) -> str:
    """Describes until when a certificate is valid; the host checks this by its own clock."""
    loaded = load_ssh_public_identity(path.read_bytes())
    if not isinstance(loaded, SSHCertificate):
        raise UnsupportedAlgorithm("it is a plain public key")
    if loaded.valid_before == _FOREVER:
        return "a certificate that does not expire"
    return f"a certificate valid until {datetime.fromtimestamp(loaded.valid_before, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _load(settings: HostSettings, path: Path) -> paramiko.PKey:
    """The key in the identity file. Raises Refused, also for an encrypted one: there is no prompt for a passphrase."""
    try:
        refuse_unsafe_key(path)
        return _parse(path.read_bytes())
    except OSError as error:
        raise Refused(
            f"identityFile {path} of {settings.name} cannot be read: {error.strerror}", hint="check the inventory"
        ) from error
    except (TypeError, paramiko.PasswordRequiredException) as error:  # TypeError is cryptography's
        raise Refused(
            f"identityFile {path} of {settings.name} is encrypted",
            hint=f"run `ssh-add {path}` and remove identityFile: the keys of the agent are used",
        ) from error
    except (ValueError, UnsupportedAlgorithm, paramiko.SSHException) as error:
        raise Refused(
            f"identityFile {path} of {settings.name} cannot be used as a private key: {error}",
            hint="use an ed25519, ecdsa or rsa key in OpenSSH, PEM or PKCS#8 format",
        ) from error


def _parse(data: bytes) -> paramiko.PKey:
    """A key in any format that ssh reads, by way of OpenSSH's: paramiko itself does not read PKCS#8."""
    if data.startswith(b"PuTTY-User-Key-File"):
        raise ValueError("it is a key of PuTTY, which `puttygen FILE -O private-openssh -o NEW` converts")
    try:
        loaded: object = load_ssh_private_key(data, None)
    except ValueError:
        loaded = load_pem_private_key(data, None)
    for kind, made in _CLASSES:
        if isinstance(loaded, kind):
            text = loaded.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
            return made.from_private_key(io.StringIO(text.decode("ascii")))
    raise ValueError(f"{type(loaded).__name__} is not a kind of key that paramiko supports")
