"""What a user's configuration of ssh does for nodefall, and what a host and programs between may say or attempt."""

from __future__ import annotations

import logging
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import pytest

from chaos.core.command import Delivery
from chaos.core.errors import AnotherMachine, Refused, Unreachable
from chaos.core.text import printable
from chaos.machines.driver import transport_of
from chaos.machines.sessions.host_keys import HostKeyPin
from tests.kit.openssh import HOST, RELAY, TRUE, command, host_with, open_at, openssh_host, openssh_session, ssh_config
from tests.kit.processes import has_ended, until
from tests.kit.sshd import SSHD, USER, Server, keygen, public, serving

pytestmark = [
    pytest.mark.skipif(not SSHD.exists(), reason="openssh-server is not installed"),
    pytest.mark.usefixtures("folders"),
]


# What a user may have in ssh_config, and must change nothing for nodefall.
HARMLESS = (
    ("RemoteCommand echo hello", "RequestTTY force"),
    ("ControlMaster auto", "ControlPath ~/none/%C", "ControlPersist yes"),
    ("LogLevel QUIET", "FingerprintHash md5", "VisualHostKey yes"),
    ("LocalForward 22 127.0.0.1:22", "ExitOnForwardFailure yes", "DynamicForward 22"),
    ("ForwardAgent yes", "ForwardX11 yes", "PermitLocalCommand yes", "LocalCommand exit 1"),
    ("BatchMode no", "PasswordAuthentication yes", "StrictHostKeyChecking no", "UpdateHostKeys yes"),
    ("ForkAfterAuthentication yes", "StdinNull yes", "SessionType none"),
    ("SendEnv LANG LC_*", "SetEnv A=b", "ConnectTimeout 0", "ServerAliveInterval 0"),
)


@pytest.mark.parametrize("lines", HARMLESS, ids=[lines[0].split()[0] for lines in HARMLESS])
def test_what_the_configuration_does_for_people_is_not_done(server: Server, lines: tuple[str, ...]) -> None:
    with closing(openssh_session(server, *lines)) as session:
        outcome = session.run(command("sh", "-c", "cat; echo err >&2; exit 3", stdin="in"))
        assert (outcome.exit, outcome.stdout, outcome.stderr, outcome.error) == (3, "in", "err\n", "")


def test_proxy_commands_jumps_includes_and_matches(server: Server, tmp_path: Path) -> None:
    (tmp_path / "relay.py").write_text(RELAY, encoding="utf-8")
    relay = f"{sys.executable} {tmp_path}/relay.py"
    open_at(server, f"ProxyCommand {relay} %h %p")
    included = tmp_path / "included"
    included.write_text(f'Match exec "test %n = {HOST}"\n  ProxyCommand {relay} %h %p\n', encoding="utf-8")
    with closing(openssh_session(server, f"Include {included}", "HostName 127.0.0.1")) as session:
        assert session.settings.label == f"{HOST} ({USER}@127.0.0.1:{server.port})"
        assert session.run(TRUE).exit == 0
    with serving(tmp_path / "jump") as jump:
        config = ssh_config(server, "ProxyJump bastion")
        files = f"UserKnownHostsFile {jump.folder}/known_hosts\n  IdentityFile {jump.folder}/user\n"
        text = f"Host bastion\n  HostName 127.0.0.1\n  Port {jump.port}\n  {files}"
        config.write_text(text + config.read_text(encoding="utf-8"), encoding="utf-8")
        context = openssh_host(config)
        driver = transport_of(context)
        assert [(hop.name, hop.address, hop.port) for hop in driver.jump_hosts(context)] == [
            ("bastion", "127.0.0.1", jump.port)
        ]
        with closing(driver.open_session(context)) as session:
            assert session.run(TRUE).exit == 0
        jump.know("")
        with pytest.raises(Unreachable, match="Host key verification failed"):
            driver.open_session(context)


