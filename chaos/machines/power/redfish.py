"""Power over Redfish (DMTF DSP0266): PowerState of a ComputerSystem and its Reset action."""

from __future__ import annotations

import base64
import http.client
import ssl
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from pydantic import Field

from chaos.core.command import PowerCapability, PowerState
from chaos.core.driver import FilePath, PowerSettings
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.field_types import Secret, Url
from chaos.core.ports import ALL_CAPABILITIES, ON_OFF_STATE
from chaos.core.power_identity import PowerIdentity
from chaos.core.redaction import register_secret
from chaos.machines.driver import PowerDriver
from chaos.machines.local import SecretContext, client_context, read_secret

TIMEOUT = 15.0  # seconds of wall time to connect, and for each response
_MAX_BODY = 1 << 20  # bytes of a response that are read
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
# In a transition the former state counts: a machine is off only when it is proven off.
_STATES = {
    "On": PowerState.ON,
    "PoweringOff": PowerState.ON,
    "Paused": PowerState.ON,
    "Off": PowerState.OFF,
    "PoweringOn": PowerState.OFF,
}
_SOFT_OFF = ("GracefulShutdown", "PushPowerButton")  # either presses the power button of a machine that is on
_ALREADY_IN_STATE = (400, 409)  # status of a reset into the state that the system is in already


class RedfishPower(PowerSettings):
    kind: Literal["redfish"] = Field(description="A BMC that speaks Redfish.")
    url: Url = Field(description="The URL of the ComputerSystem, such as https://bmc/redfish/v1/Systems/1.")
    user: str | None = Field(None, description="The user of the BMC.")
    password: Secret | None = Field(None, description="The password of the user.")
    ca_file: FilePath | None = Field(None, alias="caFile", description="A file with the CA certificates to trust.")


class _Reset(msgspec.Struct):
    target: str = ""
    allowed: list[str] | None = msgspec.field(default=None, name="ResetType@Redfish.AllowableValues")


class _Actions(msgspec.Struct):
    reset: _Reset | None = msgspec.field(default=None, name="#ComputerSystem.Reset")


class _System(msgspec.Struct):
    power: str | None = msgspec.field(default=None, name="PowerState")
    uuid: str | None = msgspec.field(default=None, name="UUID")
    actions: _Actions | None = msgspec.field(default=None, name="Actions")


def make_redfish_control(power: RedfishPower, context: SecretContext, timeout: float = TIMEOUT) -> RedfishControl:
    """Power control of one machine. Raises Refused for a URL, a CA file or a secret that cannot be used."""
    try:
        url = urlsplit(power.url)
        _ = url.port
    except ValueError as error:
        raise Refused(f"power url is not a URL: {error}", hint="write https://bmc/redfish/v1/...") from error
    if url.scheme not in ("https", "http") or not url.hostname or url.username or url.password:
        raise Refused(
            f"power url {url.hostname or '?'} is not a plain https URL", hint="write https://bmc/redfish/v1/..."
        )
    if url.scheme == "http" and url.hostname not in _LOOPBACK:
        raise Refused(f"power url of {url.hostname} is not encrypted", hint="use https, with caFile for its own CA")
    headers = {"Accept": "application/json", "OData-Version": "4.0"}
    if power.user is not None and power.password is not None:
        login = f"{power.user}:{read_secret(power.password, context)}"
        register_secret(login)
        headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    return RedfishControl(
        power.url, headers, client_context(power.ca_file, context) if url.scheme == "https" else None, timeout
    )


