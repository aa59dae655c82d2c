"""Who may import whom (docs/architecture.md): kept true on the syntax trees."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "chaos"
MODULES = sorted(ROOT.rglob("*.py"))
PURE = (
    *("actions", "assertions", "compare", "day_report", "deploy", "discovery", "facts", "fleet", "forecast"),
    *("gameday", "history", "judge", "outcome", "plan", "preflight", "report", "snapshot"),
)
_PURE_ROOMS = {
    "actions": ("facts", "model"),
    "assertions": ("judge", "model"),
    "compare": ("history", "model", "outcome", "report"),
    "day_report": ("gameday", "model", "report"),
    "deploy": ("model", "plan"),
    "discovery": ("model",),
    "facts": ("model",),
    "fleet": ("gameday", "model"),
    "forecast": ("history", "model", "outcome", "report"),
    "gameday": ("model",),
    "judge": ("model",),
    "outcome": ("model",),
    "plan": ("model",),
    "preflight": ("judge", "model", "plan"),
    "report": ("model",),
    "history": ("model", "report"),
    "snapshot": (),
}
# What each room may import of the others. The cli may import every room but the lab, of which it has the facade.
ROOMS: dict[str, tuple[str, ...]] = {
    "model": (),
    "load": ("fleet", "gameday", "model"),
    **_PURE_ROOMS,
    "store": ("model",),
    "clock": ("model",),
    "kube": ("clock", "model", "plan", "store"),
    "observers": ("kube", "model"),
    "notify": ("gameday", "model", "observers"),
    "hosts": ("clock", "kube", "model", "observers", "plan", "preflight"),
    "engine": ("clock", "hosts", "kube", "model", "observers", "plan", "store"),
    "app": (
        *("", "clock", "engine", "hosts", "kube", "load", "model", "notify", "observers", "store"),
        *_PURE_ROOMS,
    ),
    "rehearse": (
        *("app", "compare", "engine", "forecast", "hosts", "kube", "model", "observers", "outcome"),
        *("snapshot", "store"),
    ),
    "serve": ("model", "report"),
    "": ("app", "compare", "forecast", "model", "outcome", "rehearse"),
    "plugin": ("", "api", "app", "load", "model", "report", "store"),
    "lab": (),
}
# What only these rooms import.
OWNERS = {
    "kubernetes": ("kube",),
    "paramiko": ("hosts",),
    "prometheus_api_client": ("observers",),
    "yaml": ("load",),
    "cel_expr_python": ("judge",),
    "click": ("cli",),
    "cronsim": ("gameday",),
    "rich": ("cli",),
    "pytest": ("plugin",),
    "aiohttp": ("lab", "serve"),
    "asyncssh": ("lab",),
    "cryptography": ("facts", "lab"),
    "urllib3": ("kube", "observers", "hosts"),
    "requests": ("hosts", "observers"),
    "spnego": ("hosts", "lab"),
    "winrm": ("hosts",),
}
FORBIDDEN_IN_PURE = ("time", "random", "socket", "subprocess", "threading", "os", "pathlib", "urllib3")
# The siblings that plug-ins share; so are modules whose name begins with an underscore.
SHARED_SIBLINGS = {
    "preflight": ("check", "observations"),
    "facts": ("certificates", "interfaces", "logind", "shutdown_requests"),
    "report": (
        "describe",
        "durations",
        "markup",
        "offline_page",
        "outline",
        "page",
        "renderer",
        "runs_table",
        "summary",
        "verdict_rows",
    ),
}
PLUGINS = ("actions", "assertions", "preflight", "facts", "report")
FACADE = "chaos.lab.facade"
MAX_MODULE_LINES, MAX_FUNCTION_LINES = 300, 40


def imports(path: Path) -> list[str]:
    names = []
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0] if path.parent != ROOT else ""


@pytest.fixture(scope="module", autouse=True)
def _forget_trees() -> Iterator[None]:
    """Free the syntax trees of all modules after these tests: they take 200 MB."""
    yield
    _tree.cache_clear()


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _every_module(*rooms: str) -> Callable[[Callable[[Path], None]], Callable[[str], None]]:
    """One test for each room, of a check of one module. Every module that fails it is named."""
    paths = [path for path in MODULES if not rooms or room_of(path) in rooms]

    def decorate(check: Callable[[Path], None]) -> Callable[[str], None]:
        @pytest.mark.parametrize("room", sorted({room_of(path) for path in paths}))
        def test(room: str) -> None:
            wrong = []
            for path in paths:
                if room_of(path) == room:
                    try:
                        check(path)
                    except AssertionError as error:
                        wrong.append(f"{path.relative_to(ROOT)}: {error}")
            assert not wrong, "\n".join(wrong)

        return test

    return decorate


@_every_module()
def test_rooms_import_only_what_they_may(path: Path) -> None:
    room = room_of(path)
    for name in imports(path):
        top, *rest = name.split(".")
        if top == "chaos" and rest and path.name != "__main__.py":
            _check_room(room, rest[0] if (ROOT / rest[0]).is_dir() or rest[0] == "api" else "", name)
            if room in PLUGINS and rest[0] == room and len(rest) > 1:
                module = rest[2] if rest[1] == "windows" and len(rest) > 2 else rest[1]
                shared = module.startswith("_") or module in SHARED_SIBLINGS.get(room, ())
                shared = shared or (path.parent.name == "windows" and module == path.stem)  # the form for Linux
                assert shared, f"siblings in {room} import each other: {name}"
        if top in OWNERS and room != "":
            assert room in OWNERS[top], f"{top} belongs in {OWNERS[top]}, here in {room}"


def _check_room(room: str, other: str, name: str) -> None:
    if other == room:
        return
    if other == "lab":
        assert room in ("cli", "app", "rehearse"), f"{room} imports the lab: {name}"
        assert f"{name}.".startswith(f"{FACADE}."), f"only {FACADE} of the lab is for others, here {name}"
    elif room == "cli":
        assert other != "plugin", f"the cli imports {name}"
    else:
        assert other in ROOMS[room], f"{room} may import {ROOMS[room]}, here {name}"


def test_rooms_are_in_layers() -> None:
    """The table itself has no circle."""
    TopologicalSorter({room: set(others) - {""} for room, others in ROOMS.items() if room}).prepare()


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Packages that only hold others have no part in it."""
    names = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in MODULES}
    graph = {
        name: {found for full in imports(path) for found in (full, full.rpartition(".")[0]) if found in names} - {name}
        for name, path in names.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import circle: {' -> '.join(error.args[1])}")


@_every_module(*PURE)
def test_the_pure_zone_is_pure(path: Path) -> None:
    """No I/O, no clock; a seeded random.Random in plan is the one exception."""
    allowed = {"plan": ("random",)}.get(room_of(path), ())
    for name in imports(path):
        top = name.split(".")[0]
        assert top not in FORBIDDEN_IN_PURE or top in allowed, f"{path.name} imports {name}"
    calls = [
        node.func.id for node in ast.walk(_tree(path)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    assert not {"open", "print", "input", "exec", "eval"} & set(calls)


@_every_module()
def test_one_clock_and_one_exit(path: Path) -> None:
    """time.sleep and time.time belong to the clock and to the lab's pacing; sys.exit to the cli."""
    where = path.relative_to(ROOT).as_posix()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            called = f"{node.value.id}.{node.attr}"
            if called in ("time.sleep", "time.time", "datetime.now"):
                assert where.startswith(("clock/", "lab/")), f"{where} uses {called}"
            if called == "sys.exit":
                assert where.startswith("cli/") or where.endswith("__main__.py"), f"{where} exits"


@_every_module()
def test_modules_and_functions_are_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_MODULE_LINES
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            assert lines <= MAX_FUNCTION_LINES, f"{node.name} has {lines} lines"


@_every_module()
def test_no_broad_except_loses_its_traceback(path: Path) -> None:
    """It raises, keeps the exception, or logs it with its traceback."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type):
            assert node.name or any(_preserves(inner) for inner in ast.walk(node)), f"line {node.lineno}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "suppress":
            assert not any(_is_broad(argument) for argument in node.args), f"line {node.lineno}: suppresses everything"


def _is_broad(node: ast.expr | None) -> bool:
    if node is None:
        return True
    kinds = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException") for kind in kinds)


def _preserves(node: ast.AST) -> bool:
    logs = isinstance(node, ast.Attribute) and node.attr == "exception"
    return isinstance(node, ast.Raise) or logs or (isinstance(node, ast.keyword) and node.arg == "exc_info")


def test_rules_are_checked_against_every_room() -> None:
    assert {room_of(path) for path in MODULES} <= {*ROOMS, "cli"}
