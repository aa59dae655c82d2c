"""A plain installation neither has nor imports an SDK of a cloud."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from chaos.core.installed_drivers import power_drivers

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SDKS = {  # by kind and extra: the packages that are imported
    "aws": ("boto3", "botocore"),
    "azure": ("azure", "msal"),
    "gcp": ("google",),
    "libvirt": ("libvirt",),
    "openstack": ("openstack", "keystoneauth1"),
    "proxmox": ("proxmoxer",),
    "vsphere": ("pyVmomi", "pyVim"),
}


@pytest.mark.parametrize("kind", SDKS)
def test_each_is_an_extra_of_its_kind_only(kind: str) -> None:
    assert kind in power_drivers()
    names = [requirement.partition(">")[0] for requirement in PROJECT["optional-dependencies"][kind]]
    required = " ".join(PROJECT["dependencies"])
    assert names
    assert not [name for name in names if name in required]


def test_none_is_imported_to_load_drivers_and_inventories() -> None:
    """Even where all are installed: their import takes up to a second."""
    code = (
        "import sys; from chaos.core.installed_drivers import power_drivers; import chaos.app.wiring.connect\n"
        "import chaos.machines.pool\n"
        "from chaos.engine.registry import load_registry; from chaos.documents.schema import json_schema\n"
        "json_schema(load_registry()); power_drivers()\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tops = {name.partition(".")[0] for name in loaded.split()}
    assert "chaos" in tops
    assert not tops & {package for packages in SDKS.values() for package in packages}
