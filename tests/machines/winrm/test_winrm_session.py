"""Sessions over WinRM against a service that replays what Windows answered."""

from __future__ import annotations

import base64
import logging
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

import chaos.machines.winrm.client
import chaos.machines.winrm.worker
from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import Refused, Unreachable
from chaos.machines.sessions.host_keys import HostKeyPin
from chaos.machines.sessions.process import LIMIT
from chaos.machines.winrm.session import WinRmSession
from tests.kit.processes import free_port
from tests.kit.proxy import Proxy
from tests.kit.tls_authority import Authority
from tests.kit.wsman_server import (
    PASSWORD,
    RUNNING_OUT,
    Answer,
    Request,
    WsManServer,
    fault,
    received,
    serving_wsman,
    sha256_of,
)

EXE = r"C:\Windows\System32\where.exe"
RUN = HostCommand((EXE, "a b", "", 'c"d'), timeout=20)


def test_a_command_is_started_without_cmd_and_its_output_collected(session: WinRmSession, service: WsManServer) -> None:
    service.script["Receive"] += [received(b"one\r\n"), RUNNING_OUT, received("zwei ä\n".encode(), b"err\r\n", "5")]
    assert session.run(RUN) == Outcome(Delivery.ANSWERED, 5, "one\nzwei ä\n", "err\n")
    session.connect()  # after the final Signal
    assert service.operations() == ["Create", "Command", "Receive", "Receive", "Receive", "Signal"]
    create, command = service.requests[:2]
    assert create.find(r'WINRS_CODEPAGE"[^>]*>(\d+)<') == "65001"
    assert create.find(r'WINRS_NOPROFILE"[^>]*>(\w+)<') == "TRUE"
    assert create.find(r"IdleTimeOut>(\w+)<") == "PT180S"
    assert command.find(r'WINRS_SKIP_CMD_SHELL"[^>]*>(\w+)<') == "TRUE"
    assert command.find("<rsp:Command>([^<]*)<") == EXE
    assert command.find("<rsp:Arguments>([^<]*)<") == '"a b" "" "c\\"d"'
    assert service.connections == 1


def test_characters_that_are_cut_between_two_answers(session: WinRmSession, service: WsManServer) -> None:
    both = "ä€".encode()
    service.script["Receive"] += [received(both[:1]), received(both[1:4]), received(both[4:], exit_code="0")]
    assert session.run(RUN).stdout == "ä€"


@pytest.mark.parametrize(
    ("text", "exit_code"), [("0", 0), ("1116", 1116), ("-1073741510", 0xC000013A), ("3221225786", 0xC000013A)]
)
def test_exit_codes_have_32_bits(session: WinRmSession, service: WsManServer, text: str, exit_code: int) -> None:
    service.script["Receive"].append(received(exit_code=text))
    assert session.run(RUN).exit == exit_code


def test_big_output_is_truncated_with_a_note(session: WinRmSession, service: WsManServer) -> None:
    service.script["Receive"] += [received(b"x" * LIMIT), received(b"y", b"z", "3")]
    outcome = session.run(RUN)
    assert (outcome.exit, outcome.stdout, outcome.stderr) == (3, "x" * LIMIT, "z")
    assert outcome.error == "stdout truncated at 1 MiB"


def test_stdin_arrives_in_pieces_with_an_end(session: WinRmSession, service: WsManServer) -> None:
    assert session.run(HostCommand((EXE,), stdin="ä" * 70_000)).exit == 0
    pieces = [request for request in service.requests if request.operation == "Send"]
    assert [request.find('End="(\\w+)"') for request in pieces] == ["false", "false", "true"]
    sent = b"".join(base64.b64decode(request.find(r"(?s)Stream [^>]*>([^<]*)<")) for request in pieces)
    assert sent.decode() == "ä" * 70_000
    assert service.requests[1].find(r'WINRS_CONSOLEMODE_STDIN"[^>]*>(\w+)<') == "FALSE"
    session.run(RUN)
    assert [r for r in service.requests if r.operation == "Command"][1].find(
        r'CONSOLEMODE_STDIN"[^>]*>(\w+)<'
    ) == "TRUE"