class RedfishControl:
    """Implements ``chaos.core.ports.PowerControl`` and ``MachineIdentity``. Every request opens a new connection."""

    def __init__(self, url: str, headers: dict[str, str], context: ssl.SSLContext | None, timeout: float) -> None:
        self._url, self._headers, self._context, self._timeout = urlsplit(url), headers, context, timeout
        self._uuid = ""

    @property
    def capabilities(self) -> frozenset[PowerCapability]:
        """Without ``soft-off`` where the BMC does not offer it. Raises NodefallError."""
        allowed = self._reset_action().allowed
        has_soft_off = allowed is None or any(kind in allowed for kind in _SOFT_OFF)
        return ALL_CAPABILITIES if has_soft_off else ON_OFF_STATE

    def state(self) -> PowerState:
        """``on`` or ``off``; ``off`` while it is powering on, ``on`` while it is powering off."""
        state = self._system().power
        if state not in _STATES:
            raise NodefallError(f"{self._endpoint} reports PowerState {state!r}", hint="check the machine's BMC")
        return _STATES[state]

    def is_stopping(self) -> bool:
        """Whether the BMC reports that the machine is powering off."""
        return self._system().power == "PoweringOff"

    def identity(self) -> PowerIdentity:
        """The UUID of the ComputerSystem, which is the SMBIOS UUID."""
        return PowerIdentity(system_uuid=self._system().uuid or "")

    def on(self) -> None:
        """Power on; returns when the BMC has accepted the request."""
        self._reset("On", PowerState.ON)

    def off(self) -> None:
        """Cut the power; returns when the BMC has accepted the request."""
        self._reset("ForceOff", PowerState.OFF)

    def soft_off(self) -> None:
        """Press the power button; returns when the BMC has accepted the request. Refused for a machine that is off."""
        if self.state() is PowerState.OFF:  # PushPowerButton would power it on
            raise Refused(f"{self._endpoint} reports that the machine is off", hint="power it on first")
        allowed = self._reset_action().allowed
        kind = next((kind for kind in _SOFT_OFF if allowed and kind in allowed), _SOFT_OFF[0])
        self._reset(kind, PowerState.OFF)

    @property
    def _endpoint(self) -> str:
        return f"Redfish at {self._url.hostname}:{self._url.port or 443}{self._url.path}"

    def _system(self) -> _System:
        status, body = self._request("GET", self._url.path)
        if status != 200:
            raise self._error("GET", status, body)
        try:
            system = msgspec.json.decode(body, type=_System)
        except msgspec.DecodeError as error:
            raise NodefallError(
                f"{self._endpoint} sent no ComputerSystem: {error}", hint="url must end like /redfish/v1/Systems/1"
            ) from error
        self._verify_uuid((system.uuid or "").lower())
        return system

    def _verify_uuid(self, uuid: str) -> None:
        """Raises Refused if the machine has changed. Some BMCs report no UUID while the machine is off."""
        self._uuid = self._uuid or uuid
        if uuid and uuid != self._uuid:
            raise Refused(
                f"{self._endpoint} now controls another machine: its system UUID was {self._uuid}, now it is {uuid}",
                hint="correct power.url of the inventory",
            )

    def _reset_action(self) -> _Reset:
        actions = self._system().actions
        if actions is None or actions.reset is None or not actions.reset.target:
            raise NodefallError(f"{self._endpoint} has no Reset action", hint="url must point to a ComputerSystem")
        return actions.reset

    def _reset(self, kind: str, wanted: PowerState) -> None:
        reset = self._reset_action()
        if reset.allowed is not None and kind not in reset.allowed:
            raise NodefallError(
                f"{self._endpoint} does not support {kind}, only {', '.join(reset.allowed)}", hint="power it by hand"
            )
        target = urlsplit(reset.target)
        if target.netloc and target.netloc != self._url.netloc:
            raise NodefallError(
                f"{self._endpoint} names a reset target on another server: {target.netloc}",
                hint="fix url: credentials are not sent to another server",
            )
        status, body = self._request("POST", target.path, {"ResetType": kind})
        if status in (200, 202, 204) or (status in _ALREADY_IN_STATE and self.state() == wanted):
            return
        raise self._error(f"{kind}", status, body)

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        connection = self._connection()
        headers = self._headers | ({"Content-Type": "application/json"} if body else {})
        try:
            connection.request(method, path, msgspec.json.encode(body) if body else None, headers)
            response = connection.getresponse()
            return response.status, response.read(_MAX_BODY)
        except (OSError, http.client.HTTPException) as error:
            raise NodefallError(
                f"{self._endpoint} did not answer {method}: {error or type(error).__name__}",
                hint="check the power state: the request may have been carried out",
            ) from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        """An open connection with a verified certificate. Raises Unreachable."""
        host, port = self._url.hostname or "", self._url.port
        if self._context:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=self._timeout, context=self._context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(
                f"{self._endpoint} has a certificate that cannot be trusted: {error.verify_message}",
                hint="name the CA that signed it as caFile",
            ) from error
        except OSError as error:
            raise Unreachable(
                f"{self._endpoint} cannot be reached: {error.strerror or error}",
                hint="check power.url of the inventory",
            ) from error
        return connection

    def _error(self, what: str, status: int, body: bytes) -> NodefallError:
        hints = {
            401: "correct user and password of power in the inventory",
            403: "the user needs the right to control power",
        }
        rejected = "rejected the user or the password of power: it " if status == 401 else ""
        return NodefallError(
            f"{self._endpoint} {rejected}answered {status} to {what}{_message(body)}",
            hint=hints.get(status, "check power.url of the inventory, and the log of the BMC"),
        )


def _message(body: bytes) -> str:
    """``: TEXT`` with the message of a Redfish error, or ""."""
    try:
        text = msgspec.json.decode(body)["error"]["message"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return ""
    return f": {str(text)[:300]}"


DRIVER = PowerDriver("redfish", RedfishPower, lambda power, host: make_redfish_control(power, host.secrets))
