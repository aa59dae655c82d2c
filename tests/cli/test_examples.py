"""Every example of --help and of the pages, where nodefall is installed without its repository.

All are parsed by the commands themselves; those that need no machine and no run are run.
"""

from __future__ import annotations

import inspect
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from chaos.cli.app import cli
from chaos.core.files import bundled_path
from tests.kit.command import command
from tests.kit.processes import ROOT, WALL, nodefall

FIELD = ROOT / "tests" / "kit" / "field"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELL = re.compile(r"\||>>?|&&?|;|<")
# Their examples need a cluster, a terminal, containers, or what a run has left: the first words.
ELSEWHERE = (
    "abort", "compare", "demo", "doctor", "gameday approve", "gameday halt", "gameday report", "gameday resume",
    "gameday run", "gameday status", "init", "judge", "kind", "lab down", "lab replay", "lab status", "lab up", "new",
    "plugins", "rehearse", "report", "run", "show", "snapshot", "status", "suggest", "trend", "undo", "watch",
)  # fmt: skip
RUN_HERE = (
    "completion", "explain", "gameday deploy", "gameday plan", "lab breakages", "list", "plan", "rbac", "runs",
    "schema", "sudoers", "validate", "windows-rights",
)  # fmt: skip


def _walk(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    if isinstance(group, click.Group):
        for name in group.list_commands(click.Context(group)):
            found = group.get_command(click.Context(group), name)
            assert found
            yield from _walk(found, (*path, name))


def _of_help() -> Iterator[str]:
    for _, found in _walk(cli):
        text = found.epilog or inspect.cleandoc(found.help or "")
        yield from (line.strip() for line in text.partition("Examples:\n")[2].splitlines())


def _of_pages() -> Iterator[str]:
    for page in PAGES:
        for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            lines = block.replace("\\\n", "").splitlines()
            yield from (line.removeprefix("$ ").strip() for line in lines)


def words_of(line: str) -> list[str]:
    """The arguments of nodefall in a line of a shell, [] for any other."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return []
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words.pop(0)
    if words[:1] != ["nodefall"]:
        return []
    end = next((number for number, word in enumerate(words) if SHELL.fullmatch(word.removesuffix("/dev/null"))), None)
    return words[1:end]


EXAMPLES = sorted({tuple(words) for line in (*_of_help(), *_of_pages()) if (words := words_of(line))})
IS_FORM = re.compile(r"\[|\.\.\.|^[A-Z][A-Z/=]+$|…")  # `nodefall run EXPERIMENT [OPTIONS]` is a form, and no example


def _is_example(words: tuple[str, ...]) -> bool:
    return not any(IS_FORM.search(word) for word in words)


CONCRETE = [words for words in EXAMPLES if _is_example(words)]


def test_they_are_found() -> None:
    assert len(CONCRETE) > 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a user has: own experiments, inventories and a game day; no folder ``experiments`` of the repository."""
    made = tmp_path_factory.mktemp("plain")
    (made / "hosts").mkdir()
    for name in ("my.yaml", "other.yaml"):
        shutil.copy(FIELD / "st.yaml", made / name)
    inventory = (FIELD / "inventory.yaml").read_text()
    for name in ("hosts/staging.yaml", "staging.yaml"):
        (made / name).write_text(inventory.replace("identityFile: ~/.ssh/chaos, knownHosts: ~/.ssh/known_hosts", ""))
    shutil.copy(bundled_path("hosts/lab.yaml"), made / "hosts" / "lab.yaml")
    day = (FIELD / "deploy.yaml").read_text()
    (made / "monthly.yaml").write_text(day.replace("x.yaml", "my.yaml").replace("name: a", "name: monthly"))
    for path in made.rglob("*.yaml"):
        path.chmod(0o644)
    return made


@pytest.mark.parametrize("words", CONCRETE, ids=" ".join)
def test_the_command_takes_its_options(words: tuple[str, ...]) -> None:
    """Parsed as a shell passes it; what is named is not read."""
    context, rest = click.Context(cli), list(words)
    found: click.Command = cli
    while isinstance(found, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        following = found.get_command(context, name)
        assert following, f"no command {name}"
        found, context = following, click.Context(following, parent=context)
        if isinstance(found, click.Group) and found.invoke_without_command and (not rest or rest[0].startswith("-")):
            break
    parser = found.make_parser(context)
    _, left, _ = parser.parse_args(rest)
    assert left == []


def _first(words: tuple[str, ...]) -> str:
    two = " ".join(words[:2])
    return two if two in (*ELSEWHERE, *RUN_HERE) else words[0]


def test_every_command_is_run_or_left_out() -> None:
    firsts = {_first(words) for words in CONCRETE if not words[0].startswith("-")}
    assert firsts <= {*ELSEWHERE, *RUN_HERE, "gameday", "lab"}


HELP_EXAMPLES = {tuple(words) for line in _of_help() if (words := words_of(line))}


@pytest.mark.parametrize("words", sorted(each for each in HELP_EXAMPLES if _first(each) in RUN_HERE), ids=" ".join)
def test_it_runs(folder: Path, words: tuple[str, ...]) -> None:
    if words[0] == "plan" and "--inventory" in words and "hosts/staging.yaml" in words:
        pytest.skip("plans on a real cluster")
    if "fleet.yaml" in words:
        pytest.skip("a fleet needs its clusters")
    done = command(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    if "--json" in words:
        json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.timeout(2 * WALL)
def test_the_first_steps_need_no_repository(tmp_path: Path) -> None:
    """In an empty folder, one after the other: experiments and inventories of labs are those of the installation."""
    steps = [
        "demo --plain",
        "plan experiments/graceful-poweroff.yaml --inventory hosts/lab.yaml",
        "run experiments/graceful-poweroff.yaml --inventory hosts/lab.yaml",
        "show last",
        "report graceful-poweroff --format markdown",
        "trend graceful-poweroff",
        "runs --markdown",
        "judge reports/graceful-poweroff/{stamp} experiments/graceful-poweroff.yaml --json",
        "rehearse experiments/graceful-poweroff.yaml --seeds 5",
        "gameday plan experiments/gamedays/first.yaml -i hosts/lab.yaml --seed 7",
        "doctor --inventory hosts/lab.yaml --json",
        "validate experiments/graceful-poweroff.yaml",
    ]
    for step in steps:
        stamps = sorted(path.name for path in tmp_path.glob("reports/graceful-poweroff/*"))
        done = nodefall(*step.format(stamp=stamps[0] if stamps else "").split(), cwd=tmp_path)
        assert done.returncode == 0, (step, done.stderr)
