"""A small real HTTPS server stands for the BMC."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.ports import ALL_CAPABILITIES, ON_OFF_STATE
from chaos.machines.local import SecretContext
from chaos.machines.power.redfish import RedfishControl, RedfishPower, make_redfish_control

PASSWORD = "hunter2-secret"
SYSTEM = "/redfish/v1/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bmc")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert, private = folder / "bmc.pem", folder / "bmc.key"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert, private


@dataclass
class Bmc:
    """Responses of the server, and the resets that it received."""

    ca: Path
    port: int = 0
    power: Any = "Off"
    after: str | None = None  # power state that a reset leads to
    status: int = 200
    reset_status: int = 204
    body: bytes | None = None
    target: str = RESET
    allowed: list[str] | None = None
    resets: list[str] = field(default_factory=list)
    silent: threading.Event | None = None
    uuid: str | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}{SYSTEM}"

    def system(self) -> bytes:
        reset: dict[str, Any] = {"target": self.target}
        if self.allowed is not None:
            reset["ResetType@Redfish.AllowableValues"] = self.allowed
        actions = {"#ComputerSystem.Reset": reset}
        return json.dumps({"PowerState": self.power, "UUID": self.uuid, "Actions": actions}).encode()

    def control(self, **changes: Any) -> RedfishControl:
        fields = {"kind": "redfish", "url": self.url, "user": "ops", "password": {"env": "PW"}, "caFile": str(self.ca)}
        spec = RedfishPower.model_validate(fields | changes)
        return make_redfish_control(spec, SecretContext({"PW": PASSWORD}, Path("/nowhere")), timeout=5)


def handler(bmc: Bmc) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if bmc.silent:
                bmc.silent.wait(20)
            if self.path != SYSTEM:
                self.answer(404, b"{}")
            elif self.headers["Authorization"] != expected:
                self.answer(401, b'{"error": {"message": "login failed"}}')
            else:
                self.answer(bmc.status, bmc.system() if bmc.body is None else bmc.body)

        def do_POST(self) -> None:
            kind = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["ResetType"]
            assert self.path == RESET
            bmc.resets.append(kind)
            bmc.power = bmc.after or bmc.power
            self.answer(bmc.reset_status, b'{"error": {"message": "no can do"}}' if bmc.reset_status >= 400 else b"")

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Quiet."""

    expected = "Basic " + base64.b64encode(f"ops:{PASSWORD}".encode()).decode()
    return Handler


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("bmc"))


@pytest.fixture
def bmc(pem: tuple[Path, Path]) -> Iterator[Bmc]:
    found = Bmc(pem[0])
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(found))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pem)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    found.port = int(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("power", "state"),
    [("On", "on"), ("Off", "off"), ("PoweringOn", "off"), ("PoweringOff", "on"), ("Paused", "on")],
)
def test_state(bmc: Bmc, power: str, state: str) -> None:
    bmc.power = power
    assert bmc.control().state() == state
    assert bmc.control().is_stopping() == (power == "PoweringOff")


@pytest.mark.parametrize("power", [None, "", "Broken"])
def test_an_unknown_power_state(bmc: Bmc, power: str | None) -> None:
    bmc.power = power
    with pytest.raises(NodefallError, match="reports PowerState"):
        bmc.control().state()


@pytest.mark.parametrize("status", [200, 202, 204])
def test_resets(bmc: Bmc, status: int) -> None:
    bmc.reset_status = status
    bmc.control().on()
    bmc.control().off()
    assert bmc.resets == ["On", "ForceOff"]


@pytest.mark.parametrize(
    ("status", "power", "fails"),
    [(409, "On", False), (400, "On", False), (409, "Off", True), (400, "PoweringOn", True), (500, "On", True),
     (403, "On", True)],
)  # fmt: skip
def test_a_rejected_reset_counts_only_in_that_state_already(bmc: Bmc, status: int, power: str, fails: bool) -> None:
    bmc.reset_status, bmc.power = status, power
    if fails:
        with pytest.raises(NodefallError, match=f"answered {status} to On: no can do") as caught:
            bmc.control().on()
        assert caught.value.hint
    else:
        bmc.control().on()
    assert bmc.resets == ["On"]


def test_a_reset_that_is_not_offered_is_not_sent(bmc: Bmc) -> None:
    bmc.allowed = ["On", "GracefulShutdown"]
    with pytest.raises(NodefallError, match="does not support ForceOff, only On, GracefulShutdown"):
        bmc.control().off()
    assert bmc.resets == []


