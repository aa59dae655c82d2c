"""Power over IPMI 2.0 (lanplus), with the program ipmitool.

pyghmi was measured beside it: importing it takes 0.36 s, a whole call of ipmitool 0.05 s; it shares sockets and
sessions between all threads of a process, and version 1.6.19 cannot log in to its own fake BMC.
"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, StrictInt

from chaos.core.command import PowerState
from chaos.core.driver import PowerSettings
from chaos.core.errors import NodefallError, Unreachable
from chaos.core.field_types import HostAddress, Secret
from chaos.core.ports import ALL_CAPABILITIES
from chaos.core.power_identity import PowerIdentity
from chaos.machines.driver import PowerDriver
from chaos.machines.local import ProgramResult, SecretContext, read_secret, run_program

TIMEOUT = 30.0  # seconds of wall time for one call
_PACKET_TIMEOUT, _RETRIES = "2", "3"  # of ipmitool: seconds for a packet, and how often it is sent again
_STATE = re.compile(r"^Chassis Power is (on|off)\s*$", re.MULTILINE)
_GUID = re.compile(r"^System GUID\s*: ([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})\s*$", re.MULTILINE)
_NO_SESSION = "Unable to establish"  # no request has reached the BMC
_BAD_HMAC = "RAKP 2 HMAC is invalid"  # of a wrong password; reported only with -v


class IpmiPower(PowerSettings):
    kind: Literal["ipmi"] = Field(description="A BMC that speaks IPMI.")
    address: HostAddress = Field(description="The address of the BMC.")
    port: StrictInt = Field(623, ge=1, le=65535, description="The port of the BMC.")
    user: str = Field(description="The user of the BMC.")
    password: Secret = Field(description="The password of the user.")
    cipher_suite: StrictInt | None = Field(
        None,
        alias="cipherSuite",
        ge=1,
        le=17,
        description="The cipher suite. By default, the best one that the BMC offers.",
    )


def make_ipmi_control(power: IpmiPower, context: SecretContext, timeout: float = TIMEOUT) -> IpmiControl:
    """Power control of one machine. Raises Refused for a secret that cannot be read."""
    return IpmiControl(power, read_secret(power.password, context), timeout)


class IpmiControl:
    """Implements ``chaos.core.ports.PowerControl`` and ``MachineIdentity``.

    The password is only ever in ipmitool's environment.
    """

    capabilities = ALL_CAPABILITIES

    def __init__(self, power: IpmiPower, password: str, timeout: float) -> None:
        self._power, self._password, self._timeout = power, password, timeout

    def state(self) -> PowerState:
        """``on`` or ``off``, as reported by the chassis."""
        result = self._chassis("status")
        match = _STATE.search(result.stdout)
        if not match:
            raise NodefallError(
                f"{self._endpoint} reports neither on nor off: {result.output}", hint="check the machine's BMC"
            )
        return PowerState(match[1])

    def identity(self) -> PowerIdentity:
        """The system GUID in the byte order of SMBIOS; unknown for a BMC that does not support the command.

        ipmitool before 1.8.19 ignores the last argument, and decodes the GUID this way by default.
        """
        result = self._ipmitool("mc", "guid", "smbios")
        match = _GUID.search(result.stdout) if result.exit == 0 else None
        return PowerIdentity(system_uuid=match[1].lower() if match else "")

    def on(self) -> None:
        """Power up; returns when the BMC has accepted the request."""
        self._chassis("on")

    def off(self) -> None:
        """Power down immediately, not by ACPI; returns when the BMC has accepted the request."""
        if self.state() is PowerState.ON:  # many BMCs reject the request otherwise
            self._chassis("off")

    def soft_off(self) -> None:
        """Press the power button by ACPI; returns when the BMC has accepted the request."""
        self._chassis("soft")

    @property
    def _endpoint(self) -> str:
        return f"IPMI at {self._power.address}:{self._power.port}"

    def _chassis(self, verb: str) -> ProgramResult:
        result = self._ipmitool("chassis", "power", verb)
        if result.exit == 0:
            return result
        raise NodefallError(f"{self._endpoint} answered to {verb}: {result.output}", hint="check the machine's BMC")

    def _ipmitool(self, *arguments: str) -> ProgramResult:
        """Run a command of ipmitool. Raises Unreachable if no request has reached the BMC."""
        power = self._power
        cipher = () if power.cipher_suite is None else ("-C", str(power.cipher_suite))
        target = ("-H", power.address, "-p", str(power.port), "-U", power.user, "-E", *cipher)
        retries = ("-N", _PACKET_TIMEOUT, "-R", _RETRIES)
        argv = ("ipmitool", "-v", "-I", "lanplus", *target, *retries, *arguments)
        secrets = {"IPMI_PASSWORD": self._password, "IPMITOOL_PASSWORD": self._password}
        result = run_program(argv, self._timeout, secrets, hint="install ipmitool")
        if result.exit and _BAD_HMAC in result.stderr:
            raise Unreachable(
                f"{self._endpoint} rejected the login of {power.user}: the password is wrong",
                hint="correct the password that power names in the inventory",
            )
        if result.exit and _NO_SESSION in result.stderr:
            raise Unreachable(
                f"{self._endpoint} rejected the login of {power.user}: {result.output}",
                hint="check address, user, password and cipherSuite of power; IPMI over LAN must be enabled",
            )
        return result


DRIVER = PowerDriver("ipmi", IpmiPower, lambda power, host: make_ipmi_control(power, host.secrets))