def test_stdin_that_is_not_taken_is_noted(session: WinRmSession, service: WsManServer) -> None:
    service.script["Send"].append(fault("faults/2150858843_shell_gone_get.response.xml"))
    outcome = session.run(HostCommand((EXE,), stdin="x" * 200_000))
    assert (outcome.delivery, outcome.exit) == (Delivery.ANSWERED, 0)
    assert outcome.error.startswith("stdin was not taken as a whole: win-1 (")
    assert service.operations().count("Send") == 1


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (("where.exe",), "'where.exe' cannot be started: it is not a full path"),
        ((EXE, "a\0b"), "an argument has a control character"),
        ((EXE, "x" * 40_000), "its command line has 40030 characters, of 32766 at most"),
    ],
)
def test_what_cannot_be_a_command_line_is_not_sent(
    session: WinRmSession, service: WsManServer, argv: tuple[str, ...], error: str
) -> None:
    outcome = session.run(HostCommand(argv))
    assert (outcome.delivery, outcome.exit) == (Delivery.NOT_SENT, None)
    assert error in outcome.error
    assert service.requests == []
    with pytest.raises(Refused, match="cannot be started"):
        session.arm(HostCommand(argv))


def test_one_shell_for_many_commands_and_another_before_the_quota(
    session: WinRmSession, service: WsManServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos.machines.winrm.worker, "MAX_COMMANDS", 3)
    assert [session.run(RUN).exit for _ in range(7)] == [0] * 7
    operations = service.operations()
    assert operations.count("Create") == 3
    assert operations.count("Delete") == 2
    assert len(service.shells) == 1


def test_a_shell_in_use_is_deleted_only_after_its_commands(
    session: WinRmSession, service: WsManServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos.machines.winrm.worker, "MAX_COMMANDS", 1)
    others_done, started = threading.Event(), threading.Event()

    def receive(request: Request) -> Answer:
        if request.shell == first[0] and not others_done.is_set():
            return RUNNING_OUT
        return received(exit_code="0")

    first: list[str] = []

    def start(request: Request) -> Answer:
        first.append(request.shell)
        started.set()
        return Answer()

    service.then["Command"] = start
    service.then["Receive"] = receive
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(session.run, RUN)
        assert started.wait(20)
        assert session.run(RUN).exit == 0
        assert "Delete" not in [r.operation for r in service.requests if r.shell == first[0]]
        others_done.set()
        assert long.result(20).exit == 0
    session.connect()
    assert [r.shell for r in service.requests if r.operation == "Delete"].count(first[0]) == 1


