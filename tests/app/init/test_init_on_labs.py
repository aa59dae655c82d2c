"""Inventories that ``nodefall init`` makes of clusters like those of distributions: they load, and doctor agrees."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from chaos.core.installed_drivers import power_drivers
from chaos.documents.inventory import load_inventory
from chaos.documents.schema import json_schema
from chaos.engine.registry import load_registry
from tests.kit import distributions
from tests.kit.distributions import Node, RunningLab, init, serving
from tests.kit.suite import others_nightly

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]
NO_TERMINAL = ("power-recovery", "refusal")  # the proposed power control asks a person
UNREACHABLE = ("host-reachable", "refusal")
MANUAL = {"kind": "manual", "deadline": "10m"}


@dataclass(frozen=True)
class Case:
    """``proposed``: keys of defaults without options. ``findings``: those that are no praise, of the targets."""

    nodes: list[Node]
    distribution: str
    proposed: dict[str, Any]
    findings: frozenset[tuple[str, str]] = frozenset({NO_TERMINAL})
    hosts: int = 0  # that doctor inspects
    protected: dict[str, Any] = field(default_factory=lambda: {"roles": ["control-plane"]})
    spared: int = 1  # minReadyNodes
    exit: int = 2
    login: bool = True  # that of the machines is given; else no machine can be reached
    notes: tuple[str, ...] = ()


def ssh(provider: str = "", **more: Any) -> dict[str, Any]:
    """``provider``: the kind of power control by provider ID, proposed where its driver is installed."""
    power = {"kind": provider} if provider in power_drivers() else MANUAL
    return {"transport": "ssh", "sudo": True, "power": power, **more}


def pod(provider: str = "") -> dict[str, Any]:
    return {"transport": "pod", "power": ssh(provider)["power"]}


ALONE = "all nodes are control planes, which are protected"
CASES = {
    "kubeadm": Case(distributions.kubeadm(), "kubeadm", ssh(), hosts=3, spared=2),
    "k3s": Case(distributions.k3s(), "k3s", ssh(), hosts=2),
    "eks": Case(
        distributions.eks(), "EKS", pod("aws"), hosts=3, spared=2,
        protected={"roles": ["control-plane"], "nodes": ["fargate-ip-10-0-9-9"]},
        notes=("Fargate: no machine", "EKS may replace a machine", "doctor and runs create a privileged pod"),
    ),
    "gke": Case(distributions.gke(), "GKE", pod("gcp"), hosts=3, spared=2, notes=("GKE may replace",)),
    "aks": Case(
        distributions.aks(), "AKS", pod("azure"), hosts=3, spared=2, notes=("AKS may replace",)
    ),
    "kind": Case(
        distributions.kind(), "kind",
        {"transport": "docker", "engine": "docker", "power": {"kind": "docker", "engine": "docker"}},
        findings=frozenset({UNREACHABLE}), hosts=2, login=False,
    ),
    "openshift": Case(distributions.openshift(), "OpenShift", pod(), hosts=2),
    "single": Case(distributions.kubeadm(0), "kubeadm", ssh(), findings=frozenset(), exit=0, notes=(ALONE,)),
    "dual-stack": Case(distributions.dual_stack(), "kubeadm", ssh(), hosts=2),
    "many": Case(
        distributions.kubeadm(300), "kubeadm", ssh(), findings=frozenset({UNREACHABLE}), hosts=300,
        spared=270, login=False,
    ),
}  # fmt: skip


def documents(out: Path) -> dict[str, Any]:
    """The inventory, which is valid to nodefall and by its schema."""
    load_inventory(out)
    document: dict[str, Any] = yaml.safe_load(out.read_text(encoding="utf-8"))
    jsonschema.validate(document, json_schema(load_registry()))
    return document


@pytest.mark.parametrize("name", others_nightly(CASES, ("kubeadm",)))
def test_inventories_of_distributions(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    with serving(case.nodes, name) as lab:
        proposed = init("--kubeconfig", lab.kubeconfig, "--yes", "--no-doctor", "--json", cwd=tmp_path)
        check_proposal(case, name, proposed.returncode, json.loads(proposed.stdout), tmp_path)
        arguments = ("--kubeconfig", lab.kubeconfig, "--yes", "--force")
        login = lab.login if case.login else ()
        reached = init(*arguments, "--accept-fingerprints", "--json", *login, cwd=tmp_path)
        by_pods = init(*arguments, "--json", cwd=tmp_path) if case.proposed["transport"] == "pod" else None
    check_doctor(case, reached.returncode, json.loads(reached.stdout), lab)
    if by_pods:
        check_doctor(case, by_pods.returncode, json.loads(by_pods.stdout), lab, has_login=False)


def check_proposal(case: Case, name: str, code: int, result: dict[str, Any], folder: Path) -> None:
    assert code == 0
    assert result["inventory"] == f"hosts/{name}.yaml"
    assert result["distribution"]["name"] == case.distribution
    assert result["knownHosts"] is None
    assert not (folder / "hosts" / f"{name}.known_hosts").exists()
    inventory = documents(folder / "hosts" / f"{name}.yaml")
    assert inventory["defaults"] == case.proposed
    assert "hosts" not in inventory
    assert inventory["protected"] == case.protected
    assert inventory["limits"] == {"maxNodes": 1, "minReadyNodes": case.spared}
    assert inventory["cluster"]["expectUID"] == result["clusterUID"]
    assert inventory["cluster"]["context"] == result["context"] == name
    for note in case.notes:
        assert any(note in each for each in result["notes"]), result["notes"]


def check_doctor(case: Case, code: int, result: dict[str, Any], lab: RunningLab, *, has_login: bool = True) -> None:
    report = result["doctor"]
    found = {
        (each["check"], each["severity"], each["subject"].removeprefix("host "))
        for each in report["findings"]
        if each["subject"].startswith("host ")
        and each["severity"] in ("refusal", "warning")
        and each["check"] != "clock"
    }
    targets = {subject for _, _, subject in found} or set(report["hosts"])
    assert {(check, severity) for check, severity, _ in found} == case.findings, found
    assert len(targets) == len(report["hosts"]) == case.hosts
    assert report["clusterUID"] == result["clusterUID"]
    assert (code, report["exitCode"]) == (case.exit, case.exit)
    if case.login:
        assert any(report["possible"].values()) == bool(case.hosts)
        if not has_login:
            assert result["hostKeys"] == []
            return
        accepted = [key["node"] for key in result["hostKeys"] if key["status"] == "new"]
        assert len(accepted) == sum(node["name"] in lab.hosts and "fargate" not in node["name"] for node in case.nodes)


def test_a_transport_that_is_given_is_written_for_kind_nodes(tmp_path: Path) -> None:
    power = {"kind": "docker", "engine": "docker"}
    expected = {
        "pod": {"transport": "pod", "power": power},
        "ssh": {"transport": "ssh", "user": "root", "sudo": True, "power": power},
    }
    with serving(distributions.kind(), "kind") as lab:
        for transport in expected:
            out = f"{transport}.yaml"
            options = ("--transport", transport, "--out", out, "--yes", "--no-doctor")
            written = init("--kubeconfig", lab.kubeconfig, *options, cwd=tmp_path)
            assert written.returncode == 0, written.stderr
    assert {name: documents(tmp_path / f"{name}.yaml")["defaults"] for name in expected} == expected
