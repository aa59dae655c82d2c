from __future__ import annotations

import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from chaos.core.command import Delivery, HostCommand
from chaos.core.errors import Refused, Unreachable
from chaos.core.text import printable
from chaos.engine.observations import LocalIdentity
from chaos.machines.sessions.settings import HostSettings
from chaos.machines.transports.channel_io import ChannelProcess
from chaos.machines.transports.connection import close_quietly
from chaos.machines.transports.ssh import SshSession, open_session
from tests.kit.preflightkit import host, messages, observed
from tests.kit.processes import free_port
from tests.kit.sshd import USER, Server, agent, keygen, public, serving


def command(*argv: str, stdin: str = "", timeout: float = 30.0) -> HostCommand:
    return HostCommand(argv, stdin=stdin, timeout=timeout)


def test_one_connection_serves_many_commands_at_once(server: Server, session: SshSession) -> None:
    before = session.connect()
    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(lambda n: session.run(command("sh", "-c", f"sleep 0.1; echo {n}")), range(20)))
    assert [(o.delivery, o.stdout) for o in outcomes] == [(Delivery.ANSWERED, f"{n}\n") for n in range(20)]
    assert session.connect() is before


@pytest.mark.parametrize(
    ("seconds", "known"), [(0.3, {Delivery.ANSWERED}), (4, {Delivery.ANSWERED, Delivery.NOT_SENT})]
)
def test_rejected_channels_do_not_close_the_connection(
    server: Server, monkeypatch: pytest.MonkeyPatch, seconds: float, known: set[str]
) -> None:
    monkeypatch.setattr("chaos.machines.transports.ssh.MAX_CHANNELS", 20)  # twice what sshd opens
    session = open_session(server.settings())
    before = session.connect()
    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(lambda _: session.run(command("sleep", str(seconds))), range(20)))
    assert {o.delivery for o in outcomes} == known, [o.error for o in outcomes]
    assert all("more channels" in o.error for o in outcomes if o.delivery == Delivery.NOT_SENT)
    assert session.connect() is before
    session.close()


def test_nagle_is_off(session: SshSession) -> None:
    sock = session.connect().transport.sock
    assert isinstance(sock, socket.socket)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_a_connection_that_broke_while_idle_is_replaced(server: Server, session: SshSession) -> None:
    assert session.run(command("true")).exit == 0
    server.cut()
    assert session.run(command("true")).exit == 0


def test_a_lost_connection_logs_nothing(
    server: Server, session: SshSession, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO):
        server.cut()
        session.run(command("true"))
    assert [r for r in caplog.records if r.name.startswith("paramiko")] == []
    assert "Traceback" not in capfd.readouterr().err


def test_not_sent_without_a_server(server: Server) -> None:
    port = free_port()
    outcome = SshSession(server.settings(port=port)).run(command("true"))
    assert outcome.delivery == Delivery.NOT_SENT
    assert "refused" in outcome.error
    with pytest.raises(Unreachable, match="Connection refused"):
        open_session(server.settings(port=port))


