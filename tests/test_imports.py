"""Who may import whom (docs/architecture.md): kept true on the syntax trees.

The rooms and their order are in pyproject.toml, in the form of import-linter.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CONFIG = Path(__file__).parents[1] / "pyproject.toml"
ROOT = CONFIG.parent / "chaos"
MODULES = sorted(ROOT.rglob("*.py"))
# No I/O, no clock, no chance.
PURE = (
    *("app.discovery", "cluster.snapshot", "engine.planning", "engine.preflight", "faults", "gameday"),
    *("rehearsal.forecast", "reports", "verdicts"),
)
IMPURE = ("gameday.notify", "reports.live")
# What only these rooms import.
OWNERS = {
    "kubernetes": ("cluster",),
    "prometheus_api_client": ("cluster",),
    "paramiko": ("machines",),
    "yaml": ("cluster", "documents"),
    "cel_expr_python": ("verdicts",),
    "click": ("cli",),
    "cronsim": ("gameday",),
    "rich": ("cli",),
    "pytest": ("api",),
    "aiohttp": ("lab", "reports"),
    "asyncssh": ("lab",),
    "cryptography": ("faults", "lab", "machines"),
    "urllib3": ("cluster", "machines"),
    "requests": ("cluster", "machines"),
    "spnego": ("machines", "lab"),
    "winrm": ("machines",),
}
FORBIDDEN_IN_PURE = ("time", "random", "socket", "subprocess", "threading", "os", "pathlib", "urllib3")
MAX_MODULE_LINES, MAX_FUNCTION_LINES = 300, 40


def test_rooms_import_only_what_they_may() -> None:
    """No room imports one above it, no two modules or packages each other; the lab is a stranger.

    In a separate process: import-linter disables the loggers of its process.
    """
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True, no_logo=True))"
    done = subprocess.run([sys.executable, "-c", code], cwd=CONFIG.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


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


def _every_module(
    has: Callable[[Path], bool] = lambda _: True,
) -> Callable[[Callable[[Path], None]], Callable[[str], None]]:
    """One test for each room, of a check of one module. Every module that fails it is named."""
    paths = [path for path in MODULES if has(path)]

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
def test_the_product_imports_no_tools(path: Path) -> None:
    """They are for maintainers: the wheel is without them."""
    assert not [name for name in imports(path) if name.split(".")[0] in ("tools", "tests", "benchmarks")]


def _order() -> dict[str, int]:
    """The layer of each room, the lowest has the highest number."""
    contracts = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {room: number for number, layer in enumerate(layers) for room in layer.split(" | ")}


@_every_module()
def test_rooms_name_no_room_above_them(path: Path) -> None:
    """A text that is the name of a module is an import that hides."""
    order, room = _order(), room_of(path) or path.stem
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("chaos."):
            named = ROOT.parent / node.value.replace(".", "/")
            if named.is_dir() or named.with_suffix(".py").exists():
                other = node.value.split(".")[1]
                assert other == room or order[other] > order[room], f"names {node.value}"


@_every_module()
def test_libraries_belong_to_rooms(path: Path) -> None:
    for name in imports(path):
        top, room = name.split(".")[0], room_of(path)
        if top in OWNERS and room != "":
            assert room in OWNERS[top], f"{top} belongs in {OWNERS[top]}"


def _is_pure(path: Path) -> bool:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts) + "."
    return any(name.startswith(f"{room}.") for room in PURE) and not any(name.startswith(f"{r}.") for r in IMPURE)


@_every_module(_is_pure)
def test_the_pure_zone_is_pure(path: Path) -> None:
    """No I/O, no clock; a seeded random.Random in planning is the one exception."""
    allowed = ("random",) if "planning" in path.parts else ()
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
                assert where.startswith(("core/clock/", "lab/")), f"{where} uses {called}"
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
