"""The rights that experiments need: permissions on a cluster, sudo rules on hosts, rights on Windows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from chaos.api import load
from chaos.app.day.document import day_permissions, load_game_day
from chaos.app.fleet.loading import fleet_permissions, load_fleet
from chaos.app.snapshot.take import snapshot_permissions
from chaos.app.wiring.connect import inventory_path
from chaos.cli.output import echo, print_document
from chaos.core.assertion import HostFactAssertion
from chaos.core.errors import UsageError
from chaos.core.experiment import Experiment
from chaos.core.inventory import Cluster, Inventory
from chaos.core.permission import Permission, role_manifests
from chaos.documents.document import kind_of_document, read_document
from chaos.documents.inventory import load_inventory
from chaos.documents.yaml_text import dump
from chaos.engine.connection import login
from chaos.engine.load import required_permissions
from chaos.engine.observations import LISTS
from chaos.engine.planning.permissions import describe_risk, permissions_to_list
from chaos.machines.driver import HostContext, transport_of
from chaos.machines.sessions.settings import LocalUser

_KINDS = {"user": "User", "group": "Group", "serviceaccount": "ServiceAccount"}
_OPTIONAL = """\
# Optional: read by doctor, plan and run if permitted (admission webhooks, health checks of machines and nodes). They
# report what they could not read. Remove the "# " to grant it:
"""


def rbac(
    experiments: tuple[Path, ...], subject: str, name: str, snapshot: bool, inventory: str | None, as_json: bool
) -> None:
    """Print roles with exactly the permissions that EXPERIMENTS, or game days, need together."""
    if not experiments and not snapshot:
        raise UsageError("missing argument: give EXPERIMENTS, or --snapshot")
    subject_ref = _subject(subject)
    described = load_inventory(Path(inventory)) if inventory else None
    permissions: set[Permission] = set()
    for path in experiments:
        permissions.update(_permissions(path, described))
    if snapshot:
        permissions.update(_snapshot_permissions(described.cluster if described else None))
    warnings = sorted({risk for permission in permissions if (risk := describe_risk(permission))})
    for risk in warnings:
        click.echo(f"warning: {risk}", err=True)
    optional = permissions_to_list(permissions, LISTS) if experiments else []
    if as_json:
        rows = {"permissions": sorted(permissions), "optional": optional}
        print_document({key: [_row(each) for each in found] for key, found in rows.items()} | {"warnings": warnings})
    else:
        click.echo(dump(role_manifests(permissions, name, subject_ref)), nl=False)
        if optional:
            optional_roles = dump(role_manifests(optional, f"{name}-doctor", subject_ref))
            click.echo(_OPTIONAL + _comment_out(optional_roles), nl=False)


def _snapshot_permissions(cluster: Cluster | None) -> Iterable[Permission]:
    return snapshot_permissions(bool(cluster and cluster.allow_node_proxy))


def _permissions(path: Path, inventory: Inventory | None) -> Iterable[Permission]:
    kind = kind_of_document(path, read_document(path))
    if kind == "Fleet":
        return fleet_permissions(load_fleet(path))
    if kind == "GameDay":
        return day_permissions(load_game_day(path), inventory)
    return required_permissions(load(path), inventory)


def _subject(text: str) -> dict[str, str]:
    kind, colon, name = text.partition(":")
    if kind not in _KINDS or not colon or not name:
        raise UsageError(f"--subject {text!r}: not of the form user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME")
    if kind != "serviceaccount":
        return {"apiGroup": "rbac.authorization.k8s.io", "kind": _KINDS[kind], "name": name}
    namespace, slash, account = name.partition("/")
    if not slash or not namespace or not account:
        raise UsageError(f"--subject {text!r}: not of the form serviceaccount:NAMESPACE/NAME")
    return {"kind": _KINDS[kind], "namespace": namespace, "name": account}


def _comment_out(text: str) -> str:
    return "".join(f"# {line}\n" for line in text.splitlines())


def _row(permission: Permission) -> dict[str, str]:
    return {
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "namespace": permission.namespace,
        "name": permission.name,
    }


# To sudoers(5), a word of capitals is ALL or the name of an alias.
_LOGIN = re.compile(r"(?![A-Z][A-Z0-9_]*\Z)[A-Za-z_][A-Za-z0-9_.-]*\$?")
_ROOT = (
    "This is equivalent to root: steps wait on the host in `sudo -n -- sh -c ...`, so that sudo is done before the",
    "fault, and undo sends arbitrary commands. Grant it to a dedicated login with a dedicated key.",
)
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


def sudoers(experiments: tuple[Path, ...], inventory: str | None, as_json: bool) -> None:
    """Print the sudo rules that EXPERIMENTS need on the hosts of an inventory, as a file for /etc/sudoers.d."""
    plugins = plugins_by_experiment(experiments)
    users = _users(load_inventory(inventory_path(inventory)))
    if as_json:
        rules = [{"user": user, "hosts": hosts} for user, hosts in users.items()] if plugins else []
        print_document({"rules": rules, "amountsToRoot": bool(rules), "because": plugins})
        return
    echo(*_sudoers_lines(plugins, users))


def plugins_by_experiment(experiments: Iterable[Path]) -> dict[str, list[str]]:
    """The actions and assertions that use hosts, of each experiment that has some. Raises BadInput."""
    loaded = (load(path).experiment for path in experiments)
    found = ((experiment.metadata.name, _host_plugins(experiment)) for experiment in loaded)
    return {name: plugins for name, plugins in found if plugins}


def _host_plugins(experiment: Experiment) -> list[str]:
    """The actions and assertions that use hosts."""
    bound = (each.bound for each in experiment.spec.expectations)
    found = {each.assertion.name for each in bound if each and isinstance(each.assertion, HostFactAssertion)}
    found |= {step.action for step in experiment.spec.method if step.bound.action.on_host}
    return sorted(found)


def _users(inventory: Inventory) -> dict[str, list[str]]:
    """The hosts by the login that needs sudo there. Raises UsageError for a login that sudoers(5) cannot express."""
    found: dict[str, list[str]] = {}
    if inventory.lab:
        return found  # its hosts are simulated
    for key in inventory.hosts or ("every node",):
        context = HostContext(inventory, key, key, LocalUser(login(), Path.home()))
        user = transport_of(context).sudo_user(context)
        if not user:
            continue
        if not _LOGIN.fullmatch(user):
            raise UsageError(f"{key}: sudoers cannot express the login {user!r}")
        found.setdefault(user, []).append(key)
    return found


def _sudoers_lines(plugins: Mapping[str, list[str]], users: Mapping[str, list[str]]) -> Iterator[str]:
    """The lines of a sudoers file."""
    if not plugins:
        yield "# No sudo is needed: these experiments use no host."
        return
    for experiment, names in plugins.items():
        yield f"# {experiment}: {', '.join(names)}"
    if not users:
        yield "# No rule is needed: hosts are reached as root, or through a container engine, or are simulated."
        return
    yield from (f"# {line}" for line in _ROOT)
    for user, hosts in users.items():
        yield f"# on {', '.join(hosts)}"
        yield f"{user} ALL=(root) NOPASSWD: ALL"


class _Login(NamedTuple):
    """A login of Windows hosts; ``transport``: winrm or ssh."""

    user: str
    transport: str

    @property
    def is_local(self) -> bool:
        """A local account, unless its name has a domain."""
        return "\\" not in self.user and "@" not in self.user


def windows_rights(experiments: tuple[Path, ...], inventory: str | None, as_json: bool) -> None:
    """Print the rights that EXPERIMENTS need on the Windows hosts of an inventory, as PowerShell."""
    plugins = plugins_by_experiment(experiments)
    logins = _logins(load_inventory(inventory_path(inventory))) if plugins else {}
    privileges = _privileges(plugins.values()) if logins else ()
    if as_json:
        rows = [{**login._asdict(), "local": login.is_local, "hosts": hosts} for login, hosts in logins.items()]
        document = {"logins": rows, "privileges": privileges, "amountsToAdministrator": bool(rows), "because": plugins}
        print_document(document)
        return
    echo(*_script_lines(plugins, logins, privileges))


def _privileges(plugins: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """User rights of the actions, sorted."""
    return tuple(sorted({right for names in plugins for name in names for right in PRIVILEGES.get(name, ())}))


def _logins(inventory: Inventory) -> dict[_Login, list[str]]:
    """Windows hosts by their login. Raises UsageError for one that cannot be written in PowerShell, or is missing."""
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


def _script_lines(
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
    for account, hosts in logins.items():
        yield ""
        yield f"# On {', '.join(hosts)}, reached over {account.transport}; run as administrator:"
        yield from _grant(account)
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
