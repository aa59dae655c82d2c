"""``nodefall validate DIRECTORY``: all documents in it; manifests are skipped, and named."""

from __future__ import annotations

from pathlib import Path

from tests.kit.command import command
from tests.kit.processes import ROOT


def test_documents_are_checked_and_manifests_named(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "lab.yaml").write_text((ROOT / "hosts" / "lab.yaml").read_text())
    (tmp_path / "shop.yml").write_text("apiVersion: apps/v1\nkind: Deployment\n")
    (tmp_path / "notes.txt").write_text("apiVersion: nodefall.dev/v1alpha1\n")
    checked = command("validate", ".", cwd=tmp_path)
    assert (checked.returncode, checked.stdout) == (0, "sub/lab.yaml: Inventory lab is valid\n"), checked.stderr
    assert checked.stderr == "skipped: shop.yml: it has no apiVersion of nodefall\n"
    (tmp_path / "bad.yaml").write_text("apiVersion: nodefall.dev/v1alpha1\nkind: Experimnt\n")
    wrong = command("validate", ".", cwd=tmp_path)
    assert (wrong.returncode, "bad.yaml:2" in wrong.stderr) == (64, True), wrong.stderr


def test_a_directory_without_documents_is_an_error(tmp_path: Path) -> None:
    checked = command("validate", tmp_path)
    assert (checked.returncode, "no experiment, inventory or game day in" in checked.stderr) == (64, True)
