"""What doctor says of the namespaces in which transport pod makes its pods."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.engine.observations import HelperNamespace
from tests.kit.preflightkit import messages, observed

_ENFORCE = "pod-security.kubernetes.io/enforce"
_COST = ("note", "transport pod: pods in chaos that nodefall makes are root on their nodes")


@pytest.mark.parametrize(
    ("namespace", "severity", "text"),
    [
        (HelperNamespace("chaos"), "ok", "Pod Security of namespace chaos admits helper pods (no label)"),
        (HelperNamespace("chaos", {_ENFORCE: "privileged"}), "ok", "admits helper pods (privileged)"),
        (HelperNamespace("chaos", {_ENFORCE: "baseline"}), "warning", "is baseline: it forbids helper pods"),
        (HelperNamespace("chaos", {_ENFORCE: "restricted"}), "warning", "is restricted: it forbids helper pods"),
        (HelperNamespace("chaos", error="403: no"), "note", "namespace chaos cannot be read: 403: no"),
    ],
)
def test_what_is_said_of_pod_security(namespace: HelperNamespace, severity: str, text: str) -> None:
    first, cost = messages("helper-pods", replace(observed(), helper_namespaces=(namespace,)))
    assert first[0] == severity
    assert text in first[2]
    assert (cost[0], cost[2]) == _COST


def test_pods_that_are_left_are_named() -> None:
    namespace = HelperNamespace("chaos", left=("nodefall-host-x on worker-1 of run drain-1",))
    found = messages("helper-pods", replace(observed(), helper_namespaces=(namespace,)))
    assert [severity for severity, _, _ in found] == ["ok", "warning", "note"]
    assert found[1][2].endswith("has helper pods of other processes: nodefall-host-x on worker-1 of run drain-1")


def test_without_transport_pod_nothing_is_said() -> None:
    assert messages("helper-pods", observed()) == []
