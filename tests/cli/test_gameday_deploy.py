"""``nodefall gameday deploy``: manifests on stdout, what is left to do on stderr."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from chaos.cli.gameday.deploy import Options, deploy
from chaos.core.errors import UsageError
from chaos.gameday.deploy.manifests import helm_values, manifests
from tests.kit.deployments import make, make_large, read_manifests, write_inventory
from tests.kit.kubectl_lab import binary

SHELLS = ("bash", "zsh", "dash", "fish")
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
        report_url="",
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
    assert 'kubectl -n nodefall create secret generic keys --from-literal=BMC_1="$BMC_1"' in said
    assert '--from-file=chaos="$HOME"/.ssh/chaos' in said
    assert "needs a Secret nodefall-days-s3 with RCLONE_S3_ENDPOINT" in said
    assert "create job --from=cronjob/nodefall-days nodefall-days-1" in said
    assert "warning: the image has no program ipmitool" in said


def test_names_of_secrets_are_no_part_of_a_shell_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path, notify=[{"kind": "slack", "url": {"env": "HOOK; reboot"}}])
    deploy(options(tmp_path))
    command = next(line for line in capsys.readouterr().err.splitlines() if "create secret" in line)
    assert "--from-file=HOOK; reboot=FILE" in shlex.split(command)


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_the_printed_command_creates_the_secret_in_each_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    """Pasted, with the real kubectl, beside an inventory in another folder whose keys have odd names."""
    program = shutil.which(shell)
    if not program:
        pytest.skip(f"there is no {shell}")
    folder, home = tmp_path / "it's $5 here", tmp_path / "a home"
    for name in ("pki", "bmc"):
        (folder / name).mkdir(parents=True)
    (folder / "bmc" / "chaos").write_text("a password")
    (home / ".ssh").mkdir(parents=True)
    (folder / "pki" / "ca.pem").write_text("relative")
    (home / ".ssh" / "my key").write_text("of the home")
    (folder / "pki" / "known hosts").write_text("beside it")
    logins = {"identityFile": "~/.ssh/my key", "knownHosts": "pki/known hosts"}
    make(folder)
    write_inventory(folder / "staging.yaml", defaults=logins)
    deploy(options(folder))
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "create secret" in line]
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "kubectl").symlink_to(binary())
    script = f"{line.strip()} --dry-run=client -o json"
    environment = {"PATH": f"{bin_}:{os.environ['PATH']}", "HOME": str(home), "TERM": "dumb"}
    environment |= {name: f"value of {name} $x" for name in re.findall(r'literal=(\w+)="', line)}
    done = subprocess.run([program], input=f"{script}\n", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    data = {key: base64.b64decode(value).decode() for key, value in json.loads(done.stdout)["data"].items()}
    assert data["my_key"] == "of the home"
    assert data["ca.pem"] == "relative"
    assert data["known_hosts"] == "beside it"
    assert data["BMC_1"] == "value of BMC_1 $x"


def test_what_only_a_server_side_apply_takes_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path)
    deploy(options(tmp_path))
    assert "server-side" not in capsys.readouterr().err
    make_large(tmp_path)
    deploy(options(tmp_path))
    said = capsys.readouterr().err
    assert "a client-side apply takes 262,144" in said
    assert "kubectl apply --server-side -f manifests.yaml" in said
    deploy(replace(options(tmp_path), form="helm"))
    assert "server-side" not in capsys.readouterr().err


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
        ("report_url", "reports"),
    ],
)
def test_bad_options(tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: str) -> None:
    make(tmp_path)
    with pytest.raises(UsageError, match=r"invalid value|not a URL"):
        deploy(replace(options(tmp_path), **{key: value}))  # type: ignore[arg-type]
    assert capsys.readouterr().out == ""
