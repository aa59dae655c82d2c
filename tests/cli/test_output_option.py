"""``--output`` as kubectl has it, beside ``--json``."""

from __future__ import annotations

import json

import click
import pytest
import yaml
from click.testing import CliRunner

from chaos.cli.app import cli, main
from chaos.cli.lazy import COMMANDS, SECTIONS

ARGUMENTS = (["list"], ["explain", "pods"], ["validate", "experiments/power-cut.yaml"], ["runs"], ["lab", "status"])


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=" ".join)
def test_yaml_has_what_json_has(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for option in (["--json"], ["-o", "json"], ["--output", "yaml"]):
        assert main([*arguments, *option]) == 0
        found.append(capsys.readouterr().out)
    assert json.loads(found[0]) == json.loads(found[1]) == yaml.safe_load(found[2])


def test_every_command_with_json_has_it() -> None:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--json" in options) == ("--output" in options)


def test_an_error_is_an_object_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "nothing-like-it", "-o", "json"]) == 64
    assert json.loads(capsys.readouterr().out)["error"]["code"] == 64


def test_the_help_shows_every_command_once_in_its_section() -> None:
    text = CliRunner().invoke(cli, ["--help"]).output
    lines = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and line.split()]
    for title, rows in SECTIONS.items():
        assert f"{title}:\n" in text
        assert all(lines.count(name) == 1 for name in rows if name != "run")
    assert all(len(line) <= 80 for line in text.splitlines())
