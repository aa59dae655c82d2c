"""SSH host keys: by its key a machine is recognized later, unless other machines have the same one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.core.api_fact import PseudoFact
from chaos.core.identity import MACHINE, NodeIdentity, shared_fields
from chaos.engine.planning.identity import node_identity
from chaos.engine.preflight.check import Check, Diagnosis, ok, refusal, warning
from chaos.engine.preflight.observations import ClusterObservations, HostObservations, Need

_HOST = frozenset({Need.HOST})
_NEW_KEYS = {
    "linux": "give each machine its own keys: remove /etc/ssh/ssh_host_*, run `ssh-keygen -A`, restart sshd",
    "windows": (
        "give each machine its own: a certificate for the HTTPS listener of WinRM, or keys of sshd (remove ssh_host_*"
        r" in C:\ProgramData\ssh, restart the service sshd)"
    ),
}


class HostKeyCheck(Check):
    """A host was bound to its Node by a proof; this is about what is compared again before each command."""

    name = "host-key"
    summary = "by its SSH host key, or by another value that no other machine has, the host is recognized later"
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        nodes = {name: node_identity(node) for name, node in observations.view.nodes.items()}
        for host in observations.reachable_hosts():
            yield _diagnose(host, _others_with_its_key(host, observations), nodes)


def _diagnose(host: HostObservations, others: list[str], nodes: Mapping[str, NodeIdentity]) -> Diagnosis:
    """The diagnosis of one host, whose key ``others`` have too."""
    name, key = host.node, host.fact(PseudoFact.HOST_KEY)
    if key and not others:
        return ok("no other machine is known to have its host key", name)
    if not _has_own_value(host, nodes):
        why = f"{', '.join(others)} may have the same host key" if others else "its transport reports no host key"
        is_shared = str(host.fact("stable-id") or "").startswith(MACHINE)
        no_id = "its machine ID is shared" if is_shared else "it has no ID that is the same after a boot"
        message = f"{name} cannot be recognized later: {no_id}, its kubelet has no certificate, and {why}"
        return refusal(message, _NEW_KEYS[host.target.os], name, _HOST)
    if others:
        message = f"the host key of {name} proves nothing: {', '.join(others)} has it too"
        return warning(message, _NEW_KEYS[host.target.os], name, _HOST)
    return ok("it has no host key, but another value that no other machine has", name)


def _has_own_value(host: HostObservations, nodes: Mapping[str, NodeIdentity]) -> bool:
    """Whether a value that is compared before each command is of this machine alone."""
    shared = shared_fields(nodes[host.node], nodes)
    own_uuid = bool(host.fact("system-uuid")) and "system_uuid" not in shared
    kind, _, _ = str(host.fact("stable-id") or "").partition(" ")
    own_id = kind == "container" or (kind == "machine" and "machine_id" not in shared)
    return bool(host.fact("kubelet-user")) or own_id or own_uuid


def _others_with_its_key(host: HostObservations, observations: ClusterObservations) -> list[str]:
    """Nodes whose hosts present the host's key too, or may do so by known_hosts."""
    key = host.fact(PseudoFact.HOST_KEY)
    present = {name for name, each in observations.hosts.items() if key and each.fact(PseudoFact.HOST_KEY) == key}
    known = {name for name, keys in observations.known_host_keys.items() if key in keys}
    return sorted((present | known) - {host.node})


CHECK = HostKeyCheck()
