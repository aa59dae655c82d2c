"""Who may import whom (design of the package): kept true on the syntax trees."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "chaos"
MODULES = sorted(ROOT.rglob("*.py"))
PURE = ("actions", "assertions", "doctor", "facts", "judge", "plan", "report")
# What only one folder imports.
OWNERS = {
    "kubernetes": "observers",
    "paramiko": "transports",
    "prometheus_api_client": "observers",
    "yaml": "load",
    "cel_expr_python": "judge",
    "click": "cli",
    "rich": "cli",
    "pytest": "plugin",
    "aiohttp": "lab",
    "asyncssh": "lab",
    "cryptography": "lab",
    "urllib3": "",
    "requests": "",
}
SHARED = {"urllib3": ("observers", "power"), "requests": ()}
FORBIDDEN_IN_PURE = ("time", "random", "logging", "socket", "subprocess", "threading", "os", "pathlib", "urllib3")
# A sibling may only import another where it is no plug-in but what plug-ins share.
SHARED_SIBLINGS = {"doctor": ("check", "signs"), "facts": ("login1", "inhibitors", "kubelet_process", "units")}
# Folders that only these may import.
USERS = {"cli": ("cli",), "session": ("", "cli", "plugin", "session"), "api": ("cli", "plugin"), "lab": ("cli", "lab")}
PLUGINS = ("actions", "assertions", "doctor", "facts", "report")


def imports(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def folder(path: Path) -> str:
    return path.relative_to(ROOT).parts[0] if path.parent != ROOT else ""


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_import_rules(path: Path) -> None:
    where = folder(path)
    for name in imports(path):
        top, *rest = name.split(".")
        if top == "chaos" and rest:
            if where == "lab":
                assert rest[0] == "lab", f"the lab imports nothing of the rest of chaos, here {name}"
            if where == "model":
                assert rest[0] == "model", f"model imports nothing else, here {name}"
            if path.name != "__main__.py":
                users = USERS.get(rest[0], (where,))
                assert where in users, f"only {users} may import {name}, here {where}"
            if where in PURE:
                assert rest[0] in ("model", *PURE), f"the pure zone imports {name}"
            if where in PLUGINS and rest[0] == where and len(rest) > 1:
                allowed = rest[1].startswith("_") or rest[1] in SHARED_SIBLINGS.get(where, ())
                assert allowed, f"siblings in {where} import each other: {name}"
        owners = SHARED.get(top) or ((OWNERS[top],) if top in OWNERS else None)
        if owners is not None and where != "":
            assert where in owners, f"{top} belongs in {owners}, here in {where}"


@pytest.mark.parametrize("path", [p for p in MODULES if folder(p) in PURE], ids=lambda p: str(p.relative_to(ROOT)))
def test_the_pure_zone_is_pure(path: Path) -> None:
    """No I/O, no clock, no logging; a seeded random.Random in plan is the one exception."""
    allowed = {"plan": ("random",)}.get(folder(path), ())
    for name in imports(path):
        top = name.split(".")[0]
        assert top not in FORBIDDEN_IN_PURE or top in allowed, f"{path.name} imports {name}"
    calls = [
        node.func.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    assert not {"open", "print", "input", "exec", "eval"} & set(calls)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_one_clock_and_one_exit(path: Path) -> None:
    """time.sleep and time.time belong to the Clock and to the lab's own pacing; sys.exit to the cli."""
    where = path.relative_to(ROOT).as_posix()
    text = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(text):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            called = f"{node.value.id}.{node.attr}"
            if called in ("time.sleep", "time.time", "datetime.now"):
                assert where == "engine/clock.py" or where.startswith("lab/"), f"{where} uses {called}"
            if called == "sys.exit":
                assert where.startswith("cli/") or where.endswith("__main__.py"), f"{where} exits"
