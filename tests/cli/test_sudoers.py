"""Sudo rules of experiments: none, or one that is equivalent to root; visudo accepts the file."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chaos.cli.reference.commands import sudoers_command
from chaos.core.errors import UsageError

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
HOSTS = {"n1": {"user": "ops"}, "n2": {}, "n3": {"user": "root"}, "n4": {"sudo": False}, "n5": {"transport": "docker"}}


def inventory(folder: Path, defaults: dict[str, Any], hosts: dict[str, Any]) -> Path:
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "i"},
        "cluster": {"kubeconfig": "/nowhere"},
        "defaults": defaults,
        "hosts": hosts,
    }
    path = folder / "i.json"
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


def print_rules(*arguments: str | Path) -> str:
    done = CliRunner().invoke(sudoers_command, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize(
    ("defaults", "hosts", "rules"),
    [
        ({"user": "chaos"}, HOSTS, ["ops ALL=(root) NOPASSWD: ALL", "chaos ALL=(root) NOPASSWD: ALL"]),
        ({"user": "chaos"}, {}, ["chaos ALL=(root) NOPASSWD: ALL"]),
        ({"user": "root"}, {"n1": {}}, []),
        ({"transport": "docker"}, {"n1": {}}, []),
    ],
)
def test_one_rule_for_each_login_that_is_not_root(
    tmp_path: Path, defaults: dict[str, Any], hosts: dict[str, Any], rules: list[str]
) -> None:
    arguments = (EXPERIMENTS / "graceful-poweroff.yaml", "-i", inventory(tmp_path, defaults, hosts))
    text = print_rules(*arguments)
    assert [line for line in text.splitlines() if not line.startswith("#")] == rules
    assert ("equivalent to root" in text) == bool(rules)
    assert "# graceful-poweroff: power-on, poweroff" in text
    data = json.loads(print_rules(*arguments, "--json"))
    assert (len(data["rules"]), data["amountsToRoot"]) == (len(rules), bool(rules))
    visudo = shutil.which("visudo")
    if visudo:
        (tmp_path / "sudoers").write_text(text)
        subprocess.run([visudo, "-cf", tmp_path / "sudoers"], check=True, capture_output=True, timeout=60)


def test_experiments_that_only_use_the_api_need_no_rule(tmp_path: Path) -> None:
    text = print_rules(EXPERIMENTS / "cordon.yaml", "-i", inventory(tmp_path, {"user": "chaos"}, HOSTS))
    assert text == "# No sudo is needed: these experiments use no host.\n"


@pytest.mark.parametrize("user", ["a b", "ALL=(ALL) ALL #", "%wheel", "a,b", "x\nroot", "#0", "+x"])
def test_a_login_that_sudoers_cannot_express(tmp_path: Path, user: str) -> None:
    path = inventory(tmp_path, {}, {"n1": {"user": user}})
    with pytest.raises(UsageError, match="sudoers cannot express the login"):
        CliRunner().invoke(
            sudoers_command, [str(EXPERIMENTS / "power-cut.yaml"), "-i", str(path)], catch_exceptions=False
        )