@pytest.mark.parametrize(
    ("allowed", "sent"),
    [
        (None, "GracefulShutdown"),
        (["On", "ForceOff", "PushPowerButton", "GracefulShutdown"], "GracefulShutdown"),
        (["On", "ForceOff", "PushPowerButton"], "PushPowerButton"),
        (["On", "ForceOff"], None),
    ],
)
def test_soft_off_presses_the_power_button(bmc: Bmc, allowed: list[str] | None, sent: str | None) -> None:
    bmc.allowed, bmc.power = allowed, "On"
    control = bmc.control()
    assert control.capabilities == (ALL_CAPABILITIES if sent else ON_OFF_STATE)
    if sent:
        control.soft_off()
    else:
        with pytest.raises(NodefallError, match="does not support GracefulShutdown, only On, ForceOff"):
            control.soft_off()
    assert bmc.resets == ([sent] if sent else [])


@pytest.mark.parametrize("power", ["Off", "PoweringOn"])
def test_the_button_of_a_machine_that_is_off_is_not_pressed(bmc: Bmc, power: str) -> None:
    """It would power the machine on."""
    bmc.allowed, bmc.power = ["On", "ForceOff", "PushPowerButton"], power
    with pytest.raises(Refused, match="reports that the machine is off"):
        bmc.control().soft_off()
    assert bmc.resets == []


def test_credentials_stay_with_the_server_that_was_named(bmc: Bmc) -> None:
    bmc.target = "https://elsewhere.example/reset"
    with pytest.raises(NodefallError, match=r"elsewhere\.example"):
        bmc.control().on()
    assert bmc.resets == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"PowerState": 3}'])
def test_responses_that_are_no_system(bmc: Bmc, body: bytes) -> None:
    bmc.body = body
    with pytest.raises(NodefallError, match="no ComputerSystem"):
        bmc.control().state()


def test_a_system_without_reset(bmc: Bmc) -> None:
    bmc.body = b'{"PowerState": "Off"}'
    with pytest.raises(NodefallError, match="no Reset action"):
        bmc.control().on()


def test_the_error_of_a_wrong_password_does_not_contain_it(bmc: Bmc) -> None:
    with pytest.raises(NodefallError, match="answered 401 to GET: login failed") as caught:
        bmc.control(user="other").state()
    assert "password" in caught.value.hint
    assert PASSWORD not in str(caught.value) + caught.value.hint


def test_nothing_there(bmc: Bmc) -> None:
    with pytest.raises(NodefallError, match="answered 404"):
        bmc.control(url=bmc.url + "0").state()


def test_an_unknown_certificate_is_refused(bmc: Bmc) -> None:
    with pytest.raises(Unreachable, match="cannot be trusted") as caught:
        bmc.control(caFile=None).on()
    assert "caFile" in caught.value.hint
    assert bmc.resets == []


def test_no_server(bmc: Bmc) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable, match="Connection refused"):
            bmc.control(url=f"https://127.0.0.1:{free.getsockname()[1]}{SYSTEM}").state()


def test_a_silent_bmc_times_out(bmc: Bmc) -> None:
    bmc.silent = threading.Event()
    control = bmc.control()
    control._timeout = 0.5
    with pytest.raises(NodefallError, match=r"did not answer GET: .*timed out"):
        control.state()
    bmc.silent.set()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"url": "http://bmc.example/redfish/v1/Systems/1"}, "not encrypted"),
        ({"url": "bmc.example/redfish"}, "not a plain https URL"),
        ({"url": "https://bmc.example:99999/redfish"}, "is not a URL"),
        ({"url": "https://[bmc/redfish"}, "is not a URL"),
        ({"caFile": "/nowhere/ca.pem"}, "caFile"),
        ({"password": {"env": "UNSET"}}, "UNSET is not set"),
    ],
)
def test_settings_that_cannot_be_used(bmc: Bmc, changes: dict[str, Any], error: str) -> None:
    with pytest.raises(Refused, match=error) as caught:
        bmc.control(**changes)
    assert "hunter2" not in str(caught.value)


def test_a_system_that_becomes_another_is_not_reset(bmc: Bmc) -> None:
    """Its address changed hands after the first response. Some BMCs report no UUID while the machine is off."""
    control = bmc.control()
    first, other = "4C4C4544-0042-3510-8034-B3C04F584332", "27946b59-9e44-4fa7-8e91-f3527a1ef094"
    for bmc.uuid in (None, first, None, first.lower()):
        control.off()
    assert bmc.resets == ["ForceOff"] * 4
    bmc.uuid = other
    for act in (control.on, control.off, control.state, control.identity):
        with pytest.raises(
            Refused, match=f"now controls another machine: its system UUID was {first.lower()}, now it is {other}"
        ):
            act()
    bmc.uuid = first
    control.on()
    assert bmc.resets == [*["ForceOff"] * 4, "On"]
