"""Random set-ups of sshd and ssh_config, and what ssh and both transports make of each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from cryptography.hazmat.primitives import serialization as forms

from chaos.core.command import Delivery, HostCommand
from chaos.core.errors import NodefallError
from chaos.machines.driver import transport_of
from tests.kit.openssh import HOST, RELAY, host_with, openssh_host
from tests.kit.sshd import USER, Server, agent, keygen, public, serving

SECRET = "planted-token-91f3"
KINDS = ("ed25519", "ecdsa", "rsa")
_ALWAYS, _PAST = "-1d:20991231235959Z", "-2d:-1d"
# Lines of sshd_config, and whether paramiko has such algorithms.
ALGORITHMS = {
    "": True,
    "KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org\n": True,
    "KexAlgorithms sntrup761x25519-sha512@openssh.com\n": False,
    "Ciphers chacha20-poly1305@openssh.com\n": False,
    "Ciphers aes256-ctr\nMACs hmac-sha2-512-etm@openssh.com\n": True,
    "Ciphers aes256-ctr\nMACs umac-128@openssh.com\n": False,
    "PubkeyAcceptedAlgorithms ssh-ed25519,ecdsa-sha2-nistp256\n": True,
}
LOGINS = (
    *("", "", "", "", "Banner {folder}/banner\n", "ForceCommand false\n", f"DenyUsers {USER}\n"),
    *('ForceCommand echo greeting; sh -c "$SSH_ORIGINAL_COMMAND"\n', "PermitTTY no\n", "MaxSessions 1\n"),
)
PATHS = (*("direct", "relay", "jump") * 4, "broken relay", "closed port")
KNOWN = (*("right", "hashed", "wildcard") * 4, *("global", "authority", "alias") * 2, "unknown", "wrong", "revoked")
IDENTITIES = ("OPENSSH", "PEM", "PKCS8")
CERTIFICATES = ("", "", "trusted", "untrusted", "expired", "broken")
# Lines of ssh_config that change nothing for a command.
HARMLESS = ("", "RequestTTY force", "RemoteCommand false", "LogLevel QUIET", "ControlMaster auto", "BatchMode no")


@dataclass(frozen=True)
class Setup:
    """``keys`` in the agent; ``authorized``: whether the key is."""

    host_kind: str
    kind: str
    algorithms: str
    login: str
    path: str
    known: str
    form: str
    certificate: str
    harmless: str
    keys: int
    tries: int
    authorized: bool

    @classmethod
    def draw(cls, random: Random) -> Setup:
        choose = random.choice
        first = (choose(KINDS), choose(KINDS), choose(list(ALGORITHMS)), choose(LOGINS), choose(PATHS), choose(KNOWN))
        second = (choose(IDENTITIES), choose(CERTIFICATES), choose(HARMLESS))
        return cls(*first, *second, choose((0, 0, 1, 4)), choose((2, 6, 6, 6)), random.random() < 0.9)

    @property
    def is_common(self) -> bool:
        """Whether paramiko has all that ssh uses, by an inventory alone."""
        return (
            ALGORITHMS[self.algorithms]
            and self.path in ("direct", "jump", "closed port")
            and self.known not in ("global", "authority", "alias")
            and self.has_order
        )

    @property
    def has_order(self) -> bool:
        """Whether the order does not matter: ssh offers the agent's keys before a file, paramiko after it."""
        offered = self.keys + 1 + (self.certificate not in ("", "broken"))
        return self.keys == 0 or offered <= self.tries


@dataclass(frozen=True)
class Answer:
    """``error`` is "" if the command ran."""

    error: str

    @property
    def ran(self) -> bool:
        return not self.error


