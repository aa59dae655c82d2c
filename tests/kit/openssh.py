"""Sessions by the ssh program to a server of tests.kit.sshd, by a configuration of their own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from chaos.core.command import HostCommand
from chaos.core.inventory import Inventory
from chaos.machines.driver import HostContext, transport_of
from chaos.machines.openssh.session import OpensshSession
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.sessions.settings import LocalUser
from tests.kit.sshd import USER, Server

HOST = "w1"
TRUE = HostCommand(("true",), sudo=False)
# A ProxyCommand: its arguments are %h and %p.
RELAY = """
import os, socket, sys, threading
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def up():
    while data := os.read(0, 65536):
        peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := peer.recv(65536):
    os.write(1, data)
"""


def ssh_config(server: Server, *lines: str, name: str = HOST) -> Path:
    """A configuration for one Host; ``lines`` come first, as ssh takes the first value of an option."""
    usual = ("HostName 127.0.0.1", f"Port {server.port}", f"User {USER}", f"IdentityFile {server.folder}/user")
    files = (f"UserKnownHostsFile {server.folder}/known_hosts", "GlobalKnownHostsFile none", "IdentityAgent none")
    path = server.folder / "ssh_config"
    path.write_text("\n  ".join([f"Host {name}", *lines, *usual, *files]) + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def openssh_host(config: Path, pin: HostKeyPin | None = None, **keys: Any) -> HostContext:
    """A host of an inventory that leaves everything to the configuration, but for ``keys``."""
    options = {"configFile": str(config), "destination": "name"}
    return host_with({"transport": "openssh", "options": options, **keys}, pin)


def host_with(keys: Mapping[str, Any], pin: HostKeyPin | None = None, **defaults: Any) -> HostContext:
    """A host of an inventory with ``defaults``."""
    document: dict[str, Any] = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "x"}}
    document |= {"cluster": {"kubeconfig": "k"}, "defaults": defaults, "hosts": {HOST: keys}}
    return HostContext(
        Inventory.model_validate(document), HOST, HOST, LocalUser("me", Path.home()), pin=pin or HostKeyPin()
    )


def openssh_session(server: Server, *lines: str, pin: HostKeyPin | None = None, **keys: Any) -> OpensshSession:
    """A connected session."""
    context = openssh_host(ssh_config(server, *lines), pin, **keys)
    session = transport_of(context).open_session(context)
    assert isinstance(session, OpensshSession)
    return session


def command(*argv: str, stdin: str = "", timeout: float = 30.0) -> HostCommand:
    return HostCommand(argv, stdin=stdin, timeout=timeout)


def open_at(server: Server, *lines: str, **keys: Any) -> None:
    """Connect, and run a command."""
    with closing(openssh_session(server, *lines, **keys)) as session:
        assert session.run(TRUE).exit == 0
