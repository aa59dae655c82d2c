"""The longest names, and workloads as kubectl prints them, work to the end of a run."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import yaml

from chaos.app.lab_spec import lab_spec
from chaos.core.verdict import Status
from chaos.engine.load import load
from chaos.engine.registry import load_registry
from chaos.lab.facade import LabSpec
from chaos.rehearsal.run import RehearsalOptions, rehearse_once
from tests.kit.processes import EXPERIMENTS
from tests.kit.rehearsals import START, settings_of


@pytest.mark.parametrize("length", [54, 57, 63])
@pytest.mark.parametrize("transport", ["ssh", "pod"])
def test_an_experiment_with_a_long_name(length: int, transport: str, tmp_path: Path) -> None:
    """Its workload is a List with a generated name, and it has a PriorityClass."""
    document = yaml.safe_load((EXPERIMENTS / "cordon.yaml").read_text())
    document["metadata"]["name"] = "n" * length
    document["spec"]["hypothesis"] = [each for each in document["spec"]["hypothesis"] if each["assert"] != "expression"]
    objects = [*yaml.safe_load_all((EXPERIMENTS / "workloads" / "two-ways.yaml").read_text())]
    generated = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"generateName": "settings-"}}
    high = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 1000}
    listed = {"kind": "List", "apiVersion": "v1", "items": [*objects, generated, high]}
    (tmp_path / "workload.json").write_text(json.dumps(listed))
    document["spec"]["workload"]["manifests"] = ["workload.json"]
    (tmp_path / "long.yaml").write_text(json.dumps(document))
    loaded = load(tmp_path / "long.yaml", load_registry())
    inventory = settings_of("cordon", transport)
    assert inventory.lab is not None
    spec = msgspec.convert(lab_spec(inventory.lab, 1, START), LabSpec)
    run = rehearse_once(loaded, spec, 1, RehearsalOptions(inventory))
    assert run.result.status is Status.HELD, run.result.headline
    assert all(undo.proven for undo in run.result.undo), run.result.undo