def test_keys_of_the_inventory_precede_the_configuration(server: Server, tmp_path: Path) -> None:
    key = keygen(tmp_path / "key")
    wrong = ("User nouser", "Port 1", "ProxyJump nowhere", "UserKnownHostsFile none", f"IdentityFile {key}")
    given = {"user": USER, "port": server.port, "proxyJump": [], "agent": False}
    files = {"knownHosts": f"{server.folder}/known_hosts", "identityFile": f"{server.folder}/user"}
    open_at(server, *wrong, **given, **files, address="127.0.0.1")


def test_host_keys(server: Server, tmp_path: Path) -> None:
    pin = HostKeyPin()
    with closing(openssh_session(server, pin=pin)) as session:
        key = pin.key
        assert key.startswith("ssh-ed25519 SHA256:")
        context = openssh_host(ssh_config(server))
        assert transport_of(context).known_keys(context) == {key}
    other = keygen(tmp_path / "other")
    for line, error, text in (
        ("", Refused, "not known to ssh"),
        (f"{server.name} {public(other)}", AnotherMachine, "has changed"),
        (f"@revoked * {public(server.host_key)}\n{server.name} {public(server.host_key)}", Refused, "is revoked"),
    ):
        server.know(line)
        with pytest.raises(error, match=text) as caught:
            openssh_session(server, "StrictHostKeyChecking no", "NoHostAuthenticationForLocalhost yes")
        assert key in caught.value.message
        assert session.run(command("touch", str(tmp_path / "mark"))).delivery is Delivery.NOT_SENT
    assert not (tmp_path / "mark").exists()
    server.know(f"{server.name} {public(server.host_key)}")
    former = HostKeyPin()
    former.expect(f"ssh-ed25519 SHA256:{'x' * 43}")
    with pytest.raises(AnotherMachine, match="now leads to a different machine"):
        openssh_session(server, pin=former)


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_the_pinned_type_is_requested_from_a_host_with_several(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path, "ed25519", more_kinds=("rsa",)) as server:
        keys = {"ed25519": public(server.host_key), "rsa": public(tmp_path / "host-rsa")}
        server.know(f"{server.name} {keys[kind]}")
        pin = HostKeyPin()
        openssh_session(server, pin=pin).close()
        assert pin.type == f"ssh-{kind}"
        server.know("".join(f"{server.name} {key}\n" for key in keys.values()))
        for line in ((), ("HostKeyAlgorithms rsa-sha2-256,ssh-ed25519",)):
            openssh_session(server, *line, pin=pin).close()


def test_certificates_of_hosts_and_users(tmp_path: Path) -> None:
    authority, host, key = (keygen(tmp_path / name) for name in ("ca", "host", "id"))
    sign = ["ssh-keygen", "-q", "-s", str(authority), "-I", "x", "-V", "-1d:20991231235959Z"]
    subprocess.run([*sign, "-h", "-n", "127.0.0.1,node", f"{host}.pub"], check=True)
    subprocess.run([*sign, "-n", USER, f"{key}.pub"], check=True)
    keygen(tmp_path / "user")
    settings = f"HostCertificate {host}-cert.pub\nTrustedUserCAKeys {authority}.pub\n"
    with serving(tmp_path, settings=settings) as server:
        (tmp_path / "global").write_text(f"@cert-authority node,10.* {public(authority)}\n", encoding="utf-8")
        server.know("")
        certified = (f"CertificateFile {key}-cert.pub", f"IdentityFile {key}", "IdentitiesOnly yes")
        known = (f"GlobalKnownHostsFile {tmp_path}/global", "HostKeyAlias node")
        pin = HostKeyPin()
        (tmp_path / "authorized_keys").write_text("", encoding="utf-8")
        openssh_session(server, *certified, *known, pin=pin).close()
        assert pin.type == "ssh-ed25519"  # of the key itself, as any other connection has it
        with pytest.raises(Refused, match="not known to ssh"):
            openssh_session(server, *certified, *known[:1])


def test_programs_between_that_fail_are_quoted_and_those_that_hang_end(server: Server, tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="session-manager-plugin not found") as caught:
        openssh_session(server, "ProxyCommand sh -c 'echo session-manager-plugin not found >&2'")
    assert f"ssh -F {server.folder}/ssh_config" in caught.value.hint
    assert caught.value.hint.endswith(f"{HOST} true")
    begin, pid = monotonic(), tmp_path / "pid"
    with pytest.raises(Unreachable, match="no login within 3 s"):
        openssh_session(
            server, f"ProxyCommand sh -c 'echo $$ > {pid}; echo SSH-2.0-x; exec sleep 99'", connectTimeout="1s"
        )
    assert monotonic() - begin < 9
    until(lambda: has_ended(int(pid.read_text(encoding="utf-8"))))


