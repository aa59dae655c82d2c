"""Helper pods of transport pod: whether their namespace admits them, and those that earlier processes have left."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.labels import HELPER_LABEL
from chaos.preflight.check import Check, Diagnosis, note, ok, warning
from chaos.preflight.observations import ClusterObservations, HelperNamespace

_ENFORCE = "pod-security.kubernetes.io/enforce"
_LEVELS = ("baseline", "restricted")


class HelperPods(Check):
    """A host whose pod is refused or does not become Ready is reported by host-reachable, with the server's words."""

    name = "helper-pods"
    summary = "the namespace of transport pod admits privileged pods (Pod Security), and none is left behind"

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for namespace in observations.helper_namespaces:
            yield _security(namespace)
            if namespace.left:
                yield _leftovers(namespace)
            yield note(
                f"transport pod: pods in {namespace.name} that nodefall makes are root on their nodes",
                "who may create pods and pods/exec there is root on every node, too",
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
        f"they are never used, and end by themselves (lifetime); unless nodefall runs elsewhere, "
        f"kubectl -n {namespace.name} delete pods -l {HELPER_LABEL}=pod"
    )
    return warning(f"namespace {namespace.name} has helper pods of other processes: {pods}", hint)


CHECK = HelperPods()
