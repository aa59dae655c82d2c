"""Identity of a Windows machine, of its boot and its kubelet, and the rights of commands there."""

from __future__ import annotations

from chaos.core.command import HostCommand
from chaos.core.fact import host_fact, lines
from chaos.core.identity import MACHINE
from chaos.core.windows import powershell, system_program
from chaos.faults.readings.certificates import CERTIFICATES, find_kubelet_user
from chaos.faults.readings.windows._registry import VALUE, parse_number, parse_value, query_value

_NAME = r"\S+\n"  # form of what hostname.exe prints
_PREFETCH_KEY = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters"


# Count of the boots, which a kubelet on Windows reports as ``bootID``.
@host_fact(
    "boot-id",
    "number of boots, which the kubelet reports as the boot ID",
    query_value(_PREFETCH_KEY, "BootId"),
    form=VALUE,
)
def boot_id(stdout: str, exit_code: int) -> str:
    """Text: a decimal number, one more after each boot, as kubelets report it (winstats, ``getBootID``)."""
    return str(parse_number(stdout, exit_code, "BootId"))


# Name of the machine, which a kubelet on Windows reports as ``machineID``.
@host_fact(
    "machine-id",
    "host name, which the kubelet reports as the machine ID",
    HostCommand((system_program("hostname"),)),
    form=_NAME,
)
def machine_id(stdout: str, exit_code: int) -> str:
    """Text: the host name. Windows kubelets report it as the machine ID (winstats, ``GetMachineInfo``)."""
    name = stdout.strip()
    if exit_code or not name:
        raise ValueError("no host name")
    return name


@host_fact(
    "stable-id",
    "what is the same after each boot: the host name",
    HostCommand((system_program("hostname"),)),
    form=_NAME,
)
def stable_id(stdout: str, exit_code: int) -> str:
    """Text: ``machine NAME`` with the host name, as the fact machine-id has it."""
    return f"{MACHINE}{machine_id.parse(stdout, exit_code)}"


@host_fact(
    "system-uuid",
    "UUID of the machine, which the kubelet reports as the system UUID",
    query_value(r"HKLM\SYSTEM\HardwareConfig", "LastConfig"),
    form=VALUE,
)
def system_uuid(stdout: str, exit_code: int) -> str:
    """Text in lower case. A kubelet reads the same value, and reports it in capitals (winstats, ``getSystemUUID``)."""
    return parse_value(stdout, exit_code, "LastConfig").strip("{}").lower()


# kubeadm and most others, AKS. The files also hold the private key, which is not printed.
CLIENT_CERTIFICATES = (
    r"C:\var\lib\kubelet\pki\kubelet-client-current.pem",
    r"C:\k\pki\kubelet-client-current.pem",
)


@host_fact(
    "kubelet-user",
    "user as which the kubelet authenticates",
    HostCommand(powershell("read-certificates", files=CLIENT_CERTIFICATES)),
    form=CERTIFICATES,
)
def kubelet_user(stdout: str, exit_code: int) -> str:
    """Text: common name of the client certificate, as ``system:node:windows-1``."""
    if exit_code:
        raise ValueError("the kubelet's client certificate cannot be read")
    return find_kubelet_user(stdout)


_ELEVATED = ("S-1-16-12288", "S-1-16-16384")  # integrity levels high and system; names of groups are translated


@host_fact(
    "root",
    "whether commands run with the rights of an administrator",
    HostCommand((system_program("whoami"), "/groups", "/fo", "csv", "/nh")),
    form=lines(r'"[^\n]*"', ""),
)
def root(stdout: str, exit_code: int) -> bool:
    """True or false: true if commands run elevated, that is with all rights of an administrator."""
    if exit_code or "S-1-" not in stdout:
        raise ValueError("cannot parse the output of whoami")
    return any(f'"{level}"' in stdout for level in _ELEVATED)


@host_fact(
    "login-domain",
    "domain of the account that nodefall uses on the host",
    HostCommand((system_program("whoami"),)),
    form=r"[^\\\n]+\\[^\\\n]+\n",
)
def login_domain(stdout: str, exit_code: int) -> str:
    """Text in lower case: the part before the backslash, for a local account the computer's name of 15 characters."""
    domain, separator, user = stdout.strip().rpartition("\\")
    if exit_code or not (separator and domain and user):
        raise ValueError("cannot parse the output of whoami")
    return domain.lower()
