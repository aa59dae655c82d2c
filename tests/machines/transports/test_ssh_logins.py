"""Logins by paramiko on a real sshd: certificates, formats of keys, agents with many keys, algorithms."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.core.command import HostCommand
from chaos.core.errors import Unreachable
from chaos.machines.sessions.settings import HostSettings
from chaos.machines.transports.ssh import open_session
from tests.kit.sshd import SSHD, Server, agent, keygen, public, serving

TRUE = HostCommand(("true",), sudo=False)


@contextmanager
def server_with(folder: Path, settings: str, kind: str = "ed25519") -> Iterator[Server]:
    if not SSHD.exists():
        pytest.skip("openssh-server is not installed")
    with serving(folder, kind, settings=settings) as found:
        yield found


def log_in(settings: HostSettings) -> None:
    session = open_session(settings)
    try:
        assert session.run(TRUE).exit == 0
    finally:
        session.close()


def sign(authority: Path, key: Path, validity: str = "-1d:20991231235959Z") -> None:
    """Write the certificate of a user beside the key."""
    names = ["-I", "user", "-n", "root,daemon"]
    subprocess.run(["ssh-keygen", "-q", "-s", authority, *names, "-V", validity, f"{key}.pub"], check=True)


@pytest.mark.parametrize(
    ("trusts", "validity"),
    [(False, "-1d:20991231235959Z"), (True, "-1d:20991231235959Z"), (True, "-2d:-1d"), (True, "always:forever")],
    ids=["untrusted", "trusted", "expired", "forever"],
)
@pytest.mark.parametrize("authorized", [True, False])
def test_a_certificate_beside_the_key_does_not_hide_it(
    tmp_path: Path, trusts: bool, validity: str, authorized: bool
) -> None:
    authority, key = keygen(tmp_path / "ca"), keygen(tmp_path / "id")
    sign(authority, key, validity)
    settings = f"TrustedUserCAKeys {authority}.pub\n" if trusts else ""
    with server_with(tmp_path / "sshd", settings) as server:
        (server.folder / "authorized_keys").write_text(public(key) if authorized else "", encoding="utf-8")
        expected = subprocess.run(
            [*_SSH, f"UserKnownHostsFile={server.folder}/known_hosts", "-i", key, *_port(server), "127.0.0.1", "true"],
            check=False,
            capture_output=True,
        ).returncode
        assert (expected == 0) is (authorized or (trusts and validity != "-2d:-1d"))
        if expected == 0:
            log_in(server.settings(identity_file=key))
            return
        with pytest.raises(Unreachable) as caught:
            log_in(server.settings(identity_file=key))
        until = "a certificate valid until 20" if validity != "always:forever" else "a certificate that does not expire"
        assert f"offered: {key}-cert.pub ({until}" in caught.value.message
        assert caught.value.message.endswith(f", {key}")


_SSH = ("ssh", "-F", "none", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oIdentityAgent=none", "-o")


def _port(server: Server) -> tuple[str, str]:
    return "-p", str(server.port)


def test_a_certificate_that_is_none_is_named_and_the_key_is_offered(tmp_path: Path) -> None:
    with server_with(tmp_path, "") as server:
        certificate = server.folder / "user-cert.pub"
        certificate.write_text("ssh-ed25519-cert-v01@openssh.com AAAA\n", encoding="utf-8")
        log_in(server.settings())
        (server.folder / "authorized_keys").write_text("", encoding="utf-8")
        with pytest.raises(Unreachable, match=r"user \(without .*user-cert.pub, which cannot be used: "):
            log_in(server.settings())


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
@pytest.mark.parametrize("form", ["PKCS8", "PEM", "RFC4716"])
def test_private_keys_in_every_format_of_ssh_keygen(tmp_path: Path, kind: str, form: str) -> None:
    key = keygen(tmp_path / "key", kind)
    if kind == "ed25519" and form != "RFC4716":
        if form == "PEM":
            return  # there is none
        _to_pkcs8(key)
    else:
        subprocess.run(["ssh-keygen", "-q", "-p", "-N", "", "-m", form, "-f", key], check=True)
    header = {"PKCS8": "BEGIN PRIVATE KEY", "PEM": f"BEGIN {'EC' if kind == 'ecdsa' else 'RSA'} PRIVATE KEY"}
    assert header.get(form, "BEGIN OPENSSH PRIVATE KEY") in key.read_text(encoding="utf-8")
    with server_with(tmp_path / "sshd", "") as server:
        (server.folder / "authorized_keys").write_text(public(key) + "\n", encoding="utf-8")
        log_in(server.settings(identity_file=key))


def _to_pkcs8(key: Path) -> None:
    """As `openssl genpkey -algorithm ed25519` writes it: ssh-keygen cannot."""
    from cryptography.hazmat.primitives import serialization as forms  # noqa: PLC0415

    loaded = forms.load_ssh_private_key(key.read_bytes(), None)
    text = loaded.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    key.write_bytes(text)


def test_too_many_keys_in_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host has closed the connection before the right key: no key is missing on the host."""
    with server_with(tmp_path / "sshd", "MaxAuthTries 2\n") as server, agent(tmp_path / "s", keygen(tmp_path / "0")):
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "s"))
        for key in (*(keygen(tmp_path / str(number)) for number in range(1, 5)), server.folder / "user"):
            subprocess.run(["ssh-add", "-q", key], check=True)
        with pytest.raises(Unreachable) as caught:
            log_in(server.settings(identity_file=None, agent=True))
        assert "closed the connection during login" in caught.value.message
        assert "Too many authentication failures" in caught.value.message
        assert "MaxAuthTries" in caught.value.hint
        assert "agent: false" in caught.value.hint
        log_in(server.settings(agent=True))  # the file is offered first


