"""The keys that known_hosts has of a host: the same as those that a connection accepts.

The host key of a run: every later connection presents the same one, or nothing is sent.
"""

from __future__ import annotations

import base64
import hmac
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.command import Delivery, HostCommand
from chaos.core.errors import Refused, Unreachable
from chaos.machines.sessions.host_keys import (
    HostKeyPin,
    KnownKeys,
    fingerprint,
    known_hosts_name,
    known_key_types,
    parse_known_hosts,
    scan_command,
    verify,
)
from chaos.machines.sessions.settings import HostSettings
from chaos.machines.transports.docker import Container, DockerSession
from chaos.machines.transports.ssh import SshSession, open_session
from tests.kit.proxy import Proxy
from tests.kit.sshd import SSHD, Server, keygen, public, serving

A, B = base64.b64encode(b"key a").decode(), base64.b64encode(b"key b").decode()
FIRST, SECOND = (base64.b64encode(text).decode() for text in (b"key a", b"key b"))
KEY_A, KEY_B = f"ssh-ed25519 {fingerprint(b'key a')}", f"ssh-rsa {fingerprint(b'key b')}"
_SALT = b"0123456789abcdefghij"
HASHED = "|".join(
    ["", "1", *(base64.b64encode(part).decode() for part in (_SALT, hmac.new(_SALT, b"h1", "sha1").digest()))]
)
TRUE = HostCommand(("true",), sudo=False)


@dataclass
class Fake:
    name: str
    data: bytes

    def get_name(self) -> str:
        return self.name

    def asbytes(self) -> bytes:
        return self.data


def host(address: str = "10.0.0.1", port: int = 22) -> HostSettings:
    return HostSettings("w1", address, "chaos", Path("/k/known hosts"), port)


@pytest.mark.parametrize(
    ("known", "address", "port", "error"),
    [
        (f"10.0.0.1 ssh-ed25519 {A}", "10.0.0.1", 22, ""),
        (f"a,10.0.0.1,b\tssh-ed25519 {A} comment here", "10.0.0.1", 22, ""),
        (f"W1.Example ssh-ed25519 {A}", "w1.example", 22, ""),
        (f"w1.example ssh-ed25519 {A}", "W1.EXAMPLE", 22, ""),
        (f"[10.0.0.1]:2222 ssh-ed25519 {A}", "10.0.0.1", 2222, ""),
        (f"[fd00::7]:2222 ssh-ed25519 {A}", "FD00::7", 2222, ""),
        (f"fd00::7 ssh-ed25519 {A}", "fd00::7", 22, ""),
        (f"10.0.0.* ssh-ed25519 {A}", "10.0.0.1", 22, ""),
        (f"10.0.0.? ssh-ed25519 {A}", "10.0.0.1", 22, ""),
        (f"[10.0.0.*]:2222 ssh-ed25519 {A}", "10.0.0.1", 2222, ""),
        (f"10.0.0.1 ssh-ed25519 {B}\n10.0.0.1 ssh-ed25519 {A}", "10.0.0.1", 22, ""),
        ("", "10.0.0.1", 22, "is not in"),
        (f"# 10.0.0.1 ssh-ed25519 {A}", "10.0.0.1", 22, "is not in"),
        (f"10.0.0.1 ssh-ed25519 {A}", "10.0.0.1", 2222, "is not in"),
        (f"[10.0.0.1]:2222 ssh-ed25519 {A}", "10.0.0.1", 22, "is not in"),
        (f"10.0.0.1? ssh-ed25519 {A}", "10.0.0.1", 22, "is not in"),
        (f"10.0.0.*,!10.0.0.1 ssh-ed25519 {A}", "10.0.0.1", 22, "is not in"),
        ("10.0.0.1 ssh-ed25519 not/base64!", "10.0.0.1", 22, "is not in"),
        ("10.0.0.1 ssh-ed25519 \x80", "10.0.0.1", 22, "is not in"),
        (f"10.0.0.1 ssh-rsa {B}", "10.0.0.1", 22, "only ssh-rsa is known"),
        (f"@cert-authority 10.0.0.1 ssh-ed25519 {A}", "10.0.0.1", 22, "is not in"),
        ("|1|broken ssh-ed25519 " + A, "10.0.0.1", 22, "is not in"),
        (f"10.0.0.1 ssh-ed25519 {B}", "10.0.0.1", 22, "has changed"),
        (f"@revoked * ssh-ed25519 {A}", "10.0.0.1", 22, "is revoked"),
        (f"10.0.0.1 ssh-ed25519 {A}\n@revoked 10.0.0.1 ssh-ed25519 {A}", "10.0.0.1", 22, "is revoked"),
        (f"10.0.0.1 ssh-ed25519 {A}\n@revoked 10.0.0.1 ssh-ed25519 {B}", "10.0.0.1", 22, ""),
    ],
)
def test_known_hosts(known: str, address: str, port: int, error: str) -> None:
    def check() -> None:
        verify(parse_known_hosts(known), host(address, port), Fake("ssh-ed25519", b"key a"))

    if not error:
        check()
        return
    with pytest.raises(Refused, match=error) as caught:
        check()
    assert fingerprint(b"key a") in caught.value.message
    assert caught.value.hint


