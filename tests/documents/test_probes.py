"""Validation of spec.probes."""

from __future__ import annotations

from pathlib import Path

import pytest

import chaos.faults.actions
import chaos.verdicts.assertions
from chaos.core.action import Action
from chaos.core.errors import BadInput
from chaos.core.experiment import Experiment
from chaos.core.registry import PluginRegistry, discover
from chaos.documents.experiment import load_experiment

DATA = Path(__file__).parent / "data"
REGISTRY = PluginRegistry(discover(chaos.faults.actions, Action), discover(chaos.verdicts.assertions, "ASSERTION"))


def load_with_probes(tmp_path: Path, *probes: str) -> Experiment:
    """The test experiment with these probes, given as YAML flow mappings."""
    (tmp_path / "workloads").symlink_to(DATA / "workloads")
    text = (DATA / "experiment.yaml").read_text()
    lines = "".join(f"    - {probe}\n" for probe in probes)
    file = tmp_path / "experiment.yaml"
    file.write_text(text.replace("  steadyState:\n", f"  probes:\n{lines}  steadyState:\n", 1))
    return load_experiment(file, REGISTRY)


def test_the_three_kinds_of_probes(tmp_path: Path) -> None:
    spec = load_with_probes(
        tmp_path,
        "{name: shop, http: 'https://shop.example:8443/healthz?x=1', every: 500ms, timeout: 3s}",
        "{name: db, tcp: '[fd00::1]:5432'}",
        "{name: web, service: {name: web, port: http, path: /ready}}",
    ).spec
    assert [str(probe) for probe in spec.probes] == [
        "https://shop.example:8443/healthz?x=1, every 500ms",
        "[fd00::1]:5432, every 1s",
        "Service web, every 1s",
    ]
    assert spec.probes[2].service is not None
    assert spec.probes[2].service.namespace == "workload"


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        ("{name: a}", "exactly one of http, tcp or service"),
        ("{name: a, http: 'http://x', tcp: 'x:1'}", "exactly one of http, tcp or service"),
        ("{http: 'http://x'}", "name"),
        ("{name: a, http: shop.example}", "invalid URL"),
        ("{name: a, http: 'ftp://x/'}", "invalid URL"),
        ("{name: a, http: 'http://x:port/'}", "invalid URL"),
        ("{name: a, http: 'http://me:secret@x/'}", "credentials are not allowed in a URL"),
        ("{name: a, tcp: x}", "write HOST:PORT"),
        ("{name: a, service: {name: web, port: 5-}}", "invalid port '5-'"),
        ("{name: a, tcp: 'x:http'}", "invalid port 'http'; write a number"),
        ("{name: a, tcp: 'x:0'}", "invalid port '0'"),
        ("{name: a, tcp: 'x:70000'}", "invalid port '70000'"),
        ("{name: a, service: {name: web, port: 0}}", "invalid port '0'"),
        ("{name: a, service: {name: web, path: ready}}", "a path begins with /"),
        ("{name: a, tcp: 'x:1', every: 10}", "10 has no unit"),
        ("{name: a, tcp: 'x:1', every: 50ms}", "50ms is too short"),
        ("{name: a, tcp: 'x:1', timeout: 0s}", "0s is too short"),
        ("{name: a, tcp: 'x:1', evry: 1s}", "evry"),
    ],
)
def test_bad_probes(tmp_path: Path, probe: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        load_with_probes(tmp_path, probe)


def test_a_duplicate_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="probe"):
        load_with_probes(tmp_path, "{name: a, tcp: 'x:1'}", "{name: a, tcp: 'y:1'}")
