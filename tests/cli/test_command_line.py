"""The command line: usage, bugs, imports."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import click
import pytest
from click.testing import CliRunner

from chaos.cli.app import cli
from chaos.cli.lazy import COMMANDS
from chaos.cli.reference.commands import schema_command
from chaos.cli.reference.validate import schema_text
from chaos.core.errors import Refused
from tests.kit.command import command

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "documents" / "data"
HEAVY = ("kubernetes", "paramiko", "winrm", "requests", "aiohttp", "rich", "asyncssh", "pydantic", "yaml", "msgspec")
Process = subprocess.CompletedProcess[str]


def python(*arguments: str) -> Process:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False)


USAGE = [
    (["validte"], "unknown command 'validte'. Did you mean 'validate'?"),
    (["frobnicate"], "unknown command 'frobnicate'."),
    (["--nonsense"], "--nonsense"),
    (["validate"], "FILE"),
    (["validate", "--jsn", "x.yaml"], "--json"),
    (["list", "nodes"], "'nodes' is not one of"),
    (["explain"], "NAME"),
    (["explain", "powerof"], "did you mean 'poweroff'?"),
    (["completion", "tcsh"], "'tcsh' is not one of"),
    (["schema", "more"], "more"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE, ids=[" ".join(a) for a, _ in USAGE])
def test_usage_errors_are_64(arguments: list[str], message: str) -> None:
    process = command(*arguments)
    assert process.returncode == 64
    assert message in process.stderr
    assert "error: " in process.stderr
    assert not process.stdout
    assert "Traceback" not in process.stderr


# Run the command line with a replaced body of a command.
SCRIPT = """
import sys
from chaos.cli.reference import commands
from chaos.cli.main import run
def body(**_):
    {body}
commands.schema_command.callback = body
sys.argv = ["nodefall", "schema"]
run()
"""
ENDINGS: list[tuple[Any, int, str]] = [
    (KeyError("no such thing"), 70, "error: this is a bug in nodefall, please report it: KeyError: 'no such thing'"),
    (KeyboardInterrupt(), 130, "interrupted"),
    (Refused("no", hint="ask"), 4, "error: no\nhint: ask"),
    (3, 3, ""),
    (BrokenPipeError(), 70, "error: this is a bug"),  # not of the output, whose closed pipes are ignored
]


@pytest.mark.parametrize(("end", "code", "message"), ENDINGS, ids=[repr(end) for end, _, _ in ENDINGS])
def test_the_end_of_a_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: Any, code: int, message: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # for the traceback
    monkeypatch.setattr(schema_command, "callback", Mock(side_effect=[end]))
    process = command("schema")
    assert process.returncode == code
    assert process.stderr.startswith(message)
    assert "Traceback" not in process.stderr


def test_the_traceback_of_a_bug_is_in_a_file() -> None:
    process = python("-c", SCRIPT.format(body="raise KeyError('x')"))
    assert len(process.stderr.splitlines()) == 1
    file = Path(process.stderr.split("(traceback: ")[1].rstrip(")\n"))
    try:
        assert "KeyError: 'x'" in file.read_text()
    finally:
        file.unlink()


def test_a_closed_pipe_is_quiet() -> None:
    line = f"{sys.executable} -m chaos schema | head -c 1"
    process = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60, check=False)  # noqa: S602 - a pipe is what is tested
    assert (process.stdout, process.stderr) == ("{", "")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], []])
def test_help_imports_nothing_slow(arguments: list[str]) -> None:
    script = (
        "import sys; from chaos.cli.app import main; code = main(sys.argv[1:]); "
        f"sys.exit(code or ', '.join(m for m in {HEAVY!r} if m in sys.modules) or 0)"
    )
    process = python("-c", script, *arguments)
    assert (process.returncode, process.stderr) == (0, "")
    assert "nodefall" in process.stdout


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found
            yield from commands(found, (*path, name))


def help_of(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, columns: int) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    return CliRunner().invoke(cli, [*path, "--help"]).output.splitlines()


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    wide = [line for path in commands(cli) for line in help_of(path, monkeypatch, columns) if len(line) > columns]
    assert wide == []


@pytest.mark.parametrize("columns", [50, 80])
def test_broken_examples_are_the_same_commands(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Behind a backslash, as every shell reads them."""

    def examples(width: int, path: tuple[str, ...]) -> list[list[str]]:
        text = "\n".join(help_of(path, monkeypatch, width)).replace("\\\n", "")
        lines = text.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
        return [shlex.split(line) for line in lines if "nodefall " in line or "kubectl " in line]

    paths = list(commands(cli))
    assert sum(len(examples(200, path)) for path in paths) > 80
    for path in paths:
        assert examples(columns, path) == examples(200, path)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str) -> None:
    process = command(name, "--help")
    assert process.returncode == 0, process.stderr
    assert "Examples:" in process.stdout


