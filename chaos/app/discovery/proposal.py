"""The inventory that a cluster's Nodes propose, with what cannot be done on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.app.discovery.machines import Access, Entries, Entry, LinuxTransport, SshUse, access_of
from chaos.app.discovery.nodes import MANAGED, UNKNOWN, Found, ListedNode, distribution_of, summary
from chaos.app.discovery.powers import Kinds, PowerChoice, powers

_SHOWN = 4  # names in a note
_DEFAULTS = "of all nodes, also of new ones; over a network each is reached at the first InternalIP of its Node"
PASSWORD = "NODEFALL_WINRM_PASSWORD"  # noqa: S105 - the name of a variable
Hosts = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What was read of a cluster. ``kubeconfig`` as the inventory has it; ``notes``: what could not be read."""

    name: str
    kubeconfig: str
    context: str
    server: str
    version: str
    uid: str
    nodes: tuple[ListedNode, ...]
    has_kubeadm_config: bool = False
    notes: tuple[str, ...] = ()
    domains: Mapping[str, str] = field(default_factory=dict)  # of libvirt on this machine: names by UUID


@dataclass(frozen=True, slots=True)
class Choices:
    """What replaces the proposal; None for the proposal. ``known_hosts``: the file with accepted keys.

    ``ssh_use``: what the ssh configuration of this machine sets for the Nodes, for transport openssh.
    """

    user: str | None = None
    port: int | None = None
    identity_file: str | None = None
    proxy_jump: str | None = None
    known_hosts: str | None = None
    power: PowerChoice | None = None
    transport: LinuxTransport | None = None
    ssh_use: SshUse | None = None

    @property
    def linux_transport(self) -> LinuxTransport | None:
        """The chosen transport. Any login option implies SSH."""
        is_ssh = any(each is not None for each in (self.user, self.port, self.identity_file, self.proxy_jump))
        return self.transport or ("ssh" if is_ssh else None)


@dataclass(frozen=True, slots=True)
class Proposal:
    """``entries`` are the inventory. ``access`` by node. ``notes``: what cannot be done, and why."""

    distribution: Found
    head: tuple[str, ...]
    entries: Entries
    access: Mapping[str, Access]
    notes: tuple[str, ...] = field(default=())


def propose(facts: ClusterFacts, choices: Choices, kinds: Kinds) -> Proposal:
    """The inventory of a cluster. ``kinds``: settings of the installed power drivers by name."""
    found = distribution_of(facts.nodes, has_kubeadm_config=facts.has_kubeadm_config)
    access = {node.name: access_of(node, choices.linux_transport) for node in facts.nodes}
    shared, hosts = connections(access, choices.user, _ssh_settings(choices), choices.ssh_use)
    default_power, machine_powers, power_reason = powers(facts.nodes, access, choices.power, kinds, facts.domains)
    if default_power:
        shared = (*shared, Entry("power", default_power, power_reason))
    reasons = {name: access[name].reason for name in hosts}
    for name, settings in machine_powers.items():
        hosts.setdefault(name, {})["power"] = settings
    rows = tuple(
        Entry(node.name, hosts[node.name], reasons.get(node.name, "")) for node in facts.nodes if node.name in hosts
    )
    reason = power_reason if machine_powers else "only what differs from defaults"
    entries: Entries = (
        Entry("apiVersion", "nodefall.dev/v1alpha1"),
        Entry("kind", "Inventory"),
        Entry("metadata", {"name": facts.name}),
        Entry("cluster", tuple(_cluster(facts, access))),
        *([Entry("defaults", shared, _DEFAULTS)] if shared else []),
        *([Entry("hosts", rows, reason)] if rows else []),
        Entry("protected", tuple(_protected(facts.nodes, access)), "never a target"),
        Entry("limits", tuple(_limits(facts.nodes, access))),
    )  # fmt: skip
    shown = f"{found.name}, shown by {found.shown_by} ({found.source})" if found.shown_by else "unknown distribution"
    head = (f"{facts.server}, Kubernetes {facts.version}; {shown}", *summary(facts.nodes))
    return Proposal(found, head, entries, access, (*facts.notes, *_notes(facts, found, access)))


def _ssh_settings(choices: Choices) -> Entries:
    rows = (
        Entry("port", choices.port, "of sshd, as given"),
        Entry("identityFile", choices.identity_file, "private key of the login, besides those of the SSH agent"),
        Entry("proxyJump", [choices.proxy_jump] if choices.proxy_jump else None, "the nodes are behind it"),
        Entry("knownHosts", choices.known_hosts, "host keys whose fingerprints were accepted; others are refused"),
    )
    return tuple(row for row in rows if row.value is not None)


def _cluster(facts: ClusterFacts, access: Mapping[str, Access]) -> Iterator[Entry]:
    yield Entry(
        "kubeconfig", facts.kubeconfig, "as kubectl uses it" if facts.kubeconfig else "in a pod: its service account"
    )
    if facts.context:
        yield Entry("context", facts.context, "fixed, because the current context of a kubeconfig may change")
    yield Entry("expectUID", facts.uid, "of namespace kube-system: any other cluster is refused")
    if any(each.is_container for each in access.values()):
        yield Entry(
            "allowNodeProxy", True, "containers in a virtual machine, as Docker Desktop's, have kubelets out of reach"
        )


def _protected(nodes: tuple[ListedNode, ...], access: Mapping[str, Access]) -> Iterator[Entry]:
    yield Entry("roles", ["control-plane"], "remove it only for experiments on control planes")
    if others := [node.name for node in nodes if not access[node.name].is_machine]:
        yield Entry("nodes", others, "not machines")


