"""Rights of experiments on hosts: none, or those of root and of an administrator; visudo accepts the sudo rules."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chaos.cli.reference.commands import sudoers_command, windows_rights_command
from chaos.cli.reference.rights import PRIVILEGES
from chaos.core.errors import UsageError
from chaos.engine.registry import load_registry

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
HOSTS = {"n1": {"user": "ops"}, "n2": {}, "n3": {"user": "root"}, "n4": {"sudo": False}, "n5": {"transport": "docker"}}
POWEROFF = EXPERIMENTS / "graceful-poweroff.yaml"
PASSWORD = {"password": {"env": "P"}}
WINRM: dict[str, Any] = {"os": "windows", "transport": "winrm", "options": PASSWORD}
SSH: dict[str, Any] = {"os": "windows", "transport": "ssh"}


def inventory(folder: Path, hosts: dict[str, Any], **defaults: Any) -> Path:
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
    arguments = (EXPERIMENTS / "graceful-poweroff.yaml", "-i", inventory(tmp_path, hosts, **defaults))
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
    text = print_rules(EXPERIMENTS / "cordon.yaml", "-i", inventory(tmp_path, HOSTS, user="chaos"))
    assert text == "# No sudo is needed: these experiments use no host.\n"


@pytest.mark.parametrize(
    "user", ["a b", "ALL=(ALL) ALL #", "%wheel", "a,b", "x\nroot", "#0", "+x", "ALL", "ADMINS", "A_1"]
)
def test_a_login_that_sudoers_cannot_express(tmp_path: Path, user: str) -> None:
    path = inventory(tmp_path, {"n1": {"user": user}})
    with pytest.raises(UsageError, match="sudoers cannot express the login"):
        CliRunner().invoke(
            sudoers_command, [str(EXPERIMENTS / "power-cut.yaml"), "-i", str(path)], catch_exceptions=False
        )


def output(*arguments: str | Path) -> str:
    done = CliRunner().invoke(windows_rights_command, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_rights_of_a_local_account_over_winrm(tmp_path: Path) -> None:
    hosts = {"w1": WINRM | {"user": "o'ps"}, "w2": WINRM | {"user": "o'ps"}, "n1": {"user": "x"}}
    text = output(POWEROFF, "-i", inventory(tmp_path, hosts))
    lines = text.splitlines()
    assert "# graceful-poweroff: power-on, poweroff" in lines
    assert "equivalent to administrator" in text
    assert "# On w1, w2, reached over winrm; run as administrator:" in lines
    assert any(line.startswith("Add-LocalGroupMember -SID 'S-1-5-32-544' -Member 'o''ps'") for line in lines)
    assert any("LocalAccountTokenFilterPolicy -Value 1" in line for line in lines)
    assert "foreach ($right in 'SeRemoteShutdownPrivilege', 'SeShutdownPrivilege') {" in lines
    assert not [line for line in lines if "RootSDDL" in line and not line.startswith("#")]  # others may use WinRM too


@pytest.mark.parametrize("quote", ["'", "\u2018", "\u2019", "\u201a", "\u201b"])
def test_no_account_ends_its_literal(tmp_path: Path, quote: str) -> None:
    """PowerShell takes five characters for a quotation mark; two of them are one in a text."""
    text = output(POWEROFF, "-i", inventory(tmp_path, {"w1": WINRM | {"user": f"o{quote}; Restart-Computer #"}}))
    assert f"-Member 'o{quote}{quote}; Restart-Computer #'" in text


@pytest.mark.parametrize("user", [r"CORP\ops", "ops@corp.example"])
def test_an_account_of_a_domain_is_not_filtered(tmp_path: Path, user: str) -> None:
    assert "TokenFilter" not in output(POWEROFF, "-i", inventory(tmp_path, {"w1": WINRM}, user=user))


def test_keys_of_administrators_over_ssh(tmp_path: Path) -> None:
    text = output(POWEROFF, "-i", inventory(tmp_path, {"w1": SSH | {"user": "ops"}}))
    assert "administrators_authorized_keys" in text
    assert "TokenFilter" not in text
    assert "RootSDDL" not in text


def test_no_privilege_is_named_that_no_step_uses(tmp_path: Path) -> None:
    path = inventory(tmp_path, {"w1": WINRM | {"user": "ops"}})
    data = json.loads(output(EXPERIMENTS / "lease-stops.yaml", "-i", path, "--json"))
    assert (data["privileges"], data["amountsToAdministrator"]) == ([], True)
    assert data["logins"] == [{"user": "ops", "transport": "winrm", "local": True, "hosts": ["w1"]}]
    assert "foreach" not in output(EXPERIMENTS / "lease-stops.yaml", "-i", path)


def test_none_for_the_api_or_without_windows_hosts(tmp_path: Path) -> None:
    windows = inventory(tmp_path, {"w1": WINRM | {"user": "ops"}})
    assert output(EXPERIMENTS / "cordon.yaml", "-i", windows) == (
        "# No rights are needed: these experiments use no host.\n"
    )
    assert "no Windows hosts" in output(POWEROFF, "-i", inventory(tmp_path, {"n1": {"user": "ops"}}))


@pytest.mark.parametrize("user", ["", "a\nb"])
def test_a_login_that_is_no_account(tmp_path: Path, user: str) -> None:
    with pytest.raises(UsageError, match="w1: the login"):
        output(POWEROFF, "-i", inventory(tmp_path, {"w1": WINRM | {"user": user}}))


def test_sudoers_leaves_windows_hosts_out(tmp_path: Path) -> None:
    hosts = {"w1": WINRM | {"user": "ops"}, "w2": SSH | {"user": "ops"}, "n1": {"user": "lin"}}
    done = CliRunner().invoke(
        sudoers_command, [str(POWEROFF), "-i", str(inventory(tmp_path, hosts))], catch_exceptions=False
    )
    rules = [line for line in done.output.splitlines() if not line.startswith("#")]
    assert rules == ["lin ALL=(root) NOPASSWD: ALL"]


def test_privileges_are_those_of_known_actions() -> None:
    assert set(PRIVILEGES) <= set(load_registry().actions)
