"""Experiments on the command line: files, and names of bundled experiments, which work outside of a checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from chaos.cli.app import cli
from chaos.cli.complete import bundled_names, experiment_path
from chaos.core.errors import UsageError
from chaos.core.files import bundled_path
from tests.kit.command import command as run_command

BUNDLED = bundled_path("experiments/power-cut.yaml")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory in which commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("power-cut", BUNDLED),
        ("power-cut.yaml", Path("power-cut.yaml")),
        ("./power-cut", Path("power-cut")),
        ("experiments/power-cut", Path("experiments/power-cut")),
        ("../experiments/power-cut", Path("../experiments/power-cut")),
        ("mine", Path("mine")),
        ("", Path()),
        ("power-cut\n", Path("power-cut\n")),
    ],
)
def test_which_file(text: str, path: Path) -> None:
    assert experiment_path(text) == path


@pytest.mark.parametrize("kind", ["file", "folder", "broken link"])
def test_what_exists_has_precedence_over_a_bundled_name(folder: Path, kind: str) -> None:
    path = folder / "power-cut"
    if kind == "file":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    assert experiment_path("power-cut") == Path("power-cut")


def test_a_misspelled_name_is_an_error_with_the_similar_one() -> None:
    with pytest.raises(UsageError, match="no file and no bundled experiment 'power-cuts'") as raised:
        experiment_path("power-cuts")
    assert raised.value.hint == "did you mean 'power-cut'?"


def test_every_bundled_experiment_has_its_file_name() -> None:
    assert len(bundled_names()) > 100
    assert [name for name in bundled_names() if experiment_path(name).stem != name] == []


@pytest.mark.parametrize(
    "words",
    [
        ["rbac", "power-cut", "--json"],
        ["sudoers", "power-cut", "--json", "-i", str(bundled_path("hosts/lab.yaml"))],
        ["windows-rights", "power-cut", "--json", "-i", str(bundled_path("hosts/lab.yaml"))],
    ],
    ids=lambda words: words[0],
)
def test_commands_without_a_cluster_accept_names(words: list[str]) -> None:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)


@pytest.mark.parametrize("command", ["run", "plan", "doctor", "rehearse", "judge"])
def test_other_commands_resolve_names_the_same_way(command: str, folder: Path) -> None:
    """Each refuses a misspelled name with a suggestion, before anything else."""
    recording = ["missing.jsonl.gz"] if command == "judge" else []
    done = run_command(command, *recording, "power-cuts", "--json", cwd=folder)
    assert done.returncode == 64, done.stderr
    assert "power-cuts" in done.stderr
    assert json.loads(done.stdout)["error"]["hint"] == "did you mean 'power-cut'?"
