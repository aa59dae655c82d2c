"""Ranges of versions, and the check of an experiment's range against the cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError

from chaos.core.errors import RequirementUnmet
from chaos.core.experiment import Spec
from chaos.core.lab_settings import Lab
from chaos.core.number_types import in_range, parse_minor
from chaos.engine.observations import ExperimentNeeds
from chaos.engine.preflight.collect import CHECKS
from chaos.engine.preflight.findings import refuse, run_checks
from tests.kit.preflightkit import USE, diagnoses, host, node, observed

NAME = "kubernetes-version"
RANGES = [
    (">=v1.32", {"v1.31.9": False, "v1.32.0": True, "v1.36.2": True, "v2.0": True}),
    (">= 1.32, <1.34", {"v1.31.0": False, "v1.33.7-gke.100": True, "v1.34.0": False}),
    ("<=v1.33", {"v1.33.9": True, "v1.34.0": False}),
    ("=v1.33", {"v1.33.9": True, "v1.32.0": False}),
    ("==v1.9", {"v1.9.0": True, "v1.90.0": False}),
    (">v1.9", {"v1.9.3": False, "v1.10.0": True}),
]


@pytest.mark.parametrize(("text", "versions"), RANGES)
def test_ranges(text: str, versions: dict[str, bool]) -> None:
    for version, expected in versions.items():
        found = parse_minor(version)
        assert found is not None
        assert in_range(found, text) is expected, version


@pytest.mark.parametrize("text", ["", "v1.32", ">=v1.32.1", ">=1", "=>v1.32", ">=v1.32,", ">=v1.32 <v1.34", "any"])
def test_invalid_ranges(text: str) -> None:
    with pytest.raises(ValidationError, match="kubernetes") as caught:
        Spec.model_validate({"title": "t", "kubernetes": text, "steadyState": [], "method": [], "hypothesis": []})
    (error,) = [item for item in caught.value.errors() if item["loc"] == ("kubernetes",)]
    assert "write it like '>=v1.32' or '>=v1.32, <v1.36'" in error["msg"]


def _needs(text: str = ">=v1.32, <v1.36") -> ExperimentNeeds:
    return replace(USE, kubernetes=text, nodes=("n1",))


@pytest.mark.parametrize(
    ("server", "kubelet", "found"),
    [
        ("v1.34.1", "v1.33.0", ("ok", "", False, "the experiments support the cluster's versions")),
        ("v1.31.4", "v1.32.0", ("refusal", "", True, "x is for Kubernetes >=v1.32, <v1.36; the API server is v1.31.4")),
        ("v1.34.1", "v1.31.0", ("refusal", "n1", True, "the kubelet of n1 is v1.31.0")),
        ("", "v1.32.0", ("refusal", "", False, "the version of the API server is unknown ('')")),
        ("v1.34.1", "", ("refusal", "n1", False, "the version of the kubelet of n1 is unknown")),
    ],
)
def test_versions_of_a_cluster(server: str, kubelet: str, found: tuple[str, str, bool, str]) -> None:
    nodes = (node("n1", kubeletVersion=kubelet), node("n2", kubeletVersion="v1.1.0"))
    observations = observed(host(), nodes=nodes, experiments=(_needs(),), kubernetes=server)
    (diagnosis,) = diagnoses(NAME, observations)
    assert (diagnosis.severity, diagnosis.host, diagnosis.unmet) == found[:3]
    assert found[3] in diagnosis.message


def test_an_experiment_without_a_range_is_for_all_versions() -> None:
    assert diagnoses(NAME, observed(host(), nodes=(node("n1"),))) == []


def test_a_run_outside_the_range_is_refused_as_an_unmet_requirement() -> None:
    nodes = (node("n1", kubeletVersion="v1.31.0"),)
    observations = observed(host(), nodes=nodes, experiments=(_needs(),), kubernetes="v1.31.0")
    found = run_checks({NAME: CHECKS[NAME]}, observations)
    with pytest.raises(RequirementUnmet, match=r"x is for Kubernetes >=v1\.32, <v1\.36; the API server is v1\.31\.0"):
        refuse(found, anyway=False)
    assert NAME in refuse(found, anyway=True)[0]


def test_inventories_and_labs_know_the_same_versions() -> None:
    from chaos.lab.versions import NEWEST, OLDEST  # noqa: PLC0415

    for minor in range(20, 50):
        for text in (f"v1.{minor}", f"v1.{minor}.3"):
            if OLDEST <= minor <= NEWEST:
                assert Lab.model_validate({"kubernetes": text}).kubernetes == text
            else:
                with pytest.raises(ValidationError, match=r"is not simulated; give v1.31 to v1.36"):
                    Lab.model_validate({"kubernetes": text})
