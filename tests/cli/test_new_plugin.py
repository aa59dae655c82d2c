"""``nodefall new plugin``: each kind is a package whose tests pass and whose plug-in keeps the contract."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from chaos.core.outside import Origin
from chaos.testing.installed import installed_breaches
from tests.kit.command import command

KINDS = ("action", "assertion", "power", "observer")


def test_a_kind_for_each_choice(tmp_path: Path) -> None:
    assert command("new", "plugin", "--kind", "renderer", "x", cwd=tmp_path).returncode == 64


@pytest.mark.parametrize("kind", KINDS)
def test_its_own_tests_pass_and_it_keeps_the_contract(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = command("new", "plugin", "--kind", kind, f"nodefall-acme-{kind}", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    package = tmp_path / f"nodefall-acme-{kind}"
    monkeypatch.syspath_prepend(str(package))
    tests = ["-q", "-p", "no:cacheprovider", "-p", "no:nodefall", "-c", "/dev/null", "--rootdir", str(package)]
    assert pytest.main([*tests, str(package / "tests")]) == 0
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    assert project["name"] == f"nodefall-acme-{kind}"
    ((group, points),) = project["entry-points"].items()
    ((entry, value),) = points.items()
    origin = Origin(group, entry, value, project["name"], project["version"], 1)
    plugin = EntryPoint(entry, value, group).load()
    assert (entry, plugin.name, installed_breaches(origin, plugin)) == (f"acme-{kind}", f"acme-{kind}", [])
    assert sys.modules[value.partition(":")[0]].NODEFALL_CONTRACT == 1
    for path in package.rglob("*.*"):
        assert path.is_dir() or path.suffix == ".pyc" or not {"stop-unit", "my_plugin"} & set(path.read_text().split())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    arguments = ("new", "plugin", "--kind", "observer", "acme")
    assert command(*arguments, cwd=tmp_path).returncode == 0
    again = command(*arguments, cwd=tmp_path)
    assert (again.returncode, "not overwritten: acme/pyproject.toml" in again.stderr) == (64, True)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("plugin", "--kind", "power", "Acme_1"), "gives no name for the plug-in"),
        (("plugin", "--kind", "power"), "nodefall new plugin --kind KIND DIR"),
        (("plugin", "acme"), "nodefall new plugin --kind KIND DIR"),
        (("shop.yaml", "--kind", "power", "acme"), "nodefall new plugin --kind KIND DIR"),
    ],
)
def test_what_is_missing_or_no_name(arguments: tuple[str, ...], why: str, tmp_path: Path) -> None:
    refused = command("new", *arguments, cwd=tmp_path)
    assert (refused.returncode, why in refused.stderr) == (64, True), refused.stderr
    assert not list(tmp_path.iterdir())