def test_an_idle_shell_and_its_connection_are_not_used_again(
    session: WinRmSession, service: WsManServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.run(RUN)
    monkeypatch.setattr(chaos.machines.winrm.worker, "MAX_IDLE", -1.0)
    session.run(RUN)
    assert (service.connections, service.operations().count("Create")) == (2, 2)


def test_commands_run_side_by_side(session: WinRmSession, service: WsManServer) -> None:
    """A silent one does not keep the others waiting."""
    commands: list[str] = []

    def receive(request: Request) -> Answer:
        commands.extend([request.command] * (request.command not in commands))
        return RUNNING_OUT if request.command == commands[0] and len(commands) < 6 else received(exit_code="0")

    service.then["Receive"] = receive
    with ThreadPoolExecutor(6) as pool:
        assert [outcome.exit for outcome in pool.map(session.run, [RUN] * 6)] == [0] * 6
    assert service.connections == 1


def test_a_timeout_is_lost_and_neither_ends_the_command_nor_reuses_its_shell(
    session: WinRmSession, service: WsManServer
) -> None:
    service.script["Receive"].append(received(b"first\r\n"))
    service.then["Receive"] = RUNNING_OUT
    session.connect()
    outcome = session.run(HostCommand((EXE,), timeout=2))
    assert (outcome.delivery, outcome.exit, outcome.stdout) == (Delivery.LOST, None, "first\n")
    assert outcome.error == "no answer within 2 s; the command may still be running"
    del service.then["Receive"]
    assert session.run(RUN).exit == 0
    session.close()
    assert service.operations().count("Create") == 2
    assert [r.shell for r in service.requests if r.operation == "Delete"] != [service.requests[0].shell]


@pytest.mark.parametrize("answer", [Answer(hang=True), Answer(trickle=True)], ids=["silent", "byte by byte"])
def test_the_deadline_holds_whatever_the_host_does(session: WinRmSession, service: WsManServer, answer: Answer) -> None:
    service.script["Receive"].append(answer)
    session.connect()
    assert session.run(HostCommand((EXE,), timeout=2)).delivery == Delivery.LOST
    assert session.run(RUN).exit == 0  # with another worker, whatever the former still waits for
    assert service.connections == 2


@pytest.mark.parametrize("operation", ["Create", "Command"])
def test_a_host_that_hangs_before_the_command(session: WinRmSession, service: WsManServer, operation: str) -> None:
    if operation == "Command":
        session.connect()
    service.script[operation].append(Answer(hang=True))
    outcome = session.run(HostCommand((EXE,), timeout=1.5))
    expected = {"Create": Delivery.NOT_SENT, "Command": Delivery.LOST}
    assert outcome.delivery == expected[operation]
    assert "1.5 s" in outcome.error


def test_a_command_given_up_while_it_waits_is_never_sent(session: WinRmSession, service: WsManServer) -> None:
    service.script["Create"].append(Answer(trickle=True))
    assert session.run(HostCommand((EXE,), timeout=0.2)).delivery == Delivery.NOT_SENT
    service.stopping.set()
    session.close()
    assert "Command" not in service.operations()


def test_closing_ends_the_wait_and_leaves_the_shell(session: WinRmSession, service: WsManServer) -> None:
    polled = threading.Event()

    def receive(request: Request) -> Answer:
        polled.set()
        return RUNNING_OUT

    service.then["Receive"] = receive
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(session.run, RUN)
        assert polled.wait(20)
        session.close()
        outcome = future.result(20)
    assert (outcome.delivery, outcome.error) == (
        Delivery.LOST,
        "the session was closed; the command may still be running",
    )
    assert "Delete" not in service.operations()


def test_a_closed_session_deletes_its_shell_and_can_be_used_again(session: WinRmSession, service: WsManServer) -> None:
    session.run(RUN)
    session.close()
    assert service.shells == set()
    assert session.run(RUN).exit == 0


def test_an_armed_command_needs_one_request(session: WinRmSession, service: WsManServer) -> None:
    armed = session.arm(RUN)
    assert service.operations() == ["Create"]
    assert not armed.calibrate(lambda: 0.0)
    armed.release(at=1.0)
    armed.release()
    assert armed.wait().exit == 0
    assert service.operations()[:3] == ["Create", "Command", "Receive"]
    assert service.operations().count("Command") == 1
    assert armed.wait().delivery == Delivery.NOT_SENT


def test_a_cancelled_command_is_never_sent(session: WinRmSession, service: WsManServer) -> None:
    armed = session.arm(RUN)
    armed.cancel()
    armed.release()
    assert armed.wait().delivery == Delivery.NOT_SENT
    assert service.operations() == ["Create"]


def test_arming_fails_where_no_shell_opens(session: WinRmSession, service: WsManServer) -> None:
    service.script["Create"].append(Answer(503, b""))
    with pytest.raises(Unreachable, match="HTTP status 503"):
        session.arm(RUN)
    service.accepts_login = False
    with pytest.raises(Refused, match="rejected the login by basic"):
        session.arm(RUN)


def test_a_host_without_a_listener(authority: Authority) -> None:
    port = free_port()
    with serving_wsman(authority.server(), authority.file) as other:
        session = WinRmSession(other.endpoint(port=port))
        outcome = session.run(RUN)
    assert outcome.delivery == Delivery.NOT_SENT
    assert f"win-1 (Administrator@127.0.0.1:{port}) cannot be reached: Connection refused" in outcome.error


def test_a_connection_that_cannot_be_opened_again_sends_nothing(service: WsManServer) -> None:
    """Also where the shell is open: the command was not even begun to be sent."""
    proxy = Proxy(("127.0.0.1", service.port))
    session = WinRmSession(service.endpoint(port=proxy.port))
    session.connect()
    proxy.cut()
    outcome = session.run(RUN)
    assert (outcome.delivery, service.operations()) == (Delivery.NOT_SENT, ["Create"])
    proxy.mend()
    assert session.run(RUN).exit == 0
    session.close()
    proxy.close()


def test_the_certificate_is_that_of_the_run(service: WsManServer, authority: Authority) -> None:
    pin = HostKeyPin()
    session = WinRmSession(service.endpoint(), pin)
    assert session.run(RUN).exit == 0
    assert pin.key == f"certificate SHA256:{service.fingerprint}"
    with serving_wsman(authority.server(), authority.file) as other:
        elsewhere = WinRmSession(other.endpoint(), pin)
        outcome = elsewhere.run(RUN)
        with pytest.raises(Refused, match="now leads to a different machine"):
            elsewhere.connect()
        assert other.headers == []
    assert outcome.delivery == Delivery.NOT_SENT
    assert "now leads to a different machine: it presents the host key certificate SHA256:" in outcome.error
    session.close()


def test_a_fingerprint_is_trusted_by_that_alone(tmp_path: Path, authority: Authority) -> None:
    context = authority.server(address="127.0.0.9")
    with serving_wsman(context, None, sha256_of(tmp_path / "server.pem")) as found:
        trusting = WinRmSession(found.endpoint(fingerprint=found.fingerprint))
        assert trusting.run(RUN).exit == 0
        trusting.close()
        other = WinRmSession(found.endpoint(fingerprint="0" * 64))
        outcome = other.run(RUN)
        assert found.operations().count("Create") == 1
    assert outcome.delivery == Delivery.NOT_SENT
    assert (
        f"presents the certificate SHA256:{found.fingerprint}, but the inventory has SHA256:{'0' * 64}" in outcome.error
    )


def test_hostname_is_the_name_in_the_certificate(authority: Authority) -> None:
    with serving_wsman(authority.server(address="10.9.8.7"), authority.file) as found:
        assert WinRmSession(found.endpoint(hostname="10.9.8.7")).run(RUN).exit == 0


def test_login_by_certificate(authority: Authority, tmp_path: Path) -> None:
    context = authority.server()
    own = tmp_path / "own.pem"  # certificate and key
    own.write_bytes((tmp_path / "server.pem").read_bytes())
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.file)
    with serving_wsman(context, authority.file) as found:
        found.by_certificate = True
        by_certificate = found.endpoint(auth="certificate", user="", password="", certificate=own, key=own)
        session = WinRmSession(by_certificate)
        assert session.run(RUN).exit == 0
        session.close()
        without = WinRmSession(found.endpoint())
        assert without.run(RUN).delivery == Delivery.NOT_SENT
        without.close()