@pytest.mark.parametrize(
    ("settings", "kind", "named"),
    [
        ("KexAlgorithms sntrup761x25519-sha512@openssh.com\n", "ed25519", "no key exchange .*sntrup761x25519"),
        ("Ciphers chacha20-poly1305@openssh.com\n", "ed25519", "no cipher .*chacha20-poly1305@openssh.com"),
        ("HostKeyAlgorithms ssh-rsa\n", "rsa", r"no type of host key .*\(ssh-rsa\)"),
        ("MACs umac-64@openssh.com\nCiphers aes128-ctr\n", "ed25519", "no MAC .*umac-64@openssh.com"),
    ],
)
def test_algorithms_that_paramiko_lacks_are_named(tmp_path: Path, settings: str, kind: str, named: str) -> None:
    with server_with(tmp_path, settings, kind) as server:
        with pytest.raises(Unreachable, match=named) as caught:
            log_in(server.settings())
        assert "transport: openssh" in caught.value.hint


def test_only_signatures_that_paramiko_lacks(tmp_path: Path) -> None:
    with server_with(tmp_path / "sshd", "PubkeyAcceptedAlgorithms ssh-rsa\n") as server:
        key = keygen(tmp_path / "rsa", "rsa")
        (server.folder / "authorized_keys").write_text(public(key), encoding="utf-8")
        with pytest.raises(Unreachable, match=r"ssh-rsa|rejected the login"):
            log_in(server.settings(identity_file=key))


def test_a_banner_is_quoted_beside_the_keys(tmp_path: Path) -> None:
    (tmp_path / "banner").write_text("Logins of daemon end with the year.\n", encoding="utf-8")
    with server_with(tmp_path / "sshd", f"Banner {tmp_path}/banner\n") as server:
        log_in(server.settings())
        with pytest.raises(Unreachable, match=r"rejected the login .*it said 'Logins of daemon end with the year\.'"):
            log_in(server.settings(identity_file=keygen(tmp_path / "other")))


def test_a_host_that_asks_for_more_than_a_key(tmp_path: Path) -> None:
    methods = "AuthenticationMethods publickey,password\nPasswordAuthentication yes\n"
    with server_with(tmp_path / "sshd", methods) as server, pytest.raises(Unreachable) as caught:
        log_in(server.settings())
    assert "also requires password" in caught.value.message
    assert "second factor" in caught.value.hint
    with server_with(tmp_path / "none", "PubkeyAuthentication no\nPasswordAuthentication yes\n") as server:
        with pytest.raises(Unreachable, match="requires password") as caught:
            log_in(server.settings())
        assert "authorized_keys" not in caught.value.hint


def test_an_authority_of_hosts_is_named(tmp_path: Path) -> None:
    with server_with(tmp_path, "") as server:
        server.know(f"@cert-authority * {public(keygen(tmp_path / 'ca'))}")
        with pytest.raises(Exception, match="an authority for it is known") as caught:
            log_in(server.settings())
        assert "transport: openssh" in getattr(caught.value, "hint", "")
