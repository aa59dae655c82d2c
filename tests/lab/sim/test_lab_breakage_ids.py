"""Breakages: ids, texts, one for every rule of facts 16, and exactly one hook for each id."""

from __future__ import annotations

import re
from pathlib import Path

import chaos.lab
from chaos.lab.breakages import BREAKAGES
from tests.kit.simkit import spec

_HOOK = re.compile(r"spec\.(has_breakage|shift)\(\s*\"([^\"]+)\"\s*\)")
_ANY_HOOK = re.compile(r"\.(has_breakage|shift)\(")


def _hooks() -> dict[str, set[str]]:
    """Ids in the lab's calls, by method."""
    found: dict[str, set[str]] = {"has_breakage": set(), "shift": set()}
    for path in Path(chaos.lab.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for method, breakage in _HOOK.findall(text):
            found[method].add(breakage)
        if path.name not in ("spec.py", "breakages.py"):
            assert len(_ANY_HOOK.findall(text)) == len(_HOOK.findall(text)), f"{path}: ids are literals"
    return found


def test_every_breakage_is_hooked_and_every_hook_is_a_breakage() -> None:
    hooks = _hooks()
    shifted = {item.id for item in BREAKAGES.values() if item.seconds}
    assert hooks["has_breakage"] == set(BREAKAGES) - shifted
    assert hooks["shift"] == {re.sub("-(late|early)$", "", item) for item in shifted}


def test_every_rule_can_be_broken() -> None:
    assert {item.rule for item in BREAKAGES.values()} == set(range(1, 13))


def test_ids_and_texts() -> None:
    for key, item in BREAKAGES.items():
        assert re.fullmatch("[a-z]+(-[a-z]+)+", key)
        assert not item.seconds or key.endswith("-late" if item.seconds > 0 else "-early")
        assert item.text[0].islower() or item.text[:3] in {"Rea", "NoE", "NoS", "DEL"}
        assert not item.text.endswith(".")


def test_shifts_add_up() -> None:
    assert spec(breakages=["unknown-late"]).shift("unknown") == 30.0
    assert spec(breakages=["unknown-late", "unknown-early"]).shift("unknown") == 0.0
    assert spec(breakages=["eviction-late"]).shift("unknown") == 0.0
    assert spec(breakages=["pdb-ignored"]).has_breakage("pdb-ignored")