def test_a_key_with_a_passphrase_is_refused_without_a_prompt(authority: Authority, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    encryption = serialization.BestAvailableEncryption(b"passphrase")
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    (tmp_path / "key.pem").write_bytes(pem)
    with serving_wsman(authority.server(), authority.file) as found:
        files = {"certificate": tmp_path / "server.pem", "key": tmp_path / "key.pem"}
        with pytest.raises(Refused, match=r"key .*/key.pem of win-1 cannot be used") as refused:
            WinRmSession(found.endpoint(auth="certificate", **files)).connect()
    assert "without a passphrase" in refused.value.hint


def test_login_by_credssp_starts_with_its_own_tokens(service: WsManServer) -> None:
    """And with nothing else: neither password nor message goes to a host that does not answer in kind."""
    service.accepts_login = False
    session = WinRmSession(service.endpoint(auth="credssp"))
    outcome = session.run(RUN)
    session.close()
    assert outcome.delivery == Delivery.NOT_SENT
    assert "rejected the login by credssp (401)" in outcome.error
    assert not [headers for headers in service.headers if "Basic" in headers.get("Authorization", "")]


def test_the_environment_is_not_used(service: WsManServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither proxies nor authorities nor the passwords of .netrc."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere")
    session = WinRmSession(service.endpoint())
    assert session.run(RUN).exit == 0
    session.close()


def test_no_secret_in_logs_messages_and_representations(
    session: WinRmSession, service: WsManServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        service.accepts_login = False
        outcome = session.run(RUN)
        with pytest.raises(Refused) as refused:
            session.connect()
    texts = [
        caplog.text,
        outcome.error,
        str(refused.value),
        refused.value.hint,
        repr(session),
        repr(service.endpoint()),
    ]
    assert "rejected the login" in caplog.text
    assert not [text for text in texts if PASSWORD in text]
