"""``nodefall plugins``, its check, and where list and explain say that a plug-in is from."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib.metadata import Distribution, EntryPoint, EntryPoints
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from chaos.core import outside
from chaos.core.errors import PluginError
from chaos.core.outside import load_outside
from chaos.engine.registry import load_registry
from chaos.extend.power import PowerDriver, PowerSettings
from chaos.extend.renderer import Renderer
from chaos.faults.actions.power import POWEROFF
from tests.kit.command import command


class Acme(Distribution):
    def read_text(self, filename: str) -> str | None:
        return "Metadata-Version: 2.1\nName: nodefall-acme\nVersion: 0.1.0\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError


ACTION = replace(POWEROFF, name="acme-off", summary="off", example="{name: off, action: acme-off, target: victim}")


def install(monkeypatch: pytest.MonkeyPatch, contract: object, *plugins: tuple[str, object]) -> None:
    """``plugins``: group, without the prefix, and object; ``contract`` of None states none."""
    module = ModuleType("nodefall_acme")
    if contract is not None:
        vars(module)["NODEFALL_CONTRACT"] = contract
    points = []
    for number, (group, plugin) in enumerate(plugins):
        setattr(module, f"P{number}", plugin)
        point = EntryPoint(f"p{number}", f"nodefall_acme:P{number}", f"nodefall.{group}")
        vars(point)["dist"] = Acme()
        points.append(point)
    monkeypatch.setitem(sys.modules, "nodefall_acme", module)
    monkeypatch.setattr(outside, "entry_points", lambda group: EntryPoints(points).select(group=group))
    load_registry.cache_clear()


@pytest.fixture(autouse=True)
def _fresh_registry() -> Any:
    yield
    load_registry.cache_clear()


def test_it_lists_kind_distribution_version_and_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, 1, ("actions", ACTION))
    assert command("plugins").stdout.splitlines()[1].split() == ["actions", "acme-off", "nodefall-acme", "0.1.0", "1"]
    document = json.loads(command("plugins", "--json").stdout)
    assert document["plugins"] == [
        {"kind": "actions", "name": "acme-off", "distribution": "nodefall-acme", "version": "0.1.0", "contract": 1,
         "object": "nodefall_acme:P0", "problem": None}
    ]  # fmt: skip


def test_without_plug_ins_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, 1)
    assert command("plugins").stdout == "no plug-ins of other distributions are installed\n"
    assert command("plugins", "check", "nodefall-acme").returncode == 64


def test_a_plug_in_without_a_contract_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None, ("actions", ACTION), ("actions", replace(ACTION, name="acme-2")))
    warned = command("plugins").stderr
    assert warned.count("warning: nodefall-acme 0.1.0: nodefall_acme does not say") == 1
    assert "write NODEFALL_CONTRACT = 1" in warned


@pytest.mark.parametrize(
    ("contract", "why", "hint"),
    [
        (2, "was written for version 2 of the plug-in contract, and this nodefall supports version 1",
         "upgrade nodefall"),
        (0, "was written for version 0 of the plug-in contract", "upgrade nodefall-acme"),
        ("1", "NODEFALL_CONTRACT is '1', not a whole number", "write NODEFALL_CONTRACT = 1"),
        (True, "NODEFALL_CONTRACT is True, not a whole number", "write NODEFALL_CONTRACT = 1"),
    ],
)  # fmt: skip
def test_another_contract_is_refused(monkeypatch: pytest.MonkeyPatch, contract: object, why: str, hint: str) -> None:
    install(monkeypatch, contract, ("actions", ACTION))
    with pytest.raises(PluginError) as refused:
        list(load_outside("nodefall.actions"))
    assert why in refused.value.message
    assert refused.value.hint == hint
    assert why in command("plugins").stderr
    assert command("plugins", "check", "nodefall-acme").returncode == 1


class Settings(PowerSettings):
    """``kind`` is any text."""


@pytest.mark.parametrize(
    ("group", "plugin", "breach"),
    [
        ("actions", replace(ACTION, example="{action: other}"), "action acme-off: the example is no step"),
        ("actions", replace(ACTION, proofs=()), "action acme-off: the first proof is weak, or there is none"),
        ("actions", SimpleNamespace(name="acme"), "not an instance of Action"),
        ("actions", SimpleNamespace(), "nodefall_acme:P0 has no name"),
        ("assertions", SimpleNamespace(name="acme"), "nodefall_acme:P0 has no summary"),
        ("power", PowerDriver("acme", Settings, lambda *_: None), "is not a Literal of the driver's name"),  # type: ignore[arg-type]
        ("renderers", Renderer("acme", "a/b.txt", "b", lambda *_: ""), "its file 'a/b.txt' is no name of a file"),
        ("observers", SimpleNamespace(name="acme"), "has no build"),
    ],
)
def test_check_has_a_sentence_for_each_breach(
    monkeypatch: pytest.MonkeyPatch, group: str, plugin: object, breach: str
) -> None:
    install(monkeypatch, 1, (group, plugin))
    checked = command("plugins", "check", "nodefall_acme")
    assert (checked.returncode, breach in checked.stderr) == (1, True), checked.stderr
    assert checked.stderr.count("\n") == 1


def test_check_of_plug_ins_that_keep_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, 1, ("actions", ACTION), ("renderers", Renderer("acme", "a.txt", "b", lambda *_: "")))
    checked = command("plugins", "check", "Nodefall.Acme")
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stderr
    assert checked.stdout == "nodefall-acme 0.1.0: 2 plug-ins checked, no breach\n"


def test_list_and_explain_say_where_an_action_is_from(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, 1, ("actions", ACTION))
    (line,) = [line for line in command("list", "actions").stdout.splitlines() if line.split()[:1] == ["acme-off"]]
    assert line.endswith("(nodefall-acme 0.1.0)")
    assert "from: nodefall-acme 0.1.0\n" in command("explain", "acme-off").stdout
    assert json.loads(command("explain", "acme-off", "--json").stdout)["from"] == "nodefall-acme 0.1.0"
    assert "from:" not in command("explain", "poweroff").stdout
