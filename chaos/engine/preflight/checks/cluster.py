"""Checks of the connection to the cluster, and of other runs on it and their leftovers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.core.api_fact import field
from chaos.core.kube import is_ready
from chaos.core.labels import HELPER_LABEL
from chaos.engine.observations import (
    MUTATING,
    SLICES,
    VALIDATING,
    ClusterObservations,
    HelperNamespace,
    Need,
    fault_groups,
)
from chaos.engine.preflight.check import Diagnosis, Severity, check, list_error_notes, note, ok, refusal, warning


@check("api-connection", "the API server's certificate is verified, and no proxy of the environment is used")
def api_connection(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Warn about a weak connection: an attacker could read the credentials and forge answers of the API server."""
    for risk in observations.connection_risks:
        yield warning(risk, "name its CA, set NO_PROXY for it, and correct keys of the kubeconfig that have no effect")
    if not observations.connection_risks:
        yield ok("it is verified")


@check("lock", "no other run is active on the cluster", is_final=True)
def lock(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """Refuse to run while another run is active on the cluster."""
    yield from list_error_notes(observations, "leases")
    if observations.lock_holder:
        hint = "wait for it to end (nodefall status), or stop it (nodefall abort)"
        yield refusal(f"{observations.lock_holder} has a run on this cluster", hint)
    elif "leases" not in observations.list_errors:
        yield ok("no run is active")


_READ = ("configmaps", "nodes")


@check("pending-undo", "no earlier run has a pending undo", is_final=True)
def pending_undo(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """A run on a cluster that another run left broken would blame the cluster for that fault."""
    for finding in observations.pending_undo:
        if finding.run and finding.run == observations.lock_run:
            why = f"run {finding.run} is under way, by {observations.lock_holder}: its undo is still pending"
            yield note(f"{why} {finding.description}", "wait for it to end (nodefall status)")
        else:
            yield refusal(str(finding), finding.hint)
    for mark in observations.stale_marks:
        why = f"{mark.node} has the mark of an earlier run ({mark}), but the values from before that step"
        yield note(why, f"the next run removes the mark; or run {mark.removal}")
    yield from list_error_notes(observations, *_READ)
    if not observations.pending_undo and not any(path in observations.list_errors for path in _READ):
        yield ok("no undo is pending")


_ENFORCE = "pod-security.kubernetes.io/enforce"
_LEVELS = ("baseline", "restricted")


@check("helper-pods", "the namespace of transport pod admits privileged pods (Pod Security), and none is left behind")
def helper_pods(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """A host whose pod is refused or does not become Ready is reported by host-reachable, with the server's words."""
    for namespace in observations.helper_namespaces:
        yield _security(namespace)
        if namespace.left:
            yield _leftovers(namespace)
        yield note(
            f"transport pod: pods in {namespace.name} that nodefall makes are root on their nodes",
            "any user who may create pods and pods/exec there is root on every node",
        )


def _security(namespace: HelperNamespace) -> Diagnosis:
    name = namespace.name
    if namespace.error:
        return note(f"namespace {name} cannot be read: {namespace.error}", f"grant get on namespaces {name}")
    level = namespace.labels.get(_ENFORCE, "")
    if level in _LEVELS:
        hint = f"kubectl label namespace {name} --overwrite {_ENFORCE}=privileged, or name another one in options"
        return warning(f"{_ENFORCE} of namespace {name} is {level}: it forbids helper pods, unless exempt", hint)
    return ok(f"Pod Security of namespace {name} admits helper pods ({level or 'no label'})")


def _leftovers(namespace: HelperNamespace) -> Diagnosis:
    pods = ", ".join(namespace.left)
    hint = (
        f"nodefall never reuses them, and they end by themselves (lifetime); unless nodefall runs elsewhere, "
        f"kubectl -n {namespace.name} delete pods -l {HELPER_LABEL}=pod"
    )
    return warning(f"namespace {namespace.name} has helper pods of other processes: {pods}", hint)


@check("quorum", "more than half of the control planes stay Ready", facts=("control-plane-files",), is_final=True)
def quorum(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """etcd needs more than half of its members for every write (https://etcd.io/docs/v3.5/faq/), undo included."""
    members = _members(observations)
    for host, group in fault_groups(observations):
        lost = sorted(set(members) & set(group))
        remaining = sum(name not in group and is_ready(observations.view.nodes[name]) for name in members)
        if lost and remaining <= len(members) // 2:
            message = f"without {', '.join(lost)} only {remaining} of {len(members)} control planes would be Ready"
            hint = "choose other targets: the cluster would reject all writes, including the undo"
            yield refusal(message, hint, host, frozenset({Need.ENDS_PODS}))
        else:
            yield ok("enough control planes stay Ready", host)


def _members(observations: ClusterObservations) -> list[str]:
    """The nodes that run etcd, by their labels, static pods and host facts."""
    hosts = observations.reachable_hosts()
    shown = {host.node for host in hosts if any("etcd" in path for path in host.fact("control-plane-files") or ())}
    return sorted({*observations.view.etcd_members(), *shown})


_SERVICE = "kubernetes.io/service-name"


def _diagnoses(observations: ClusterObservations) -> Iterator[Diagnosis]:
    for name, service, fails in _webhooks(observations):
        nodes = _nodes(observations, service)
        effect = "the API server rejects matching requests" if fails else "it is skipped (failurePolicy Ignore)"
        if nodes == []:
            if fails:
                yield warning(f"webhook {name} has no ready endpoint (service {service}): {effect}", "fix it first")
            continue
        for host, group in fault_groups(observations):
            if nodes and set(nodes) <= set(group):
                message = (
                    f"webhook {name} has all its {len(nodes)} endpoint(s) on {', '.join(group)}: without them, {effect}"
                )
                severity = Severity.REFUSAL if fails else Severity.NOTE
                hint = f"run replicas of service {service} on other nodes, or choose another target"
                yield Diagnosis(severity, message, hint, host, frozenset({Need.ENDS_PODS}))


@check("webhooks", "no admission webhook loses all its endpoints with the node")
def webhooks(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """With failurePolicy Fail and no endpoint, the API server rejects all matching writes, including those of the
    undo.
    """
    found = list(_diagnoses(observations))
    yield from found
    yield from list_error_notes(observations, VALIDATING, MUTATING, SLICES)
    if not found:
        yield ok("no webhook depends on one node")


def _webhooks(observations: ClusterObservations) -> Iterator[tuple[str, str, bool]]:
    """Webhooks that run in the cluster: name, service, and whether failurePolicy is Fail (the default)."""
    for path in (VALIDATING, MUTATING):
        for item in observations.lists.get(path, ()):
            for hook in item.get("webhooks") or ():
                if service := field(hook, "/clientConfig/service"):
                    where = f"{service.get('namespace')}/{service.get('name')}"
                    yield str(hook.get("name")), where, hook.get("failurePolicy", "Fail") == "Fail"


def _nodes(observations: ClusterObservations, service: str) -> list[str | None] | None:
    """The nodes of the service's ready endpoints; None if they are unknown."""
    if SLICES not in observations.lists:
        return None
    return [
        endpoint.get("nodeName")
        for item in observations.lists[SLICES]
        if _service_of(item) == service
        for endpoint in item.get("endpoints") or ()
        if field(endpoint, "/conditions/ready") is not False
    ]


def _service_of(item: dict[str, Any]) -> str:
    metadata = item.get("metadata") or {}
    return f"{metadata.get('namespace')}/{(metadata.get('labels') or {}).get(_SERVICE)}"