class Keys:
    """Keys that set-ups share, as making some takes long."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        for name in (*KINDS, *(f"host-{kind}" for kind in KINDS), "ca", "other-ca", "other"):
            keygen(folder / name, name.removeprefix("host-") if name.removeprefix("host-") in KINDS else "ed25519")
        for number in range(4):
            keygen(folder / f"agent-{number}")

    def copy(self, name: str, to: Path) -> Path:
        for ending in ("", ".pub"):
            shutil.copy(f"{self._folder / name}{ending}", f"{to}{ending}")
        return to

    def path(self, name: str) -> Path:
        return self._folder / name

    def sign(self, key: Path, *names: str, authority: str = "ca", validity: str = _ALWAYS) -> None:
        argv: list[str | Path] = [
            "ssh-keygen",
            "-q",
            "-s",
            self.path(authority),
            "-I",
            "x",
            "-V",
            validity,
            *names,
            f"{key}.pub",
        ]
        subprocess.run(argv, check=True)


@contextmanager
def built(setup: Setup, keys: Keys, folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Start the servers: the ssh_config, and the keys of a host for paramiko, as far as an inventory has them."""
    with ExitStack() as stack:
        folder.mkdir()
        (folder / "banner").write_text("Authorized use only.\n", encoding="utf-8")
        (folder / "relay.py").write_text(RELAY, encoding="utf-8")
        host_key = keys.copy(f"host-{setup.host_kind}", folder / "host")
        keys.copy("ed25519", folder / "user")
        keys.sign(host_key, "-h", "-n", "127.0.0.1,node")
        identity = _identity(setup, keys, folder)
        settings = f"HostCertificate {host_key}-cert.pub\nTrustedUserCAKeys {keys.path('ca')}.pub\n"
        settings += f"MaxAuthTries {setup.tries}\n{setup.algorithms}{setup.login.format(folder=folder)}"
        server = stack.enter_context(serving(folder, setup.host_kind, settings=settings))
        authorized = public(identity) if setup.authorized else public(keys.path("other"))
        (folder / "authorized_keys").write_text(authorized, encoding="utf-8")
        _know(setup, keys, server)
        port = 1 if setup.path == "closed port" else server.port
        lines = [f"HostName 127.0.0.1\n  Port {port}\n  User {USER}", f"IdentityFile {identity}"]
        lines += [f"UserKnownHostsFile {folder}/known_hosts", f"GlobalKnownHostsFile {folder}/global", setup.harmless]
        lines += ["HostKeyAlias node"] if setup.known == "alias" else []
        host = {"address": "127.0.0.1", "port": port, "user": USER, "agent": setup.keys > 0}
        host |= {"identityFile": str(identity), "knownHosts": f"{folder}/known_hosts"}
        lines += stack.enter_context(_path(setup, folder, host))
        lines += [f"IdentityAgent {stack.enter_context(_agent(setup, keys, folder))}"]
        config = folder / "ssh_config"
        config.write_text("\n  ".join([f"Host {HOST}", *lines]) + "\n", encoding="utf-8")
        config.chmod(0o600)
        yield config, host


def _identity(setup: Setup, keys: Keys, folder: Path) -> Path:
    identity = keys.copy(setup.kind, folder / "id")
    if setup.form != "OPENSSH" and setup.kind != "ed25519":  # ssh reads no other form of those until 9.6
        loaded: Any = forms.load_ssh_private_key(identity.read_bytes(), None)
        form = forms.PrivateFormat.PKCS8 if setup.form == "PKCS8" else forms.PrivateFormat.TraditionalOpenSSL
        identity.write_bytes(loaded.private_bytes(forms.Encoding.PEM, form, forms.NoEncryption()))
    if setup.certificate == "broken":
        Path(f"{identity}-cert.pub").write_text("ssh-ed25519-cert-v01@openssh.com AAAA\n", encoding="utf-8")
    elif setup.certificate:
        authority = "other-ca" if setup.certificate == "untrusted" else "ca"
        keys.sign(
            identity, "-n", USER, authority=authority, validity=_PAST if setup.certificate == "expired" else _ALWAYS
        )
    return identity


