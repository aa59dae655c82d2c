"""By what a host is recognized after the plan: its host key, or another value that no other machine has."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from chaos.core.kube import Node
from chaos.engine.observations import ClusterObservations
from chaos.engine.preflight.findings import refuse, run_checks
from tests.kit.preflightkit import CHECKS, host, messages, observed

KEY, OTHER = "ssh-ed25519 SHA256:a", "ssh-ed25519 SHA256:b"
NO_CERTIFICATE: dict[str, Any] = {"kubelet_user": None}


def node(name: str, machine_id: str, uuid: str) -> Node:
    info = {"machineID": machine_id, "systemUUID": uuid}
    return msgspec.convert({"metadata": {"name": name}, "status": {"nodeInfo": info}}, Node)


DISTINCT = (node("n1", "a" * 32, "1" * 32), node("n2", "b" * 32, "2" * 32))
SHARED_ID = (node("n1", "a" * 32, "1" * 32), node("n2", "a" * 32, "2" * 32))
CLONES = (node("n1", "a" * 32, "1" * 32), node("n2", "a" * 32, "1" * 32))


def case(
    nodes: tuple[Node, ...] = DISTINCT, second: str | None = OTHER, known: frozenset[str] = frozenset(), **facts: Any
) -> ClusterObservations:
    """n1 presents KEY, unless ``facts`` has another; n2 presents ``second``, None: it was not inspected."""
    hosts = [host("n1", **{"host_key": KEY} | facts)]
    if second:
        hosts.append(host("n2", host_key=second))
    return observed(*hosts, nodes=nodes, known_host_keys={"n1": frozenset({KEY}), "n2": known})


@pytest.mark.parametrize(
    ("observations", "severity", "text"),
    [
        (case(), "ok", "no other machine is known to have its host key"),
        (case(CLONES, **NO_CERTIFICATE), "ok", "no other machine is known to have its host key"),
        (case(second=KEY), "warning", "the host key of n1 proves nothing: n2 has it too"),
        (case(second=None, known=frozenset({OTHER, KEY})), "warning", "the host key of n1 proves nothing: n2 has it"),
        (case(second=None, known=frozenset({OTHER})), "ok", "no other machine is known to have its host key"),
        (case(CLONES, KEY), "warning", "n2 has it too"),  # its kubelet has a certificate
        (case(SHARED_ID, KEY, **NO_CERTIFICATE, system_uuid="1" * 32), "warning", "n2 has it too"),
        (case(SHARED_ID, KEY, **NO_CERTIFICATE), "refusal", "n1 cannot be recognized later: its machine ID is shared"),
        (case(CLONES, KEY, **NO_CERTIFICATE, system_uuid="1" * 32), "refusal", "and n2 may have the same host key"),
        (case(CLONES, **NO_CERTIFICATE, host_key=None), "refusal", "its transport reports no host key"),
        (case(host_key=None), "ok", "it has no host key, but another value that no"),
        (case(**NO_CERTIFICATE, host_key=None, stable_id="container c"), "ok", "it has no host key, but another value"),
        (
            case(**NO_CERTIFICATE, host_key=None, stable_id=None),  # the machine ID is that of a boot
            "refusal",
            "n1 cannot be recognized later: it has no ID that is the same after a boot",
        ),
    ],
)
def test_host_key(observations: ClusterObservations, severity: str, text: str) -> None:
    level, message = next((level, text) for level, name, text in messages("host-key", observations) if name == "n1")
    assert level == severity
    assert text in message


def test_the_refusal_cannot_be_overridden() -> None:
    findings = run_checks({"host-key": CHECKS["host-key"]}, case(CLONES, KEY, **NO_CERTIFICATE))
    with pytest.raises(Exception, match="n1 cannot be recognized later"):
        refuse(findings, anyway=True)
