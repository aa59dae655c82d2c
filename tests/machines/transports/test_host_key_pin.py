"""The host key of a run: every later connection presents the same one, or nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.core.command import Delivery, HostCommand
from chaos.core.errors import Refused, Unreachable
from chaos.machines.transports.containers import Container
from chaos.machines.transports.docker import DockerSession
from chaos.machines.transports.host_keys import HostKeyPin
from chaos.machines.transports.ssh import SshSession, open_session
from tests.kit.proxy import Proxy
from tests.kit.sshd import SSHD, Server, public, serving

TRUE = HostCommand(("true",), sudo=False)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Server]:
    """Another machine, which accepts the same login."""
    if not SSHD.exists():
        pytest.skip("openssh-server is not installed")
    with serving(tmp_path / "other") as found:
        yield found


@pytest.fixture
def proxy(server: Server, other: Server) -> Iterator[Proxy]:
    """An address that leads to ``server``; known_hosts has the keys of both machines for it."""
    made = Proxy(("127.0.0.1", server.port))
    (other.folder / "authorized_keys").write_text(public(server.folder / "user") + "\n")
    server.know("\n".join(f"[127.0.0.1]:{made.port} {public(each.host_key)}" for each in (server, other)))
    yield made
    made.close()
    server.know(f"{server.name} {public(server.host_key)}")


def test_an_address_that_changes_hands(server: Server, other: Server, proxy: Proxy, tmp_path: Path) -> None:
    touch = HostCommand(("touch", str(tmp_path / "sent")), sudo=False)
    pin = HostKeyPin()
    session = open_session(server.settings(port=proxy.port), pin)
    first = pin.key
    assert first.startswith("ssh-ed25519 SHA256:")
    proxy.redirect(("127.0.0.1", other.port))
    outcome = session.run(touch)
    assert (outcome.delivery, (tmp_path / "sent").exists()) == (Delivery.NOT_SENT, False)
    assert "has changed hands: it presents the host key ssh-ed25519 SHA256:" in outcome.error
    assert f"but the machine of this run has {first}" in outcome.error
    with pytest.raises(Refused, match="has changed hands"):
        session.arm(touch)
    proxy.redirect(("127.0.0.1", server.port))
    assert (session.run(touch).exit, (tmp_path / "sent").exists()) == (0, True)
    assert pin.key == first
    session.close()


def test_a_key_of_an_earlier_process(server: Server, other: Server, proxy: Proxy) -> None:
    seen = HostKeyPin()
    open_session(server.settings(port=proxy.port), seen).close()
    proxy.redirect(("127.0.0.1", other.port))
    pin = HostKeyPin()
    pin.expect(seen.key)
    with pytest.raises(Refused, match="has changed hands"):
        open_session(server.settings(port=proxy.port), pin)
    assert pin.key == seen.key


def test_a_jump_host_that_leads_elsewhere(server: Server, other: Server, proxy: Proxy) -> None:
    """The key is verified from end to end; that of the jump host itself is not of the run."""
    pin = HostKeyPin()
    jump = other.settings(name="jump", identity_file=server.folder / "user")
    (other.folder / "known_hosts").write_text(f"{other.name} {public(other.host_key)}\n")
    session = open_session(server.settings(port=proxy.port, jumps=(jump,)), pin)
    seen = HostKeyPin()
    open_session(server.settings(port=proxy.port), seen).close()
    assert pin.key == seen.key
    proxy.redirect(("127.0.0.1", other.port))
    outcome = session.run(TRUE)
    assert outcome.delivery == Delivery.NOT_SENT
    assert "has changed hands" in outcome.error
    session.close()


@pytest.mark.parametrize("first", ["ecdsa", "rsa"])
def test_the_pinned_type_is_requested_from_a_host_with_several(tmp_path: Path, first: str) -> None:
    """Also when known_hosts lists another type first by now."""
    if not SSHD.exists():
        pytest.skip("openssh-server is not installed")
    with serving(tmp_path, more_kinds=(first,)) as server:
        keys = {"ed25519": server.host_key, first: server.folder / f"host-{first}"}
        lines = {kind: f"{server.name} {public(path)}" for kind, path in keys.items()}
        server.know(lines[first])
        pin = HostKeyPin()
        open_session(server.settings(), pin).close()
        server.know(f"{lines['ed25519']}\n{lines[first]}")
        session = SshSession(server.settings(), pin)
        assert session.run(TRUE).exit == 0
        session.close()
        server.know(lines["ed25519"])
        with pytest.raises(Refused, match=r"is not in .*known_hosts: .*; only ssh-ed25519 is known"):
            open_session(server.settings(), pin)


def test_a_pin_is_set_once() -> None:
    pin = HostKeyPin()
    assert (pin.key, pin.type) == ("", "")
    pin.expect("ssh-rsa SHA256:a")
    pin.expect("ssh-rsa SHA256:b")
    pin.verify("ssh-rsa SHA256:a", "host")
    assert (pin.key, pin.type) == ("ssh-rsa SHA256:a", "ssh-rsa")
    with pytest.raises(Refused, match="host has changed hands") as caught:
        pin.verify("ssh-rsa SHA256:b", "host")
    assert "a machine that was reinstalled is another one" in caught.value.hint


def test_a_container_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recreated between two processes: the first has recorded its ID, and nothing is executed in the other one."""
    program = tmp_path / "docker"
    calls = tmp_path / "calls"
    program.write_text(
        f'#!/bin/sh\necho "$1" >> {calls}\n'
        'printf \'{"id":"%s","status":"exited","policy":"no","retries":0}\' "$(cat ' + str(tmp_path / "id") + ')"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "id").write_text("a" * 64)
    pin = HostKeyPin()
    with pytest.raises(Unreachable, match="does not run"):
        DockerSession(Container("node", "docker"), pin=pin).arm(TRUE)
    assert pin.key == f"container {'a' * 64}"
    (tmp_path / "id").write_text("b" * 64)
    with pytest.raises(Refused, match="docker container node has changed hands"):
        DockerSession(Container("node", "docker"), pin=pin).arm(TRUE)
    assert calls.read_text().split() == ["inspect", "inspect"]


@pytest.mark.parametrize("other", ["ssh-ed25519 SHA256:x", "container 0a"])
def test_a_key_of_another_transport_is_no_machine_that_changed(other: str) -> None:
    pin = HostKeyPin()
    pin.expect("certificate SHA256:x")
    with pytest.raises(Refused, match="the key of another transport") as caught:
        pin.verify(other, "win-1")
    assert "transport" in caught.value.hint