def test_a_silent_server_times_out(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = monotonic()
        with pytest.raises(Unreachable, match="failed the SSH handshake"):
            open_session(server.settings(port=silent.getsockname()[1], connect_timeout=0.5))
        assert monotonic() - started < 20


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_kinds_of_keys(server: Server, tmp_path: Path, kind: str) -> None:
    key = keygen(tmp_path / "key", kind)
    (server.folder / "authorized_keys").write_text(public(key) + "\n", encoding="utf-8")
    session = open_session(server.settings(identity_file=key))
    assert session.run(command("true")).exit == 0
    session.close()


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_an_encrypted_key_is_refused(server: Server, tmp_path: Path, kind: str) -> None:
    key = keygen(tmp_path / "key", kind, "passphrase")
    with pytest.raises(Refused, match="is encrypted") as caught:
        open_session(server.settings(identity_file=key))
    assert "ssh-add" in caught.value.hint


def test_bad_identity_files(server: Server, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        open_session(server.settings(identity_file=tmp_path / "none"))
    (tmp_path / "junk").write_text("junk")
    (tmp_path / "junk").chmod(0o640)
    with pytest.raises(Refused, match="other users may read this private key") as caught:
        open_session(server.settings(identity_file=tmp_path / "junk"))
    assert caught.value.hint == f"chmod 600 {tmp_path}/junk"
    (tmp_path / "junk").chmod(0o600)
    with pytest.raises(Refused, match="cannot be used as a private key"):
        open_session(server.settings(identity_file=tmp_path / "junk"))
    (tmp_path / "junk").write_text("PuTTY-User-Key-File-3: ssh-ed25519\n")
    with pytest.raises(Refused, match="a key of PuTTY, which `puttygen"):
        open_session(server.settings(identity_file=tmp_path / "junk"))


def test_a_key_that_is_not_authorized(server: Server, tmp_path: Path) -> None:
    key = keygen(tmp_path / "other")
    with pytest.raises(Unreachable, match=f"rejected the login of {USER}; offered: .*other"):
        open_session(server.settings(identity_file=key))
    with pytest.raises(Unreachable, match="offered: no key at all"):
        open_session(server.settings(identity_file=None))


def test_keys_of_the_agent(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with agent(tmp_path / "agent.sock", server.folder / "user") as path:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        session = open_session(server.settings(identity_file=None, agent=True))
        assert session.run(command("true")).exit == 0
        session.close()
        with pytest.raises(Unreachable, match="no key at all"):
            open_session(server.settings(identity_file=None, agent=False))


def test_ipv6(tmp_path: Path) -> None:
    try:
        with serving(tmp_path, address="::1") as server:
            session = open_session(server.settings(address="::1"))
            assert session.run(command("true")).exit == 0
            session.close()
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")


def test_two_hops(server: Server, tmp_path: Path) -> None:
    with serving(tmp_path / "jump") as first, serving(tmp_path / "jump2") as second:
        session = open_session(server.settings(jumps=(first.settings(name="first"), second.settings(name="second"))))
        assert session.run(command("printf", "%s", "through")).stdout == "through"
        first.cut()
        assert session.run(command("true")).exit == 0  # all hops are opened again
        session.close()
        second.know("")
        with pytest.raises(Refused, match=r"host key of second") as caught:
            open_session(server.settings(jumps=(first.settings(name="first"), second.settings(name="second"))))
        assert (
            f"ssh ssh://{USER}@127.0.0.1:{first.port} ssh-keyscan -p {second.port} 127.0.0.1 >> " in caught.value.hint
        )


class Dead:
    """A channel or transport whose connection breaks while it is closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1
        raise EOFError


def test_a_connection_that_breaks_while_it_is_closed() -> None:
    inner, outer, released = Dead(), Dead(), []
    with ExitStack() as stack:
        stack.callback(close_quietly, inner.close)
        stack.callback(close_quietly, outer.close)
    assert (inner.closed, outer.closed) == (1, 1)
    channel: Any = Dead()
    unused: Any = None
    remote = ChannelProcess(channel, unused, "", 0.0, lambda: released.append(True))
    remote.close()
    remote.close()
    assert (channel.closed, released) == (1, [True])


def test_a_hop_that_cannot_reach_the_host(server: Server) -> None:
    port = free_port()
    with pytest.raises(Unreachable, match="through its jump host"):
        open_session(server.settings(port=port, jumps=(server.settings(name="jump"),)))


def test_armed_but_disconnected_is_not_sent(server: Server, session: SshSession, tmp_path: Path) -> None:
    armed = session.arm(command("touch", str(tmp_path / "mark")))
    transport = session.connect().transport
    server.cut()
    transport.join(10)
    assert armed.wait().delivery == Delivery.NOT_SENT
    assert list(tmp_path.iterdir()) == []


SUDO_REFUSALS = [
    ("sudo: a password is required", 1),
    ("sudo: Ein Passwort ist notwendig", 1),
    ("sudo: 需要密码", 1),
    ("sudo: interactive authentication is required", 1),  # of sudo-rs, as the next two
    ("sudo: I'm sorry chaos. I'm afraid I can't do that", 1),
    ("sudo: Sorry, user chaos may not run /bin/sh on w1.", 1),
    ("", 1),
    ("sh: 1: sudo: not found", 127),
]


@pytest.mark.parametrize(("text", "code"), SUDO_REFUSALS)
def test_a_refusal_of_sudo_is_not_started_in_any_language(
    session: SshSession, tmp_path: Path, text: str, code: int
) -> None:
    """By the start mark, which is missing, and not by the words of sudo."""
    sudo = tmp_path / "sudo"
    sudo.write_text(f'#!/bin/sh\nprintf "%s\\n" "{text}" >&2\nexit {code}\n', encoding="utf-8")
    sudo.chmod(0o755)
    _pretend_a_login(session, str(sudo))
    ran = session.run(command("touch", str(tmp_path / "mark")))
    assert (ran.delivery, ran.exit) == (Delivery.NOT_SENT, None)
    hint = "install it, or log in as root" if code == 127 else "`chaos ALL=(root) NOPASSWD: ALL` in /etc/sudoers.d"
    assert printable(text) in ran.error  # redacted, if another test has made one of its words a secret
    assert hint in ran.error
    with pytest.raises(Refused, match="sudo") as caught:
        session.arm(command("touch", str(tmp_path / "mark")))
    assert hint in caught.value.hint
    assert not (tmp_path / "mark").exists()
    assert session.run(HostCommand(("true",), sudo=False)).exit == 0


@pytest.mark.parametrize("code", [1, 127])
def test_a_command_that_speaks_as_sudo_does_has_run(session: SshSession, tmp_path: Path, code: int) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\necho "We trust you have received the usual lecture." >&2\nshift 2; exec "$@"\n')
    sudo.chmod(0o755)
    _pretend_a_login(session, str(sudo))
    ran = session.run(command("sh", "-c", f"echo 'sudo: a password is required' >&2; exit {code}"))
    assert (ran.delivery, ran.exit, ran.stderr) == (Delivery.ANSWERED, code, "sudo: a password is required\n")


def _pretend_a_login(session: SshSession, sudo: str) -> None:
    """The prefix is added for any login but root, of which the settings pretend one."""
    session.connect()
    session.settings = PretendedSettings(session.settings, sudo)  # type: ignore[assignment]


class PretendedSettings:
    """Settings of another login, whose sudo is a program of ours."""

    def __init__(self, settings: HostSettings, sudo: str) -> None:
        self._settings, self.user, self.sudo_prefix = settings, "chaos", (sudo, "-n", "--")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._settings, name)


def test_a_host_that_is_this_machine_is_refused(session: SshSession) -> None:
    machine_id = Path("/etc/machine-id")
    if not machine_id.exists():
        pytest.skip("this machine has no ID")
    read = session.run(command("cat", "/etc/machine-id")).stdout.strip()
    observations = observed(host(machine_id=read), local_identity=LocalIdentity(machine_id.read_text()))
    ((severity, _, message),) = messages("self-protection", observations)
    assert severity == "refusal"
    assert "the machine that nodefall runs on" in message


def test_a_closed_session_leaves_no_thread(server: Server) -> None:
    session = open_session(server.settings())
    transport = session.connect().transport
    session.close()
    transport.join(10)
    assert transport not in threading.enumerate()
