"""-v, -vv and --log-file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from chaos.cli.app import cli
from chaos.cli.lazy import COMMANDS, LazyGroup
from tests.kit.command import command
from tests.kit.processes import EXPERIMENTS, LAB, nodefall

GROUPS = {"gameday", "kind", "lab"}
COMMANDS_OF_GROUPS = ("lab up", "lab down", "kind up", "gameday plan")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", [*sorted(COMMANDS.keys() - GROUPS), *COMMANDS_OF_GROUPS])
def test_every_command_takes_the_options_and_leaves_them_to_the_help_of_the_root(name: str) -> None:
    text = CliRunner().invoke(cli, ["-v", *name.split(), "-v", "--help"])
    assert (text.exit_code, "--log-file" in text.output) == (0, False)


def test_the_help_of_the_root_has_the_global_options() -> None:
    text = CliRunner().invoke(cli, ["--help"]).output
    assert "-v, --verbose" in text
    assert "--log-file FILE" in text


def test_adding_the_options_twice_is_harmless() -> None:
    assert isinstance(cli, LazyGroup)
    context = cli.make_context("nodefall", ["list"])
    for _ in range(2):
        found = cli.get_command(context, "list")
    assert found
    assert sum(parameter.name == "log_file" for parameter in found.params) == 1


def test_without_the_options_nothing_is_logged() -> None:
    code = (
        "import logging, sys; from chaos.cli.app import main; from chaos.cli.reference import commands;"
        "commands.list_command.callback = lambda **_: logging.getLogger('chaos.test').error('a record');"
        "sys.exit(main(['list', *sys.argv[1:]]))"
    )
    for options, expected in ([], False), (["-v"], True):
        done = subprocess.run(
            [sys.executable, "-c", code, *options], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
        )
        assert ("a record" in done.stderr) == expected


def test_a_log_file_that_cannot_be_opened_is_a_usage_error(tmp_path: Path) -> None:
    done = command("list", "--log-file", tmp_path / "missing" / "x.log", cwd=tmp_path)
    assert done.returncode == 64
    assert "error: --log-file: cannot open" in done.stderr


@pytest.mark.lab
def test_levels(tmp_path: Path) -> None:
    plan = ("plan", EXPERIMENTS / "cordon.yaml", "-i", LAB, "--seed", "1")
    quiet = nodefall(*plan, "--log-file", "all.log", cwd=tmp_path)
    verbose = nodefall(*plan, "-v", cwd=tmp_path)
    debug = nodefall(*plan, "-vv", cwd=tmp_path)
    assert [done.returncode for done in (quiet, verbose, debug)] == [0, 0, 0], quiet.stderr + verbose.stderr
    request = "GET https://127.0.0.1:"
    assert (request in quiet.stderr, request in verbose.stderr, request in debug.stderr) == (False, False, True)
    assert request in (tmp_path / "all.log").read_text(encoding="utf-8")
    assert [quiet.stdout.count("proof"), debug.stdout.count("proof")] == [verbose.stdout.count("proof")] * 2


@pytest.mark.lab
def test_a_run_has_a_debug_log(tmp_path: Path) -> None:
    done = nodefall("run", EXPERIMENTS / "cordon.yaml", "-i", LAB, "--seed", "1", "-v", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert " INFO    chaos.app.run.experiment " in done.stderr
    (log,) = tmp_path.glob("reports/*/*/debug.log")
    assert "GET https://127.0.0.1:" in log.read_text(encoding="utf-8")
    assert log.stat().st_mode & 0o077 == 0 or log.parent.stat().st_mode & 0o077 == 0, "readable by its owner only"


@pytest.mark.parametrize("options", ["-vv 2>/dev/full", "--log-file /dev/full"])
def test_a_log_that_cannot_be_written_changes_no_exit_code(options: str) -> None:
    experiment, cluster = EXPERIMENTS / "cordon.yaml", ROOT / "hosts" / "example.yaml"
    line = f"exec {sys.executable} -m chaos plan {experiment} -i {cluster} {options}"
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    plain = command("plan", experiment, "-i", cluster)
    assert done.returncode == plain.returncode
    assert "Logging error" not in done.stderr