def _know(setup: Setup, keys: Keys, server: Server) -> None:
    key, folder = public(server.host_key), server.folder
    right, authority = f"{server.name} {key}", f"@cert-authority node,[127.0.0.1]:* {public(keys.path('ca'))}"
    lines = {
        "wildcard": f"[127.0.0.?]:* {key}",
        "global": "",
        "authority": authority,
        "alias": f"node {key}",
        "unknown": f"elsewhere {key}",
        "wrong": f"{server.name} {public(keys.path('other' if setup.host_kind == 'ed25519' else setup.host_kind))}",
        "revoked": f"@revoked * {key}\n{right}",
    }
    server.know(lines.get(setup.known, right))
    (folder / "global").write_text(f"{right}\n" if setup.known == "global" else "", encoding="utf-8")
    if setup.known == "hashed":
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", folder / "known_hosts"], check=True, capture_output=True)


@contextmanager
def _path(setup: Setup, folder: Path, host: dict[str, Any]) -> Iterator[list[str]]:
    """Lines of ssh_config; sets proxyJump of ``host``."""
    if setup.path == "jump":
        with serving(folder / "jump") as jump:
            text = (folder / "known_hosts").read_text(encoding="utf-8")
            (folder / "known_hosts").write_text(f"{text}{jump.name} {public(jump.host_key)}\n", encoding="utf-8")
            with (jump.folder / "authorized_keys").open("a", encoding="utf-8") as file:
                file.write(public(folder / "id") + "\n")
            host["proxyJump"] = [f"{USER}@127.0.0.1:{jump.port}"]
            own = f"IdentityFile {folder}/id\n  UserKnownHostsFile {folder}/known_hosts\n  IdentityAgent none\n"
            bastion = f"Host bastion\n  HostName 127.0.0.1\n  Port {jump.port}\n  User {USER}\n  {own}"
            (folder / "bastion").write_text(bastion, encoding="utf-8")
            yield ["ProxyJump bastion", f"Match all\n  Include {folder}/bastion"]
        return
    relay = f"{sys.executable} {folder}/relay.py %h %p --token {SECRET}"
    failing = f"sh -c 'echo no such target >&2; exit 1' --token {SECRET}"
    yield {"relay": [f"ProxyCommand {relay}"], "broken relay": [f"ProxyCommand {failing}"]}.get(setup.path, [])


@contextmanager
def _agent(setup: Setup, keys: Keys, folder: Path) -> Iterator[str]:
    """The socket of an agent, also for paramiko."""
    if not setup.keys:
        yield "none"
        return
    with agent(folder / "agent", keys.path("agent-0")) as path:
        for number in range(1, setup.keys):
            env = {"SSH_AUTH_SOCK": str(path)}
            subprocess.run(["ssh-add", "-q", keys.path(f"agent-{number}")], env=env, check=True)
        yield str(path)


def by_ssh(config: Path) -> Answer:
    """`ssh HOST true`, without questions."""
    options = ("BatchMode=yes", "StrictHostKeyChecking=yes", "RequestTTY=no", "RemoteCommand=none")
    argv = ["ssh", "-F", str(config), *(f"-o{option}" for option in options)]
    done = subprocess.run(
        [*argv, HOST, "true"], capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL
    )
    return Answer("" if done.returncode == 0 else done.stderr or f"exit code {done.returncode}")


def by_openssh(config: Path) -> Answer:
    return _run(openssh_host(config))


def by_paramiko(config: Path, host: dict[str, Any]) -> Answer:
    os.environ["SSH_AUTH_SOCK"] = str(config.with_name("agent"))
    return _run(
        host_with(
            {key: host[key] for key in ("address", "port")},
            **{key: host[key] for key in host.keys() - {"address", "port"}},
        )
    )


def _run(context: Any) -> Answer:
    try:
        with closing(transport_of(context).open_session(context)) as session:
            outcome = session.run(HostCommand(("true",), sudo=False))
    except NodefallError as error:
        return Answer(f"{error.message} ({error.hint})")
    if outcome.delivery is Delivery.ANSWERED:
        return Answer("" if outcome.exit == 0 else f"exit code {outcome.exit}")
    return Answer(outcome.error)