def test_errors_and_logs_have_no_secret_of_a_proxy_command(
    server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "planted-7c1e"
    monkeypatch.setenv("TUNNEL_TOKEN", secret)
    errors = []
    with caplog.at_level(logging.DEBUG):
        for text in (f"false --token {secret}", f"sh -c 'exec sleep 9' --token {secret}", "false $TUNNEL_TOKEN"):
            with pytest.raises(Unreachable) as caught:
                openssh_session(server, f"ProxyCommand {text}", connectTimeout="1s")
            errors.append(f"{caught.value.message} {caught.value.hint}")
    assert secret not in "\n".join([*errors, caplog.text])
    assert len(errors) == 3


def test_a_configuration_that_ssh_rejects_and_no_ssh_at_all(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused, match=r"ssh does not accept its configuration for w1: .*line 2: .*nosuchoption"):
        openssh_session(server, "NoSuchOption yes")
    context = openssh_host(ssh_config(server))
    (server.folder / "ssh_config").chmod(0o666)
    with pytest.raises(Refused, match="any user may write this file"):
        transport_of(context).open_session(context)
    (server.folder / "ssh_config").unlink()
    with pytest.raises(Refused, match="cannot be read: No such file"):
        transport_of(context).open_session(context)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match="program ssh cannot be run: No such file") as caught:
        openssh_session(server)
    assert "openssh-client" in caught.value.hint


def test_a_configuration_that_others_may_change(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ssh looks at the files that a configuration includes, and not at the directory of its user's."""
    (tmp_path / "included").write_text("ForwardAgent no\n", encoding="utf-8")
    (tmp_path / "included").chmod(0o666)
    with pytest.raises(Refused, match=r"Bad owner or permissions on .*included"):
        openssh_session(server, f"Include {tmp_path}/included")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("", encoding="utf-8")
    (tmp_path / ".ssh").chmod(0o777)
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_dir=str(tmp_path)))
    context = host_with({"transport": "openssh"})
    with pytest.raises(Refused, match=r"\.ssh: not trusted: any user may write this directory"):
        transport_of(context).open_session(context)


@pytest.mark.parametrize(
    ("settings", "quoted"),
    [
        ("ForceCommand echo This account is closed.; exit 1\n", "This account is closed."),
        ("ForceCommand /usr/sbin/nologin\n", "This account is currently not available."),
        ("ForceCommand exit 255\n", "the host printed nothing"),
        ("ForceCommand kill -9 $$\n", "the host printed nothing"),
    ],
)
def test_a_login_that_runs_no_command_is_quoted(tmp_path: Path, settings: str, quoted: str) -> None:
    with serving(tmp_path, settings=settings) as server, closing(openssh_session(server)) as session:
        outcome = session.run(TRUE)
        assert outcome.delivery is Delivery.NOT_SENT
        assert quoted in outcome.error
        assert "ForceCommand" in outcome.error


@pytest.mark.slow
def test_a_login_that_does_not_answer_never_runs_the_command(tmp_path: Path) -> None:
    with serving(tmp_path, settings='ForceCommand echo ready; sleep 3; eval "$SSH_ORIGINAL_COMMAND"\n') as server:
        with closing(openssh_session(server, connectTimeout="1s")) as session:
            outcome = session.run(command("touch", str(tmp_path / "mark")))
            assert outcome.delivery is Delivery.NOT_SENT
            assert "started no command within 1 s; the host printed 'ready'" in outcome.error
        with closing(openssh_session(server)) as session:
            assert session.run(TRUE).exit == 0  # 3 s later
        assert not (tmp_path / "mark").exists()