def test_validate_as_json() -> None:
    process = command("validate", "--json", str(DATA / "inventory.yaml"), "nowhere.yaml")
    assert process.returncode == 64
    document = json.loads(process.stdout)
    assert document["valid"] is False
    assert document["files"][0] == {
        "file": str(DATA / "inventory.yaml"),
        "kind": "Inventory",
        "name": "staging",
        "problems": [],
    }
    assert document["files"][1]["problems"][0]["message"] == "file not found"


def test_list_and_explain_have_the_same_names() -> None:
    listed = json.loads(command("list", "--json").stdout)
    assert {"poweroff", "power-on"} <= listed["actions"].keys()
    assert "pods" in listed["assertions"]
    document = json.loads(command("explain", "schedule-shutdown", "--json").stdout)
    assert document["summary"] == listed["actions"]["schedule-shutdown"]
    assert document["with"][0]["key"] == "in"
    assert document["undo"] == "restores"
    assert "kubelet configz" in command("explain", "kubelet.shutdownGracePeriod").stdout


def test_facts_of_hosts_are_listed_and_explained() -> None:
    listed = json.loads(command("list", "facts", "--json").stdout)
    assert "kubelet.shutdownGracePeriod" in listed["facts"]
    assert "facts of hosts" in command("list", "facts").stdout
    assert json.loads(command("list", "host-facts", "--json").stdout) == {"host-facts": listed["host-facts"]}
    document = json.loads(command("explain", "sysctl?key=vm.swappiness", "--json").stdout)
    assert (document["kind"], document["summary"]) == ("host fact", listed["host-facts"]["sysctl"])
    assert (document["with"][0]["key"], document["reference"]) == ("key", "sysctl?key=KEY")
    assert document["value"].startswith("Text: ")


def test_systems_of_actions_and_facts_are_shown() -> None:
    both, linux, windows = (
        json.loads(command("explain", name, "--json").stdout)["systems"]
        for name in ("kubelet-stop", "logind-restart", "preshutdown-order")
    )
    assert (both, linux, windows) == (["linux", "windows"], ["linux"], ["windows"])
    assert "systems" not in json.loads(command("explain", "cordon", "--json").stdout)
    assert "systems: linux; windows\n" in command("explain", "kubelet-stop").stdout
    assert "unreported (Linux, Windows)\n" in command("list", "actions").stdout
    assert "pre-shutdown notice (Windows)\n" in command("list", "host-facts").stdout


def test_an_experiment_is_explained_with_its_statements() -> None:
    document = json.loads(command("explain", "priority-seconds", "--json").stdout)
    assert (document["kind"], document["verdict"]) == ("experiment", "held")
    assert len(document["description"]) > 20
    assert "S27" in [statement["id"] for statement in document["statements"]]
    text = command("explain", "priority-seconds").stdout
    assert f"description: {document['description']}\n" in text
    assert "statement S27: " in text
    kinds = [also["kind"] for also in json.loads(command("explain", "cordon", "--json").stdout)["also"]]
    assert kinds == ["experiment"]


def test_a_name_of_an_action_and_of_a_fact_explains_both() -> None:
    document = json.loads(command("explain", "clock-skew", "--json").stdout)
    assert (document["kind"], [also["kind"] for also in document["also"]]) == ("action", ["host fact"])
    text = command("explain", "clock-skew").stdout
    assert "clock-skew (action)" in text
    assert "clock-skew (host fact)" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    process = command("completion", shell)
    assert process.returncode == 0
    assert "_NODEFALL_COMPLETE" in process.stdout


def test_the_schema_in_docs_is_current() -> None:
    stored = (ROOT / "docs" / "nodefall.schema.json").read_text(encoding="utf-8")
    assert stored == schema_text(), "update it: nodefall schema > docs/nodefall.schema.json"
