"""Kinds that the lab stores without simulating them: checked and defaulted as by Kubernetes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.apiserver.admission_others import STORED
from chaos.lab.cluster import Cluster
from chaos.lab.spec import LabSpec, NodeSpec
from tests.kit.simkit import STORED_OBJECTS


def cluster() -> Cluster:
    made = Cluster(LabSpec(nodes=[NodeSpec(name="cp", role="control-plane")]))
    made.start()
    return made


def body(plural: str, path: str, value: Any, name: str = "some") -> dict[str, Any]:
    """A valid object with another value at the path."""
    made: dict[str, Any] = deepcopy({"metadata": {"name": name, "namespace": "default"}, **STORED_OBJECTS[plural]})
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = made
    for part in parents:
        place = place[part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return made


def test_every_stored_kind_has_an_example() -> None:
    assert set(STORED_OBJECTS) == set(STORED)


@pytest.mark.parametrize(
    ("plural", "path", "value", "why"),
    [
        ("cronjobs", "spec.schedule", "0 10 * * TUE#1", "expected five fields of cron"),
        ("cronjobs", "spec.schedule", "0 10 L * *", "expected five fields of cron"),
        ("cronjobs", "spec.schedule", "0 10 * *", "expected five fields of cron"),
        ("cronjobs", "spec.timeZone", "Berlin", "unknown time zone Berlin"),
        ("cronjobs", "spec.concurrencyPolicy", "Never", "Unsupported value: 'Never'"),
        ("cronjobs", "spec.startingDeadlineSeconds", -1, "Invalid value: -1"),
        ("cronjobs", "spec.jobTemplate.spec.template.spec.restartPolicy", "Always", "restartPolicy: Required value"),
        ("cronjobs", "metadata.name", "n" * 53, "must be no more than 52 characters"),
        ("networkpolicies", "spec.policyTypes", ["Both"], "policyTypes: Unsupported value"),
        ("networkpolicies", "spec.egress.0.ports.0.port", 65536, "must be between 1 and 65535"),
        ("networkpolicies", "spec.egress.0.ports.0.protocol", "ICMP", "Unsupported value: 'ICMP'"),
        ("roles", "rules.0.verbs", [], "verbs must contain at least one value"),
        ("roles", "rules.0.apiGroups", [], "at least one api group and resource"),
        ("roles", "rules.0.nonResourceURLs", ["/metrics"], "namespaced rules cannot apply"),
        ("clusterroles", "rules.0.nonResourceURLs", ["/metrics"], "cannot apply to both"),
        ("roles", "metadata.name", "a/b", "may not contain '/'"),
        ("rolebindings", "roleRef.kind", "User", "roleRef: Invalid value"),
        ("clusterrolebindings", "roleRef.kind", "Role", "roleRef: Invalid value"),
        ("rolebindings", "subjects.0.namespace", None, "subjects[0].namespace: Required value"),
        ("rolebindings", "subjects.0.kind", "Robot", "subjects[0]: Invalid value"),
    ],
)
def test_rejected(plural: str, path: str, value: Any, why: str) -> None:
    with pytest.raises(InvalidError) as error:
        cluster().create_object(plural, body(plural, path, value))
    assert why in str(error.value)


def test_defaults() -> None:
    made = cluster()
    job = made.create_object("cronjobs", body("cronjobs", "metadata.name", "some"))["spec"]
    assert (job["concurrencyPolicy"], job["suspend"], job["failedJobsHistoryLimit"]) == ("Allow", False, 1)
    assert job["jobTemplate"]["spec"]["backoffLimit"] == 6
    policy = made.create_object("networkpolicies", body("networkpolicies", "metadata.name", "some"))["spec"]
    assert (policy["policyTypes"], policy["egress"][0]["ports"][0]["protocol"]) == (["Ingress", "Egress"], "TCP")
    role = made.create_object("roles", body("roles", "metadata.name", "system:some"))
    assert role["metadata"]["name"] == "system:some"


def test_the_role_of_a_binding_cannot_be_changed() -> None:
    made = cluster()
    binding = made.create_object("rolebindings", body("rolebindings", "metadata.name", "some"))
    with pytest.raises(InvalidError, match="cannot change roleRef"):
        made.registry.update("rolebindings", {**binding, "roleRef": {**binding["roleRef"], "name": "other"}})