def _limits(nodes: tuple[ListedNode, ...], access: Mapping[str, Access]) -> Iterator[Entry]:
    workers = [node for node in nodes if not node.is_control_plane and access[node.name].is_machine]
    ready = sum(node.is_ready for node in workers)
    spared = max(1, ready - max(1, ready // 10))
    yield Entry("maxNodes", 1, "targets of one experiment at a time")
    yield Entry("minReadyNodes", spared, f"workers that must stay Ready; {ready} are now")


def _notes(facts: ClusterFacts, found: Found, access: Mapping[str, Access]) -> Iterator[str]:
    for without in dict.fromkeys(each for each in access.values() if not each.transport):
        names = [name for name, each in access.items() if each == without]
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        if without.is_machine:
            yield f"no commands on {shown}: {without.reason}; only actions of the API work, such as drain and taint"
        else:
            yield f"{shown}: {without.reason}; protected"
    if found.name in MANAGED:
        yield f"{found.name} may replace a machine that is down: suspend auto-repair and auto-scaling of its pool first"
    if found.name in MANAGED and any(each.transport in ("ssh", "openssh") for each in access.values()):
        yield f"{found.name} admits SSH only where it was configured; otherwise doctor reports the nodes as unreachable"
    yield from _transport_notes(access)
    if found.name == UNKNOWN:
        yield "unknown distribution: transport and login are guesses"
    if not any(not node.is_control_plane for node in facts.nodes):
        yield "all nodes are control planes, which are protected: only experiments without targets can be run"
    elif sum(not node.is_control_plane for node in facts.nodes) == 1:
        yield "the only worker must stay Ready: set minReadyNodes to 0 to let it fail"


def _transport_notes(access: Mapping[str, Access]) -> Iterator[str]:
    if any(each.is_container and each.transport in ("ssh", "openssh") for each in access.values()):
        yield (
            "kind nodes accept SSH only with an image that has sshd, such as the image of nodefall kind up, and with "
            "your key in /root/.ssh/authorized_keys"
        )
    if any(each.transport == "pod" for each in access.values()):
        yield (
            "transport pod: doctor and runs create a privileged pod on each node that they inspect, and delete it "
            "afterwards; see docs/transports.md for the consequences"
        )
    if any(each.transport == "winrm" for each in access.values()):
        yield "Windows: set the variable NODEFALL_WINRM_PASSWORD, and see docs/windows.md for certificates and rights"


def connections(
    access: Mapping[str, Access], user: str | None, ssh: Entries, use: SshUse | None = None
) -> tuple[Entries, Hosts]:
    """Entries of ``defaults``, and the keys of each host that differs. ``user`` replaces the proposed logins of SSH."""
    linux = [each for each in access.values() if each.transport in ("ssh", "openssh", "docker", "pod")]
    usual = Counter(each.transport for each in linux).most_common(1)
    transport = usual[0][0] if usual else ""
    shared: Entries = ()
    login = ""
    if transport == "docker":
        shared = tuple(_docker(next(each for each in linux if each.transport == "docker")))
    elif transport == "pod":
        shared = (Entry("transport", "pod", next(each.reason for each in linux if each.transport == "pod")),)
    elif transport == "openssh":
        login = user or next(each.user for each in linux if each.transport == "openssh")
        shared = (*_openssh(login, use), *ssh)
    elif transport == "ssh":
        logins = [each for each in linux if each.transport == "ssh"]
        (first, _), *_ = Counter(each.user for each in logins).most_common(1)
        login, reason = (
            (first, next(each.reason for each in logins if each.user == first)) if user is None else (user, "")
        )
        shared = (*_ssh(login, reason), *ssh)
    hosts = {name: dict(_differences(each, transport, login, user)) for name, each in access.items()}
    return shared, {name: keys for name, keys in hosts.items() if keys}


def _docker(access: Access) -> Iterator[Entry]:
    yield Entry("transport", "docker", access.reason)
    if access.engine:
        yield Entry("engine", access.engine, "by the provider IDs of the Nodes")


def _ssh(login: str, reason: str) -> Iterator[Entry]:
    yield Entry("transport", "ssh", "commands are run over SSH; host keys are verified")
    if login:
        yield Entry("user", login, reason or "as given")
    yield Entry("sudo", True, "without a password, where the login is not root: nodefall sudoers prints the rules")


def _openssh(login: str, use: SshUse | None) -> Iterator[Entry]:
    why = f", whose configuration sets {', '.join(use.keys)} for them" if use else ""
    yield Entry("transport", "openssh", f"commands are run by the ssh of this machine{why}")
    if use and use.destination == "name":
        yield Entry("options", {"destination": "name"}, "ssh gets the Nodes' names, which are Hosts in ssh_config")
    if login:
        yield Entry("user", login, "as given")
    yield Entry("sudo", True, "without a password, where the login is not root: nodefall sudoers prints the rules")


def _differences(access: Access, transport: str, login: str, user: str | None) -> Iterator[tuple[str, Any]]:
    if access.transport == "winrm":
        yield from (("os", "windows"), ("transport", "winrm"), ("user", access.user))
        yield "options", {"password": {"env": PASSWORD}}
    elif access.transport and access.transport != transport:
        yield "transport", access.transport
    if access.transport == "ssh" and user is None and access.user and access.user != login:
        yield "user", access.user
