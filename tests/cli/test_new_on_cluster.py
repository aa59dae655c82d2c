"""``nodefall new`` with a cluster: what it finds there, and that the files that it writes hold on a lab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from chaos.cli.setup import new as new_impl
from chaos.cli.setup.commands import new_command
from chaos.documents.experiment import load_experiment
from chaos.engine.registry import load_registry
from tests.kit.processes import ROOT, WALL, nodefall
from tests.kit.tutorial import blocks

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(4 * WALL)]
SHOP = blocks((ROOT / "docs" / "start.md").read_text(encoding="utf-8"), "yaml")[0]
OWNERS = ("Deployment/web", "StatefulSet/db")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory with lab.json, the inventory of a lab that runs the shop of docs/start.md.

    A fresh lab for each test: what a run before did decides where the pods of the next one are.
    """
    directory = tmp_path
    (directory / "shop.yaml").write_text(SHOP, encoding="utf-8")
    up = nodefall("lab", "up", "--name", "new", "--workload", "shop.yaml", "--out", "lab.json", cwd=directory)
    assert up.returncode == 0, up.stderr
    try:
        yield directory
    finally:
        nodefall("lab", "down", "--all", cwd=directory)


def run_of(file: str, place: Path) -> list[str]:
    """The verdicts of the expectations of a run, which must have been proven to do something."""
    run = nodefall("run", file, "-i", "lab.json", "--seed", "1", "--json", cwd=place)
    assert run.returncode == 0, run.stdout + run.stderr
    return [each["status"] for each in json.loads(run.stdout)["hypothesis"]]


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("action", ["power-cut", "drain", "poweroff"])
def test_what_is_written_is_true(action: str, owner: str, place: Path) -> None:
    file = f"{action}-{owner.partition('/')[2]}.yaml"
    options = ("-i", "lab.json", "--action", action, "--namespace", "shop", "--owner", owner)
    made = nodefall("new", file, *options, cwd=place)
    assert made.returncode == 0, made.stderr
    assert f"nodefall run {file} -i lab.json" in made.stdout
    assert run_of(file, place) == ["held"] * 4


def test_a_stored_experiment_is_written_again(place: Path) -> None:
    assert nodefall("new", "first.yaml", "--action", "cordon", "--namespace", "shop", cwd=place).returncode == 0
    verdicts = run_of("first.yaml", place)
    again = nodefall("new", "again.yaml", "--from", "first", cwd=place)
    assert again.returncode == 0, again.stderr
    first, second = (load_experiment(place / name, load_registry()) for name in ("first.yaml", "again.yaml"))
    assert (second.metadata.name, second.spec) == ("again", first.spec)
    assert run_of("again.yaml", place) == verdicts


def test_the_menu_has_the_workloads_outside_system_namespaces(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(new_impl, "_on_terminal", lambda: True)
    result = CliRunner().invoke(new_command, ["menu.yaml", "-i", "lab.json"], input="shop/StatefulSet/db\ndrain\n\n")
    assert result.exit_code == 0, result.output
    listed = [line.split()[1] for line in result.output.partition("What fails?")[0].splitlines() if "shop/" in line]
    assert listed[:4] == ["shop/Deployment/api", "shop/Deployment/web", "shop/StatefulSet/db", "shop/StatefulSet/queue"]
    assert "kube-system" not in result.output
    runs = load_experiment(place / "menu.yaml", load_registry()).spec.targets["victim"].runs
    assert runs is not None
    assert runs.owner == "StatefulSet/db"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--namespace", "shop", "--owner", "StatefulSet/web"), "--owner: no StatefulSet/web with pods in shop"),
        (("--namespace", "none"), "no Deployment, StatefulSet or DaemonSet with pods in namespace none"),
        ((), "--owner is missing, and there is no terminal to ask"),
    ],
)
def test_a_workload_that_is_not_there(options: tuple[str, ...], words: str, place: Path) -> None:
    made = nodefall("new", "no.yaml", "-i", "lab.json", "--action", "drain", *options, cwd=place)
    assert made.returncode in (4, 64)
    assert words in made.stderr
    assert not (place / "no.yaml").exists()