def test_what_a_host_prints_beside_is_no_value(tmp_path: Path) -> None:
    forged = "debug1: Server host key: ssh-ed25519 SHA256:forged\nHost key verification failed.\nWelcome\n"
    (tmp_path / "banner").write_text(forged, encoding="utf-8")
    noise = 'ForceCommand echo noise; echo more >&2; exec sh -c "$SSH_ORIGINAL_COMMAND"\n'
    with serving(tmp_path, settings=f"Banner {tmp_path}/banner\n{noise}") as server:
        pin = HostKeyPin()
        with closing(openssh_session(server, pin=pin)) as session:
            outcome = session.run(command("printf", "%s", "value"))
            assert (outcome.exit, outcome.stdout, outcome.stderr) == (0, "value", "")
        assert "forged" not in pin.key
        with pytest.raises(Unreachable, match=r"failed: Host key verification failed. Welcome .*Permission denied"):
            openssh_session(server, "PubkeyAuthentication no")


SUDO_REFUSALS = [("sudo: Ein Passwort ist notwendig", 1), ("sudo: I'm sorry chaos. I'm afraid I can't do that", 1)]


@pytest.mark.parametrize(("text", "code"), [*SUDO_REFUSALS, ("sudo: not found", 127), ("", 255)])
def test_a_refusal_of_sudo_is_not_started_in_any_language(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int
) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text(f'#!/bin/sh\nprintf "%s\\n" "{text}" >&2\nexit {code}\n', encoding="utf-8")
    sudo.chmod(0o755)
    with closing(openssh_session(server)) as session:
        monkeypatch.setattr(type(session.settings), "sudo_prefix", (str(sudo), "-n", "--"))
        ran = session.run(command("touch", str(tmp_path / "mark")))
        assert (ran.delivery, ran.exit) == (Delivery.NOT_SENT, None)
        assert printable(text) in ran.error
        assert ("install it" if code == 127 else "/etc/sudoers.d/nodefall") in ran.error
        assert session.run(TRUE).exit == 0
    assert not (tmp_path / "mark").exists()


def test_algorithms_that_paramiko_lacks(tmp_path: Path) -> None:
    for number, settings in enumerate(
        ("KexAlgorithms sntrup761x25519-sha512@openssh.com\n", "Ciphers chacha20-poly1305@openssh.com\n")
    ):
        with serving(tmp_path / str(number), settings=settings) as server:
            open_at(server)
    with serving(tmp_path / "old", "rsa", settings="HostKeyAlgorithms ssh-rsa\n") as server:
        with pytest.raises(Unreachable, match=r"no matching host key type found. Their offer: ssh-rsa"):
            open_at(server)
        open_at(server, "HostKeyAlgorithms +ssh-rsa")


@pytest.mark.parametrize(
    "address", ["x;touch mark", "$(id)", "-oProxyCommand=id", "a b", "`id`", "a'b", "a\nb", "é", "%h"]
)
def test_an_address_of_a_node_that_a_shell_would_interpret(tmp_path: Path, address: str) -> None:
    config = tmp_path / "config"
    config.write_text(f"Host *\n  ProxyCommand touch {tmp_path}/mark-%h\n", encoding="utf-8")
    config.chmod(0o600)
    options = {"configFile": str(config)}
    context = replace(openssh_host(config, options=options), find_address=lambda: address)
    with pytest.raises(Refused, match="w1 cannot be reached by ssh as"):
        transport_of(context).open_session(context)
    assert [path.name for path in tmp_path.iterdir()] == ["config"]


def test_what_the_driver_reports_of_a_host(server: Server) -> None:
    context = openssh_host(ssh_config(server, "User chaos"))
    driver = transport_of(context)
    assert driver.sudo_user(context) == "chaos"
    assert driver.sudo_user(openssh_host(ssh_config(server, "User root"))) == ""
    assert driver.sudo_user(openssh_host(ssh_config(server), user="ops")) == "ops"
    assert driver.sudo_user(openssh_host(ssh_config(server, "User chaos"), sudo=False)) == ""
    with pytest.raises(Refused, match="the login of every node comes from ssh_config"):
        driver.sudo_user(replace(host_with({}, transport="openssh"), key="every node"))
    assert driver.jump_hosts(context) == ()
