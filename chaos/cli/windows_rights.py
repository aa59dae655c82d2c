"""``nodefall windows-rights``: the rights that experiments need on Windows hosts."""

# ruff: noqa: PLC0415 - slow imports are deferred until the command runs
from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from chaos.cli.complete import complete_experiment_file
from chaos.cli.experiment_argument import ExperimentPath
from chaos.cli.inventory_option import inventory_option
from chaos.cli.output import echo
from chaos.core.errors import UsageError

if TYPE_CHECKING:
    from chaos.core.inventory import Inventory

# User rights by action, beside those of every administrator; a login over the network may also need the remote one.
_SHUTDOWN = ("SeShutdownPrivilege", "SeRemoteShutdownPrivilege")
PRIVILEGES: Mapping[str, tuple[str, ...]] = {
    "cancel-shutdown": _SHUTDOWN,
    "clock-skew": ("SeSystemtimePrivilege",),
    "kernel-crash": ("SeLoadDriverPrivilege",),
    "poweroff": _SHUTDOWN,
    "reboot": _SHUTDOWN,
    "schedule-shutdown": _SHUTDOWN,
}
_QUOTES = re.compile("['\u2018-\u201b]")  # PowerShell takes the typographic ones for the same
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ADMINISTRATORS = "S-1-5-32-544"
_POLICIES = r"HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Policies\System"
_KEYS = r"C:\ProgramData\ssh\administrators_authorized_keys"
_EQUIVALENT = (
    "This is equivalent to administrator, and no smaller set of rights is: failsafe tasks run as SYSTEM, services and",
    "firewall rules are changed, and undo sends arbitrary commands. Grant it to a dedicated login with its own secret.",
)
EPILOG = """\b
Examples:
  nodefall windows-rights experiments/windows-*.yaml --inventory hosts/staging.yaml
  nodefall windows-rights my.yaml -i hosts/staging.yaml > grant.ps1
"""


class _Login(NamedTuple):
    """A login of Windows hosts; ``transport``: winrm or ssh."""

    user: str
    transport: str

    @property
    def is_local(self) -> bool:
        """A local account, unless its name has a domain."""
        return "\\" not in self.user and "@" not in self.user


@click.command(epilog=EPILOG)
@click.argument("experiments", nargs=-1, required=True, shell_complete=complete_experiment_file, type=ExperimentPath())
@inventory_option("For its Windows hosts and their login users; no cluster is contacted.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of PowerShell.")
def command(experiments: tuple[Path, ...], inventory: str | None, as_json: bool) -> None:
    """Print the rights that EXPERIMENTS need on the Windows hosts of an inventory, as PowerShell for an administrator.

    They are always equivalent to administrator, as the text explains. Experiments that only use the API need none.
    `nodefall sudoers` is the counterpart for Linux.
    """
    from chaos.app.wiring.connect import inventory_path
    from chaos.cli.sudoers import plugins_by_experiment
    from chaos.documents.inventory import load_inventory

    plugins = plugins_by_experiment(experiments)
    logins = _logins(load_inventory(inventory_path(inventory))) if plugins else {}
    privileges = _privileges(plugins.values()) if logins else ()
    if as_json:
        rows = [{**login._asdict(), "local": login.is_local, "hosts": hosts} for login, hosts in logins.items()]
        document = {"logins": rows, "privileges": privileges, "amountsToAdministrator": bool(rows), "because": plugins}
        click.echo(json.dumps(document))
        return
    echo(*_lines(plugins, logins, privileges))


def _privileges(plugins: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """User rights of the actions, sorted."""
    return tuple(sorted({right for names in plugins for name in names for right in PRIVILEGES.get(name, ())}))


def _logins(inventory: Inventory) -> dict[_Login, list[str]]:
    """Windows hosts by their login. Raises UsageError for one that cannot be written in PowerShell, or is missing."""
    from chaos.engine.connection import login

    found: dict[_Login, list[str]] = {}
    for key, host in inventory.hosts.items():
        if host.os != "windows" or inventory.lab:
            continue
        transport = host.transport or inventory.defaults.transport or "ssh"
        user = host.user or inventory.defaults.user or (login() if transport == "ssh" else "")
        if not user or _CONTROL.search(user):
            raise UsageError(f"{key}: the login {user!r} is no account", hint="set user in the inventory")
        found.setdefault(_Login(user, transport), []).append(key)
    return found


def _lines(
    plugins: Mapping[str, list[str]], logins: Mapping[_Login, list[str]], privileges: Sequence[str]
) -> Iterator[str]:
    """The lines of a script."""
    if not plugins:
        yield "# No rights are needed: these experiments use no host."
        return
    for experiment, names in plugins.items():
        yield f"# {experiment}: {', '.join(names)}"
    if not logins:
        yield "# No rights are needed: the inventory has no Windows hosts, or they are simulated."
        return
    yield from (f"# {line}" for line in _EQUIVALENT)
    for login, hosts in logins.items():
        yield ""
        yield f"# On {', '.join(hosts)}, reached over {login.transport}; run as administrator:"
        yield from _grant(login)
    if privileges:
        yield ""
        yield from _check_privileges(privileges)


def _grant(login: _Login) -> Iterator[str]:
    user = _quote(login.user)
    yield f"Add-LocalGroupMember -SID '{_ADMINISTRATORS}' -Member {user}  # Administrators, whose name is translated"
    if login.transport == "ssh":
        yield "# sshd reads the keys of all administrators from one file, which only they and SYSTEM may write:"
        yield f"Add-Content -Path {_quote(_KEYS)} -Value 'PUBLIC KEY OF {_QUOTES.sub('', login.user)}'"
        yield f"icacls.exe {_quote(_KEYS)} /inheritance:r /grant '*{_ADMINISTRATORS}:F' /grant '*S-1-5-18:F'"
        return
    if login.is_local:
        yield "# Without this, Windows filters the rights of a local account that logs in over the network (401, or 5):"
        yield f"New-ItemProperty -Path '{_POLICIES}' -Name LocalAccountTokenFilterPolicy -Value 1 -Force"
    yield "# By default RootSDDL lets all administrators use WinRM. To allow only this login:"
    yield f"# $sid = ([Security.Principal.NTAccount]{user}).Translate([Security.Principal.SecurityIdentifier]).Value"
    yield r'# Set-Item WSMan:\localhost\Service\RootSDDL "O:NSG:BAD:P(A;;GA;;;$sid)(A;;GR;;;IU)" -Force'


def _check_privileges(privileges: Sequence[str]) -> Iterator[str]:
    """Every administrator has them, unless a policy removed them: the script reports what the login lacks."""
    yield "# Administrators have these user rights unless a policy took them away. Run as the login itself:"
    yield f"foreach ($right in {', '.join(map(_quote, privileges))}) {{"
    yield "  if (-not (whoami.exe /priv /fo csv /nh | Select-String -SimpleMatch $right -Quiet)) {"
    yield '    Write-Warning "$right is missing: see Local Policies, User Rights Assignment"'
    yield "  }"
    yield "}"


def _quote(text: str) -> str:
    """A literal of PowerShell."""
    return "'" + _QUOTES.sub(r"\g<0>\g<0>", text) + "'"
