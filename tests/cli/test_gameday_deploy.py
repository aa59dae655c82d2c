"""``nodefall gameday deploy``: manifests on stdout, what is left to do on stderr."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from chaos.cli.gameday.deploy import Options, deploy
from chaos.core.errors import UsageError
from chaos.gameday.deploy.manifests import helm_values, manifests
from tests.kit.deployments import make, read_manifests

IMAGE = "example.com/nodefall@sha256:" + "0" * 64


def options(folder: Path) -> Options:
    return Options(
        gameday=folder / "day.yaml",
        inventory=str(folder / "staging.yaml"),
        namespace="nodefall",
        image=IMAGE,
        size="1Gi",
        storage_class="",
        s3="",
        secret="",
        form="manifests",
    )


def test_manifests_and_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deployment, _ = make(tmp_path)
    assert deploy(options(tmp_path)) == 0
    assert read_manifests(capsys.readouterr().out) == manifests(deployment)
    assert deploy(replace(options(tmp_path), form="helm")) == 0
    assert yaml.safe_load(capsys.readouterr().out) == helm_values(deployment)


def test_what_is_left_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path)
    deploy(options(tmp_path))
    assert "not pinned" not in capsys.readouterr().err
    deploy(replace(options(tmp_path), image="nodefall:1", s3="bucket/prefix", secret="keys"))
    said = capsys.readouterr().err
    assert "the image nodefall:1 is not pinned by a digest" in said
    assert "kubectl -n nodefall create secret generic keys --from-file=BMC_1=FILE" in said
    assert "--from-file=chaos=~/.ssh/chaos" in said
    assert "needs a Secret nodefall-days-s3 with RCLONE_S3_ENDPOINT" in said
    assert "create job --from=cronjob/nodefall-days nodefall-days-1" in said
    assert "warning: the image has no program ipmitool" in said


def test_names_of_secrets_are_no_part_of_a_shell_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path, notify=[{"kind": "slack", "url": {"env": "HOOK; reboot"}}])
    deploy(options(tmp_path))
    command = next(line for line in capsys.readouterr().err.splitlines() if "create secret" in line)
    assert "--from-file=HOOK; reboot=FILE" in shlex.split(command)


def test_a_secret_of_a_workload_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Manifests of an experiment are files of the ConfigMap as they are."""
    make(tmp_path)
    experiment = yaml.safe_load((tmp_path / "one.yaml").read_text())
    experiment["spec"]["workload"] = {"manifests": ["shop.yaml"]}
    (tmp_path / "one.yaml").write_text(json.dumps(experiment))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop"}, "stringData": {"key": "opensesame"}}
    (tmp_path / "shop.yaml").write_text(json.dumps(secret))
    deploy(options(tmp_path))
    printed = capsys.readouterr()
    assert "warning: the ConfigMap has the Secret shop of the workload of one" in printed.err
    assert "opensesame" in printed.out


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("namespace", "Chaos"),
        ("namespace", "a b"),
        ("size", "1"),
        ("size", "0Gi"),
        ("storage_class", "-x"),
        ("s3", "Bucket"),
        ("s3", "bucket/a b"),
        ("secret", "Keys"),
        ("image", "--privileged"),
        ("image", "a b"),
        ("image", ""),
    ],
)
def test_bad_options(tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: str) -> None:
    make(tmp_path)
    with pytest.raises(UsageError, match="invalid value"):
        deploy(replace(options(tmp_path), **{key: value}))  # type: ignore[arg-type]
    assert capsys.readouterr().out == ""
