"""deploy/kustomize and deploy/helm make what ``gameday deploy`` prints, by kubectl and by Helm's own engine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos import __version__
from chaos.app.day.deploy import DeployOptions
from chaos.gameday.deploy.deployment import Storage
from chaos.gameday.deploy.manifests import helm_values, manifests
from tests.kit.deployments import by_identity, by_kind, make, read_manifests
from tests.kit.kubectl_lab import binary
from tools import deploy_base

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy" / "helm" / "nodefall"
OPTIONS = [
    DeployOptions("nodefall", "nodefall:1"),
    DeployOptions("chaos", "nodefall:1", Storage("5Gi", "fast", "bucket/prefix")),
]
KEEP = {"helm.sh/resource-policy": "keep"}


def kustomize(name: str) -> list[dict[str, Any]]:
    command = [binary(), "kustomize", str(ROOT / "deploy" / "kustomize" / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return read_manifests(done.stdout)


def test_the_base_is_what_is_printed() -> None:
    assert deploy_base.TARGET.read_text(encoding="utf-8") == deploy_base.generate(), "run python tools/deploy_base.py"
    assert by_identity(kustomize("base")) == by_identity(read_manifests(deploy_base.generate()))


def test_the_overlay_changes_image_and_volume_only() -> None:
    base, overlay = by_identity(kustomize("base")), by_identity(kustomize("overlay"))
    assert base.keys() == overlay.keys()
    changed = {key[0] for key in base if base[key] != overlay[key]}
    assert changed == {"CronJob", "PersistentVolumeClaim"}


@pytest.mark.parametrize("options", OPTIONS, ids=["volume", "bucket"])
def test_the_chart_renders_what_is_printed(tmp_path: Path, options: DeployOptions) -> None:
    helm = pytest.importorskip("helm_python", reason="there is no package helm-python-sdk, which has Helm's engine")
    deployment, _ = make(tmp_path, options, schedule={"cron": "0 10 * * TUE#1", "missed": "run"})
    with helm.Chart.load(CHART) as chart:
        files = chart.render(values=helm_values(deployment), name="any", namespace=options.namespace)
        assert not read_manifests("\n---\n".join(chart.render(values={}, name="any").values()))
    rendered = by_identity(read_manifests("\n---\n".join(files.values())))
    expected = by_identity(manifests(deployment))
    del expected["Namespace", "", options.namespace]  # helm install --create-namespace
    for kind in ("PersistentVolumeClaim", "ConfigMap"):  # reports, and the files of a day that has begun
        assert by_kind(list(rendered.values()), kind)["metadata"].pop("annotations") == KEEP
    assert rendered == expected


def test_values_and_templates_name_each_other(tmp_path: Path) -> None:
    values = helm_values(make(tmp_path, OPTIONS[1])[0])
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((CHART / "templates").iterdir()))
    assert set(re.findall(r"\.Values\.(\w+)", text)) == set(values)


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"]
    assert __version__.startswith(chart["version"])