PINNED = f"ssh-ed25519 {fingerprint(b'key a')}"


@pytest.mark.parametrize(
    ("what", "known", "pinned", "follows_node", "error"),
    [
        ("known under the former address", f"10.0.0.9 ssh-ed25519 {A}", PINNED, True, ""),
        ("another machine had the address", f"10.0.0.9 ssh-ed25519 {A}\n10.0.0.1 ssh-ed25519 {B}", PINNED, True, ""),
        ("not seen before", f"10.0.0.9 ssh-ed25519 {A}", "", True, "is not in"),
        ("another key was seen before", f"10.0.0.9 ssh-ed25519 {A}", "ssh-ed25519 SHA256:b", True, "is not in"),
        ("nowhere known", f"10.0.0.9 ssh-ed25519 {B}", PINNED, True, "is not in"),
        ("an address of the inventory", f"10.0.0.9 ssh-ed25519 {A}", PINNED, False, "is not in"),
        ("revoked here", f"10.0.0.9 ssh-ed25519 {A}\n@revoked 10.0.0.1 ssh-ed25519 {A}", PINNED, True, "is revoked"),
        ("revoked there", f"10.0.0.9,b ssh-ed25519 {A}\n@revoked b ssh-ed25519 {A}", PINNED, True, "is not in"),
        ("an authority only", f"@cert-authority 10.0.0.9 ssh-ed25519 {A}", PINNED, True, "is not in"),
    ],
)
def test_the_key_of_a_node_that_has_moved(what: str, known: str, pinned: str, follows_node: bool, error: str) -> None:
    settings = replace(host(), follows_node=follows_node)
    if not error:
        verify(parse_known_hosts(known), settings, Fake("ssh-ed25519", b"key a"), (), pinned)
        return
    with pytest.raises(Refused, match=error):
        verify(parse_known_hosts(known), settings, Fake("ssh-ed25519", b"key a"), (), pinned)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for entry in parse_known_hosts(text):
        assert isinstance(entry.covers("10.0.0.1"), bool)


def test_preferred_types() -> None:
    entries = parse_known_hosts(f"h ssh-rsa {A}\nh ssh-ed25519 {B}\nh ssh-rsa {B}\n@revoked h ecdsa-sha2-nistp256 {A}")
    assert known_key_types(entries, "h") == ("ssh-rsa", "ssh-ed25519")


@pytest.mark.parametrize(
    ("via", "expected"),
    [
        ((), "ssh-keyscan -p 2222 10.0.0.1 >> '/k/known hosts'"),
        (("b1",), "ssh ssh://chaos@b1:22 ssh-keyscan -p 2222 10.0.0.1 >> '/k/known hosts'"),
        (("b1", "b2"), "ssh -J ssh://chaos@b1:22 ssh://chaos@b2:22 ssh-keyscan -p 2222 10.0.0.1 >> '/k/known hosts'"),
    ],
)
def test_scan_command(via: tuple[str, ...], expected: str) -> None:
    assert scan_command(host(port=2222), tuple(host(v) for v in via)) == expected


def mend(server: Server) -> Refused:
    """Connect and be refused, run the command of the hint, and connect again."""
    with pytest.raises(Refused) as caught:
        open_session(server.settings())
    command = caught.value.hint.partition("run: ")[2]
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    session = open_session(server.settings())
    assert session.run(HostCommand(("true",))).exit == 0
    session.close()
    return caught.value


