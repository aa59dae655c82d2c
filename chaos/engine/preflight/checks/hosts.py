"""Checks of hosts (reachability, rights, kind of machine) and of their power controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.core.driver import PowerSettings
from chaos.core.identity import Binding, NodeIdentity, is_same_uuid
from chaos.core.inventory import Inventory
from chaos.core.power_identity import bind_power
from chaos.engine.observations import ClusterObservations, HostObservations, Need
from chaos.engine.planning.identity import host_identity, node_identity
from chaos.engine.preflight.check import LINUX, WINDOWS, Diagnosis, check, host_check, note, ok, refusal, warning


@check(
    "host-reachable",
    "the host can be reached and trusted, and reports its machine ID and boot",
    facts=("machine-id", "boot-id", "pid1-start"),
    is_final=True,
)
def host_reachable(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Check the connection to the host: it is the same kind as in a run."""
    for node, host in sorted(observations.hosts.items()):
        if host.error:
            hint = host.hint or f"make sure that the host of {node} can be reached"
            yield refusal(host.error, hint, node, frozenset({Need.HOST}))
        elif host.is_reachable:
            yield ok(_describe_answer(observations.inventory, host), node)


@check(
    "openssh",
    "for transport openssh, ssh is new enough, accepts its configuration, never prompts, trusts known keys only, and"
    " can create a control socket",
    is_final=True,
)
def openssh(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Check ssh on this machine, without a connection."""
    for node, problems in sorted(observations.transport_problems.items()):
        if node in observations.hosts and observations.hosts[node].is_skipped:
            continue
        for problem in problems:
            yield refusal(f"{node}: {problem.message}", problem.hint, node, frozenset({Need.HOST}))
        if not problems:
            yield ok("ssh is ready for it", node)


def _describe_answer(inventory: Inventory, host: HostObservations) -> str:
    """The message for a host that answers; on Windows it names the transport, because there is a choice."""
    if host.target.os != "windows":
        return "it answers"
    _, entry = inventory.host_of(host.node)
    transport = entry.transport or inventory.defaults.transport
    return "it answers over WinRM" if transport == "winrm" else f"it answers over {str(transport or 'ssh').upper()}"


@host_check(
    "sudo",
    "commands run as root, through sudo without a password unless the login user is root",
    facts=("root",),
    systems=LINUX,
    is_final=True,
)
def sudo(host: HostObservations) -> Diagnosis | None:
    """Check that the login user is root, or that sudo needs no password."""
    if host.fact("root"):
        return ok("commands run as root", host.node)
    why = "" if "root" in host.target.facts else f": {host.unknown_reason('root')}"
    hint = "allow the login user sudo without a password, or set sudo: true in the inventory"
    return refusal(f"{host.node}: commands do not run as root{why}", hint, host.node, frozenset({Need.ROOT}))


@host_check(
    "administrator",
    "on Windows commands run with the rights of an administrator",
    facts=("root",),
    systems=WINDOWS,
    is_final=True,
)
def administrator(host: HostObservations) -> Diagnosis | None:
    """Services, firewall and tasks need an elevated login; a filtered one is a member of the group only."""
    if host.fact("root"):
        return ok("commands run as administrator", host.node)
    why = "" if "root" in host.target.facts else f": {host.unknown_reason('root')}"
    hint = (
        "use a domain account that is an administrator there, or set LocalAccountTokenFilterPolicy for a local"
        " one: nodefall windows-rights prints both"
    )
    message = f"{host.node}: commands do not run with the rights of an administrator{why}"
    return refusal(message, hint, host.node, frozenset({Need.ROOT}))


@host_check("shared-kernel", "the host does not share its kernel", facts=("shared-kernel",), systems=LINUX)
def shared_kernel(host: HostObservations) -> Diagnosis | None:
    """A fault of the kernel, the clock or the memory affects all its users: such steps are refused."""
    if host.fact("shared-kernel"):
        message = f"{host.node}: the machine is a container: its kernel and clock are shared with other programs"
        hint = "use a dedicated machine for steps on the kernel or the clock: they are refused here"
        return note(message, hint, host.node, frozenset({Need.HOST}))
    if host.fact("shared-kernel") is False:
        return ok("the kernel is not shared", host.node)
    return None


_BOUND = 1.0  # seconds, as in the judge
_LATE_BOUND = 60.0  # seconds by which a failsafe task may act late
_CLOCK_HINTS = {
    "linux": "synchronise both clocks (chrony, systemd-timesyncd)",
    "windows": "synchronise both clocks: run w32tm.exe /resync there, and see w32tm.exe /query /status",
}


@host_check("clock", "the host's clock is within 1 s of the local clock", facts=("host-time",))
def clock(host: HostObservations) -> Diagnosis | None:
    """Bounds are judged by the local clock; timestamps of the host are additional evidence.

    Failsafe tasks on Windows follow the host's clock, so they are late if the clock is set back while they wait.
    """
    if host.clock_offset is not None:
        return _compare(host, host.clock_offset)
    return None


def _compare(host: HostObservations, offset: float) -> Diagnosis:
    if abs(offset) - host.clock_uncertainty <= _BOUND:
        return ok("it agrees with the local clock", host.node)
    direction = "ahead of" if offset > 0 else "behind"
    message = (
        f"{host.node}: its clock is {abs(offset):.1f} s {direction} the local clock (± {host.clock_uncertainty:.1f} s)"
    )
    hint, needs = _CLOCK_HINTS[host.target.os], frozenset({Need.HOST})
    if host.target.os == "windows" and offset - host.clock_uncertainty > _LATE_BOUND:
        return refusal(f"{message}; if it were corrected, failsafe tasks would be late", hint, host.node, needs)
    return warning(message, hint, host.node, needs)


_LISTERS = ("runtime-socket", "runtime-client")
_LIST_HINTS = {
    "linux": "install crictl or, where containerd is the runtime, ctr",
    "windows": "choose a node with Linux: containers of Windows hosts cannot be listed yet",
}


@host_check("container-list", "the host lists its running containers, where an assertion asks for them", facts=_LISTERS)
def container_list(host: HostObservations) -> Diagnosis | None:
    """The API server removes a pod that is force-deleted while its containers run: only the host itself shows them."""
    if why := _missing(host):
        message = f"{host.node}: its running containers cannot be listed: {why}"
        return refusal(message, _LIST_HINTS[host.target.os], host.node, frozenset({Need.CONTAINERS}))
    return ok(f"{host.fact('runtime-client')} lists the running containers", host.node)


def _missing(host: HostObservations) -> str:
    """Why the containers of a host cannot be listed; "" if they can."""
    unknown = [host.unknown_reason(fact) for fact in _LISTERS if host.fact(fact) is None]
    if unknown:
        return unknown[0]
    client, socket = host.fact("runtime-client"), host.fact("runtime-socket")
    if client.endswith("/ctr") and "containerd" not in socket:
        return f"{client} speaks only to containerd, not to {socket}"
    return ""


@host_check("power-recovery", "the host has a power control that answers and can power it on")
def power_recovery(host: HostObservations) -> Diagnosis | None:
    """Check that the power control answers, and reports a reachable machine as on."""
    down = frozenset({Need.DOWN})
    if host.target.power_error:
        return refusal(host.target.power_error, host.target.power_hint, host.node, frozenset({Need.HOST}))
    if not host.target.power:
        message = f"{host.node} has no power control: once down it must boot by itself or be powered on by hand"
        return warning(message, "give the host one in the inventory; see docs/power.md", host.node, down)
    if "on" not in host.target.power_capabilities:
        message = f"{host.node}: its power control cannot power it on"
        return warning(message, "give the host another one in the inventory", host.node, down)
    return ok("its power control answers", host.node)


_HOST = frozenset({Need.HOST})


@check(
    "power-identity",
    "the power control switches the machine behind the Node, by its UUID, name or address",
    facts=("system-uuid",),
    is_final=True,
)
def power_identity(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Compare the UUID of a BMC, or the names and addresses of a container, with the Node."""
    nodes = {name: node_identity(node) for name, node in observations.view.nodes.items()}
    for host in observations.reachable_hosts():
        key, entry = observations.inventory.host_of(host.node)
        if not host.target.power or entry.power is None:
            continue
        known, expected = host_identity(host.target.facts), entry.power.identity or ""
        binding = bind_power(nodes[host.node], known, host.power_identity, nodes, expected)
        if not binding.proofs and not binding.contradictions and (others := _others(host, nodes)):
            yield _ambiguous(host, key, others)
        else:
            yield _diagnose(host.node, key, entry.power, binding, observations.inventory)


def _others(host: HostObservations, nodes: Mapping[str, NodeIdentity]) -> list[str]:
    """Other Nodes that have the UUID reported by the host's power control."""
    uuid = host.power_identity.system_uuid
    return sorted(name for name, node in nodes.items() if name != host.node and is_same_uuid(node.system_uuid, uuid))


def _ambiguous(host: HostObservations, key: str, others: list[str]) -> Diagnosis:
    uuid = host.power_identity.system_uuid
    message = (
        f"the power control of host {key} may be that of {', '.join(others)}: they have its system UUID {uuid} too"
    )
    hint = f"give each machine its own UUID, or, if the power control is the right one, write identity: {uuid} in power"
    return refusal(message, hint, host.node, frozenset({Need.DOWN}))


def _diagnose(name: str, key: str, power: PowerSettings, binding: Binding, inventory: Inventory) -> Diagnosis:
    """The diagnosis for the Node ``name``, whose host is ``key`` in the inventory."""
    if binding.contradictions:
        message = f"the power control of host {key} is not that of {name}: {'; '.join(binding.contradictions)}"
        return refusal(message, f"correct power of the host {key} in the inventory; see docs/power.md", name, _HOST)
    if binding.proofs:
        return ok(f"it switches the machine of its Node by {', '.join(binding.proofs)}", name)
    if other := _same_power(inventory, key, power):
        message = f"the hosts {key} and {other} of the inventory have the same power control"
        return refusal(message, f"correct power of {key} or {other} in the inventory", name, _HOST)
    message = f"{name}: nothing shows that its power control ({power.kind}) is that of this machine"
    return warning(message, f"check power of the host {key} in the inventory", name, frozenset({Need.DOWN}))


def _same_power(inventory: Inventory, key: str, power: PowerSettings) -> str:
    """The key of another host with the same power control, or ""."""
    if not power.names_machine:
        return ""
    return next((other for other, host in inventory.hosts.items() if other != key and host.power == power), "")


_DOWN, _NOT_READY = frozenset({Need.DOWN}), frozenset({Need.DOWN, Need.ENDS_PODS})


@check("power-provider", "the cloud keeps a machine that is off, and may start it again")
def power_provider(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Report auto-scaling groups, node auto-repair, spot instances and other risks that the power control knows."""
    for host in observations.reachable_hosts():
        for risk in host.power_risks:
            needs = _NOT_READY if risk.when_not_ready else _DOWN
            yield refusal(f"{host.node}: {risk.message}", risk.hint, host.node, needs)
        if host.target.power and not host.power_risks:
            yield ok("nothing is known that would replace it", host.node)
