"""A real OpenSSH server of our own, on loopback, with keys and configuration in a temporary directory."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.machines.sessions.settings import HostSettings
from tests.kit.processes import free_port, until

SSHD = Path("/usr/sbin/sshd")
USER = pwd.getpwuid(os.getuid()).pw_name


def keygen(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A new key pair; returns the private half."""
    size = ["-b", "2048"] if kind == "rsa" else []
    subprocess.run(["ssh-keygen", "-q", "-t", kind, *size, "-N", passphrase, "-C", "test", "-f", str(path)], check=True)
    return path


def public(path: Path) -> str:
    """Type and key of the public half."""
    return " ".join(Path(f"{path}.pub").read_text(encoding="utf-8").split()[:2])


@dataclass
class Server:
    port: int
    folder: Path
    host_key: Path
    process: subprocess.Popen[str]

    @property
    def name(self) -> str:
        return f"[127.0.0.1]:{self.port}"

    def settings(self, **changes: object) -> HostSettings:
        """Settings that reach this server."""
        base = HostSettings(
            name="here",
            address="127.0.0.1",
            user=USER,
            port=self.port,
            known_hosts=self.folder / "known_hosts",
            identity_file=self.folder / "user",
            agent=False,
            connect_timeout=10.0,
        )
        return replace(base, **changes)  # type: ignore[arg-type]

    def know(self, line: str) -> None:
        """Replace known_hosts."""
        (self.folder / "known_hosts").write_text(line + "\n", encoding="utf-8")

    def connections(self) -> list[int]:
        """Ids of the processes that serve a connection: children of ours, and theirs."""
        found: list[int] = []
        parents = [self.process.pid]
        while parents:
            parent = parents.pop()
            try:
                children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8").split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            found += [int(c) for c in children]
            parents += [int(c) for c in children]
        return found

    def cut(self) -> None:
        """Kill what serves our connections (the server itself stays); each is a descendant of our own child."""
        for pid in self.connections():
            with suppress(FileNotFoundError, ProcessLookupError):  # it ended by itself meanwhile
                if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").startswith("sshd"):
                    os.kill(pid, signal.SIGKILL)


# HOME: a login shell runs what its user keeps there, which may take a second and is none of ours.
CONFIG = """
ListenAddress {address}
Port {port}
HostKey {host_key}
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
AllowTcpForwarding yes
LogLevel INFO
MaxStartups 100
SetEnv HOME={folder}
"""


@contextmanager
def serving(
    folder: Path,
    kind: str = "ed25519",
    address: str = "127.0.0.1",
    more_kinds: tuple[str, ...] = (),
    settings: str = "",
    more_settings: str = "",
    prefix: tuple[str, ...] = (),
) -> Iterator[Server]:
    """Start sshd in the foreground and end it by its process id. Keys of ``more_kinds`` are ``host-KIND``.

    ``settings``: lines of its configuration before the others; ``more_settings`` after them. ``prefix``: the program
    that becomes sshd.
    """
    folder.mkdir(parents=True, exist_ok=True)
    host_key, user = folder / "host", folder / "user"
    if not host_key.exists():
        keygen(host_key, kind)
        keygen(user)
    (folder / "authorized_keys").write_text(public(user) + "\n", encoding="utf-8")
    port = free_port(address)
    config = folder / "sshd_config"
    text = CONFIG.format(address=address, port=port, host_key=host_key, folder=folder)
    more = "".join(f"HostKey {keygen(folder / f'host-{each}', each)}\n" for each in more_kinds)
    config.write_text(settings + text + more + more_settings, encoding="utf-8")
    Path("/run/sshd").mkdir(exist_ok=True)
    process = subprocess.Popen([*prefix, SSHD, "-D", "-e", "-f", str(config)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "Server listening" in line:
            break
    else:
        raise AssertionError("".join(lines))
    drain = threading.Thread(target=process.stderr.read, daemon=True)
    drain.start()
    server = Server(port, folder, host_key, process)
    name = f"[{address}]:{port}"
    server.know(f"{name} {public(host_key)}")
    try:
        yield server
    finally:
        children = server.connections()
        process.terminate()
        process.wait(10)
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        drain.join(10)
        process.stderr.close()


@contextmanager
def agent(path: Path, key: Path) -> Iterator[Path]:
    """An agent of our own that holds one key."""
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    try:
        adding = ["ssh-add", "-q", str(key)]
        # It binds the socket before it listens on it.
        until(lambda: subprocess.run(adding, env={"SSH_AUTH_SOCK": str(path)}, check=False).returncode == 0)
        yield path
    finally:
        process.terminate()
        process.wait(10)
