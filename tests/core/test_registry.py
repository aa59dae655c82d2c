"""Plug-ins from modules and entry points, and what is refused."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import chaos.engine.preflight.checks
import chaos.faults.actions.windows
import chaos.faults.readings.windows
import chaos.verdicts.assertions
from chaos.core import outside
from chaos.core.action import Action
from chaos.core.errors import Exit, PluginError
from chaos.core.fact import HostFact
from chaos.core.registry import Group, discover, discover_lazily
from chaos.engine.preflight.check import Check
from chaos.faults.actions import index


def install(monkeypatch: pytest.MonkeyPatch, **plugins: object) -> None:
    """Offer each plug-in as an entry point; a value of None names a module that does not exist."""
    module = ModuleType("outside_plugins")
    points = []
    for name, plugin in plugins.items():
        setattr(module, name, plugin)
        where = "outside_plugins" if plugin is not None else "no_such_module"
        points.append(EntryPoint(name, f"{where}:{name}", Group.ACTIONS))
    monkeypatch.setitem(sys.modules, "outside_plugins", module)
    monkeypatch.setattr(outside, "entry_points", lambda group: EntryPoints(points).select(group=group))


def test_without_a_group_only_built_in_plugins_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, SYSCTL=SimpleNamespace(name="sysctl"))
    assert "sysctl" not in discover(chaos.faults.actions, Action)


def test_entry_points_join_the_built_in_plugins_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    sysctl = SimpleNamespace(name="sysctl")
    install(monkeypatch, SYSCTL=sysctl)
    found = discover(chaos.faults.actions, Action, Group.ACTIONS)
    assert found["sysctl"] is sysctl
    assert list(found) == sorted(found)
    assert set(found) == {*discover(chaos.faults.actions, Action), "sysctl"}


def test_a_module_may_have_several_plugins_of_a_class_and_import_others(tmp_path: Path) -> None:
    package = ModuleType("several_plugins")
    package.__path__ = [str(tmp_path)]
    (tmp_path / "one.py").write_text(
        "from collections import UserString\nclass Own(UserString): pass\nA, B = map(Own, 'ab')\n"
    )
    (tmp_path / "two.py").write_text("from several_plugins.one import A, B, Own\nC = Own('c')\n")
    sys.modules["several_plugins"] = package
    try:
        one = importlib.import_module("several_plugins.one")
        for plugin in (one.A, one.B, importlib.import_module("several_plugins.two").C):
            plugin.name = str(plugin)
        assert list(discover(package, one.Own)) == ["a", "b", "c"]
    finally:
        for name in ("several_plugins", "several_plugins.one", "several_plugins.two"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("package", "kind"),
    [
        (chaos.faults.readings, HostFact),
        (chaos.faults.readings.windows, HostFact),
        (chaos.engine.preflight.checks, Check),
    ],
)
def test_facts_and_checks_are_named_as_their_functions(package: ModuleType, kind: type) -> None:
    for info in pkgutil.iter_modules(package.__path__):
        for name, value in vars(importlib.import_module(f"{package.__name__}.{info.name}")).items():
            if isinstance(value, kind) and name not in ("FACT", "CHECK"):
                assert getattr(value, "name", "") == name.lower().replace("_", "-")


def test_another_group_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, SYSCTL=SimpleNamespace(name="sysctl"))
    assert "sysctl" not in discover(chaos.faults.actions, Action, Group.FACTS)


def test_a_duplicate_name_is_an_error_that_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, MINE=SimpleNamespace(name="cordon"))
    with pytest.raises(PluginError) as raised:
        discover(chaos.faults.actions, Action, Group.ACTIONS)
    assert "'cordon'" in raised.value.message
    assert "chaos.faults.actions.cordon.CORDON" in raised.value.message
    assert "outside_plugins:MINE" in raised.value.message
    assert raised.value.code is Exit.USAGE


def test_a_duplicate_of_an_unloaded_plugin_is_an_error_that_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, MINE=SimpleNamespace(name="cordon"))
    with pytest.raises(PluginError, match=r"chaos\.faults\.actions\.cordon and outside_plugins:MINE"):
        discover_lazily(chaos.faults.actions, Action, Group.ACTIONS)


@pytest.mark.parametrize(
    ("package", "what", "names"),
    [
        (chaos.faults.actions, Action, index.ACTIONS),
        (chaos.faults.actions.windows, Action, index.WINDOWS_ACTIONS),
        (chaos.faults.actions, HostFact, index.FACTS),
        (chaos.verdicts.assertions, "ASSERTION", None),
    ],
)
def test_lazy_discovery_finds_the_same_plugins_without_an_import(
    package: ModuleType,
    what: str | type,
    names: dict[str, tuple[str, ...]] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sysctl = SimpleNamespace(name="sysctl")
    install(monkeypatch, SYSCTL=sysctl)
    found = discover_lazily(package, what, Group.ACTIONS, names)
    assert list(found) == sorted(found)
    assert dict(found) == {**discover(package, what), "sysctl": sysctl}
    assert found.get("no-such-plugin") is None


def test_a_plugin_that_does_not_load_is_named_with_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, BROKEN=None)
    with pytest.raises(PluginError, match=r"no_such_module:BROKEN.*ModuleNotFoundError: No module named") as raised:
        discover(chaos.faults.actions, Action, Group.ACTIONS)
    assert isinstance(raised.value.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize("plugin", [object(), SimpleNamespace(name=""), SimpleNamespace(name=7)])
def test_a_plugin_needs_a_name(monkeypatch: pytest.MonkeyPatch, plugin: object) -> None:
    install(monkeypatch, MINE=plugin)
    with pytest.raises(PluginError, match="has no name"):
        discover(chaos.faults.actions, Action, Group.ACTIONS)


def test_the_distribution_of_a_plugin_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "outside-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[{Group.ACTIONS}]\nsysctl = no_such_module:ACTION\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError, match=r"outside 1\.2"):
        discover(chaos.faults.actions, Action, Group.ACTIONS)
