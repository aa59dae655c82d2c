from __future__ import annotations

import base64
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.command import HostCommand
from chaos.core.errors import Refused
from chaos.machines.transports.host_keys import (
    fingerprint,
    known_hosts_name,
    known_key_types,
    parse_known_hosts,
    scan_command,
    verify,
)
from chaos.machines.transports.settings import HostSettings
from chaos.machines.transports.ssh import open_session
from tests.kit.sshd import Server, keygen, public

A, B = base64.b64encode(b"key a").decode(), base64.b64encode(b"key b").decode()


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
    with pytest.raises(Refused, match="cannot be read: Is a directory"):
        open_session(server.settings(known_hosts=tmp_path))