def test_the_hint_fixes_an_unknown_key(server: Server) -> None:
    (server.folder / "known_hosts").unlink()
    refused = mend(server)
    listed = subprocess.run(
        ["ssh-keygen", "-lf", f"{server.host_key}.pub"], check=True, capture_output=True, text=True
    ).stdout
    assert listed.split()[1] in refused.message


def test_the_hint_fixes_a_changed_key(server: Server, tmp_path: Path) -> None:
    server.know(f"{server.name} {public(keygen(tmp_path / 'old'))}")
    refused = mend(server)
    assert "has changed" in refused.message
    assert f"ssh-keygen -R '{known_hosts_name(server.settings())}'" in refused.hint


def test_hashed_by_openssh(server: Server, tmp_path: Path) -> None:
    known = server.folder / "known_hosts"
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
    assert known.read_text().startswith("|1|")
    session = open_session(server.settings())
    assert session.run(HostCommand(("true",))).exit == 0
    session.close()
    known.write_text(known.read_text().replace(public(server.host_key), public(keygen(tmp_path / "other"))))
    with pytest.raises(Refused, match="has changed"):
        open_session(server.settings())


def test_revoked(server: Server) -> None:
    key = public(server.host_key)
    server.know(f"{server.name} {key}\n@revoked * {key}")
    with pytest.raises(Refused, match="is revoked"):
        open_session(server.settings())


def test_known_hosts_that_cannot_be_read(server: Server, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="not a regular file"):
        open_session(server.settings(known_hosts=tmp_path))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", set()),
        (f"h1 ssh-ed25519 {FIRST}\nh2 ssh-rsa {SECOND}", {KEY_A}),
        (f"h2,H1 ssh-ed25519 {FIRST}\nh1 ssh-rsa {SECOND}", {KEY_A, KEY_B}),
        (f"* ssh-ed25519 {FIRST}", {KEY_A}),
        (f"h?,!h1 ssh-ed25519 {FIRST}", set()),
        (f"{HASHED} ssh-rsa {SECOND}", {KEY_B}),
        (f"[h1]:2222 ssh-rsa {SECOND}", set()),
        (f"@revoked h1 ssh-rsa {SECOND}\n@cert-authority h1 ssh-rsa {SECOND}", set()),
    ],
)
def test_keys_of_a_host(text: str, keys: set[str]) -> None:
    assert KnownKeys(parse_known_hosts(text)).of("h1") == keys


NAMES = st.lists(st.sampled_from(["h1", "h2", "*", "h?", "!h1", "!*", HASHED, "[h1]:2222"]), min_size=1, max_size=3)


@given(st.lists(st.tuples(NAMES, st.sampled_from([f"ssh-ed25519 {FIRST}", f"ssh-rsa {SECOND}"])), max_size=4))
def test_the_index_agrees_with_the_entries(lines: list[tuple[list[str], str]]) -> None:
    entries = parse_known_hosts("\n".join(f"{','.join(names)} {key}" for names, key in lines))
    known = KnownKeys(entries)
    for name in ("h1", "h2", "[h1]:2222"):
        expected = {f"{entry.type} {fingerprint(entry.key)}" for entry in entries if entry.covers(name)}
        assert known.of(name) == expected


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
    assert "now leads to a different machine: it presents the host key ssh-ed25519 SHA256:" in outcome.error
    assert f"but the machine of this run has {first}" in outcome.error
    with pytest.raises(Refused, match="now leads to a different machine"):
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
    with pytest.raises(Refused, match="now leads to a different machine"):
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
    assert "now leads to a different machine" in outcome.error
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
    with pytest.raises(Refused, match="host now leads to a different machine") as caught:
        pin.verify("ssh-rsa SHA256:b", "host")
    assert "a reinstalled machine is a different one" in caught.value.hint


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
    with pytest.raises(Refused, match="docker container node now leads to a different machine"):
        DockerSession(Container("node", "docker"), pin=pin).arm(TRUE)
    assert calls.read_text().split() == ["inspect", "inspect"]


@pytest.mark.parametrize("other", ["ssh-ed25519 SHA256:x", "container 0a"])
def test_a_key_of_another_transport_is_no_machine_that_changed(other: str) -> None:
    pin = HostKeyPin()
    pin.expect("certificate SHA256:x")
    with pytest.raises(Refused, match="the key of another transport") as caught:
        pin.verify(other, "win-1")
    assert "transport" in caught.value.hint
