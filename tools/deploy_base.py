"""Writes deploy/kustomize/base/manifests.yaml: what nodefall prints for the example in deploy/example."""

from __future__ import annotations

from pathlib import Path

from chaos.app.day.deploy import DeployOptions, deployment_of
from chaos.app.day.document import load_game_day
from chaos.documents.yaml_text import dump
from chaos.gameday.deploy.manifests import manifests

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "deploy" / "kustomize" / "base" / "manifests.yaml"
DAY, INVENTORY = ROOT / "deploy" / "example" / "weekly.yaml", ROOT / "hosts" / "example.yaml"
IMAGE = "nodefall"  # kustomize replaces it


def generate() -> str:
    """The file."""
    day = load_game_day(DAY)
    deployment, _ = deployment_of(day, INVENTORY, DeployOptions("nodefall", IMAGE))
    return dump(manifests(deployment))


if __name__ == "__main__":
    TARGET.write_text(generate(), encoding="utf-8")
