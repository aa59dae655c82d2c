"""What completion offers, and that it does so in real shells."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from chaos.cli.app import cli
from chaos.cli.complete import complete_document
from chaos.cli.lazy import COMMANDS
from tests.kit.processes import ROOT, WALL, environment
from tests.kit.stored_runs import result_of, store, within

RECORDING = "tests/recordings/01-graceful-poweroff.jsonl.gz"


def offered(*words: str) -> list[str]:
    """For the last word, as a shell gets it."""
    *before, incomplete = words
    found = ShellComplete(cli, {}, "nodefall", "_NODEFALL_COMPLETE").get_completions(before, incomplete)
    return [item.value if item.type == "plain" else f"<{item.type}>" for item in found]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with experiments, an inventory, a game day, other files and a stored run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments" / "gamedays").mkdir(parents=True)
    (tmp_path / "experiments" / "workloads").mkdir()
    (tmp_path / ".hidden").mkdir()
    kinds = {
        "experiments/graceful.yaml": "apiVersion: nodefall.dev/v1alpha1\nkind: Experiment\n",
        "experiments/other.yml": "kind: 'Experiment'\n",
        "experiments/gamedays/first.yaml": "kind: GameDay\n",
        "experiments/workloads/web.yaml": "kind: Deployment\n",
        "lab.json": '{"apiVersion": "v1", "kind": "Inventory"}',
        "notes.md": "kind: Experiment\n",
    }
    for name, text in kinds.items():
        (tmp_path / name).write_text(text)
    store(tmp_path / "reports", result_of(within(12.0)))
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["run", "exp"],
            [
                *(f"experiments/{name}" for name in ("gamedays/", "graceful.yaml", "other.yml", "workloads/")),
                "expected-pods",
                "expired-certificate",
            ],
        ),
        (["run", "partition-rid"], ["<file>", "partition-ridden-out"]),
        (["judge", "x.gz", "power-cut", "--bind", ""], ["victim="]),
        (["run", "experiments/g"], ["experiments/gamedays/", "experiments/graceful.yaml"]),
        (["plan", "experiments/gr"], ["experiments/graceful.yaml"]),
        (["run", "experiments/graceful.yaml", "-i", "l"], ["lab.json"]),
        (["gameday", "plan", "experiments/gamed"], ["experiments/gamedays/first.yaml"]),
        (["validate", "l"], ["lab.json"]),
        (["run", "none/x"], ["<file>"]),
        (["run", ".h"], ["<file>"]),
        (["show", "e"], ["e", "e/"]),
        (["show", ""], ["last", "e", "e/"]),
        (["new", "--action", "powero"], ["poweroff"]),
        (["new", "--expect", "pods-re"], ["pods-rejected", "pods-rescheduled"]),
        (["explain", "base"], ["baseline"]),
        (["explain", "drain-b"], ["drain-blocked"]),
        (["explain", "kubelet.nodeSt"], ["kubelet.nodeStatusReportFrequency", "kubelet.nodeStatusUpdateFrequency"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)  # fmt: skip
def test_what_is_offered(words: list[str], expected: list[str]) -> None:
    assert offered(*words) == expected


def test_contexts_of_a_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    config.write_text("contexts: [{name: staging}, {name: shop}, {name: prod}]\n")
    config.chmod(0o600)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert offered("init", "--kubeconfig", str(config), "--context", "s") == ["staging", "shop"]
    assert offered("init", "--context", "") == []
    monkeypatch.setenv("KUBECONFIG", str(config))
    assert offered("init", "--context", "p") == ["prod"]


def test_targets_of_an_experiment_with_the_nodes_of_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    experiment = "experiments/graceful-poweroff.yaml"
    assert offered("judge", RECORDING, experiment, "--bind", "victim=ra-w") == [
        "victim=ra-worker", "victim=ra-worker2", "victim=ra-worker3"
    ]  # fmt: skip
    assert offered("judge", "none.jsonl.gz", experiment, "--bind", "") == ["victim="]
    assert offered("judge", RECORDING, "none.yaml", "--bind", "") == []


def test_an_absolute_path_and_one_above(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("run", f"{folder}/experiments/gr") == [f"{folder}/experiments/graceful.yaml"]
    monkeypatch.chdir(folder / "experiments" / "gamedays")
    assert offered("run", "../gr") == ["../graceful.yaml"]


def test_a_directory_that_cannot_be_read_offers_nothing(folder: Path) -> None:
    complete = complete_document("Experiment")
    (folder / "lab.json").unlink()
    os.symlink(folder / "gone", folder / "broken.yaml")
    os.mkfifo(folder / "broken.json")  # would never be read to its end
    assert [item.type for item in complete(None, None, "broken")] == ["file"]  # type: ignore[arg-type]


def parameters(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Parameter]]:
    """Those of a command and of all below it."""
    yield from ((path, parameter) for parameter in command.params)
    for name, below in getattr(command, "commands", {}).items():
        yield from parameters(below, (*path, name))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_experiment_and_inventory_is_completed(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    for path, parameter in parameters(command, (name,)):
        if parameter.name in ("experiment", "experiments") or "-i" in parameter.opts:
            assert parameter._custom_shell_complete is not None, (path, parameter.name)


@pytest.fixture
def program(folder: Path) -> dict[str, str]:
    """An environment with ``nodefall`` on the path."""
    path = folder / "bin" / "nodefall"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -m chaos "$@"\n')
    path.chmod(0o755)
    return environment(folder) | {"PATH": f"{path.parent}:{os.environ['PATH']}", "HOME": str(folder), "TERM": "dumb"}


def shell(name: str) -> str:
    found = shutil.which(name)
    if not found:
        pytest.skip(f"needs {name}")
    return found


def script(name: str, folder: Path) -> Path:
    from chaos.cli.reference.commands import script_of  # noqa: PLC0415

    path = folder / f"completion.{name}"
    path.write_text(script_of(name), encoding="utf-8")
    return path


class Terminal:
    """An interactive shell on a pseudo-terminal."""

    def __init__(self, argv: list[str], env: dict[str, str], cwd: Path) -> None:
        ours, theirs = pty.openpty()
        self._ours, self.output = ours, ""
        self.process = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)

    def type(self, text: str, expect: str) -> None:
        """Type, then read until ``expect`` is shown; what was shown before does not count."""
        seen = len(self.output)
        os.write(self._ours, text.encode())
        while expect not in self.output[seen:]:
            ready, _, _ = select.select([self._ours], [], [], WALL)
            assert ready, f"no {expect!r} after {text!r}: {self.output}"
            self.output += os.read(self._ours, 65536).decode(errors="replace")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


# What is typed, and what a tab adds.
INTERACTIVE = [
    ("bash", ["--norc", "--noprofile", "-i"], "PS1='ready> '; source {script}; echo do''ne\n"),
    ("zsh", ["-f", "-i"], "PS1='ready> '; autoload -Uz compinit; compinit -u -D; source {script}; echo do''ne\n"),
]
CASES = [("nodefall expl", "ain"), ("nodefall run experiments/gr", "aceful.yaml"), ("nodefall show la", "st")]


@pytest.mark.timeout(2 * WALL)
@pytest.mark.parametrize(
    ("name", "options", "ready"),
    INTERACTIVE,
    ids=["bash", "zsh"],
)  # fmt: skip
def test_a_tab_in_an_interactive_shell(
    name: str, options: list[str], ready: str, folder: Path, program: dict[str, str]
) -> None:
    terminal = Terminal([shell(name), *options], program, folder)
    try:
        terminal.type(ready.format(script=script(name, folder)), "done")
        for typed, added in CASES:
            terminal.type(typed, typed)
            terminal.type("\t", added)
            terminal.type("\x15", "")  # Ctrl-U
    finally:
        terminal.close()


@pytest.mark.parametrize(("typed", "added"), CASES)
def test_fish_completes(typed: str, added: str, folder: Path, program: dict[str, str]) -> None:
    command = f"source {script('fish', folder)}; complete -C '{typed}'"
    done = subprocess.run(
        [shell("fish"), "--no-config", "-c", command], cwd=folder, env=program, capture_output=True, text=True,
        timeout=WALL, check=False,
    )  # fmt: skip
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [typed.rsplit(maxsplit=1)[-1] + added], (
        done.stderr
    )


NAME = "a b;$(touch pwned)&'c,d.yaml"
DOCUMENTS = {"e": "Experiment", "g": "GameDay", "i": "Inventory"}
# The words before the name of a file, and the first letter of the file.
FILES = [
    ("run", "e"),
    ("plan", "e"),
    ("validate", "g"),
    ("rbac", "e"),
    ("rehearse", "e"),
    ("judge x.gz", "e"),
    ("run e.yaml -i", "i"),
    ("doctor -i", "i"),
    ("gameday plan", "g"),
    ("gameday run", "g"),
    ("report", "r"),
    ("show", "r"),
    ("trend", "r"),
]


@pytest.fixture
def odd(folder: Path, program: dict[str, str]) -> dict[str, str]:
    """The environment of a folder with odd names, whose ``nodefall`` completes, and else shows its arguments."""
    for letter, kind in DOCUMENTS.items():
        (folder / f"{letter}{NAME}").write_text(f"kind: {kind}\n")
    (folder / "reports" / f"r{NAME}" / "20260101T000000Z").mkdir(parents=True)
    (folder / "bin" / "nodefall").write_text(
        f'#!/bin/sh\n[ "$_NODEFALL_COMPLETE" ] && exec {sys.executable} -m chaos "$@"\n'
        "printf '<%s>' \"$@\"; echo '<end>'\n"
    )
    return program


@pytest.mark.timeout(2 * WALL)
@pytest.mark.parametrize(("name", "options", "ready"), INTERACTIVE, ids=["bash", "zsh"])
def test_names_are_quoted_in_every_command(
    name: str, options: list[str], ready: str, folder: Path, odd: dict[str, str]
) -> None:
    """What a tab adds is one word of the command that then runs, and nothing of it runs by itself."""
    terminal = Terminal([shell(name), *options], odd, folder)
    try:
        terminal.type(ready.format(script=script(name, folder)), "done")
        for words, letter in FILES:
            terminal.type(f"nodefall {words} {letter}a", "")
            terminal.type("\t", "d.yaml")
            terminal.type("\n", "<end>")
            shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]", "", terminal.output)
            expected = "".join(f"<{word}>" for word in words.split())
            assert f"{expected}<{letter}{NAME}" in shown, (words, shown[-600:])
    finally:
        terminal.close()
    assert not (folder / "pwned").exists()


def test_fish_is_given_whole_names(folder: Path, odd: dict[str, str]) -> None:
    """It quotes them itself."""
    lines = [f"echo (complete -C 'nodefall {words} {letter}a')[1]" for words, letter in FILES]
    done = subprocess.run(
        [shell("fish"), "--no-config", "-c", "; ".join([f"source {script('fish', folder)}", *lines])],
        cwd=folder, env=odd, capture_output=True, text=True, timeout=WALL, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"{letter}{NAME}" for _, letter in FILES], done.stderr
    assert not (folder / "pwned").exists()


def kubectl(*words: str) -> str:
    """What the real kubectl prints, with the plug-in on its PATH."""
    folder = Path(sys.executable).parent
    inherited = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "KUBECONFIG": os.devnull}
    program = shutil.which("kubectl", path=inherited["PATH"])
    if not program or not (folder / "kubectl-nodefall").exists():
        pytest.skip("there is no program kubectl, or the plug-in is not installed")
    done = subprocess.run([program, *words], env=inherited, capture_output=True, text=True, timeout=WALL, check=False)
    assert done.returncode in (0, 64), done.stderr
    return done.stdout + done.stderr


def test_kubectl_runs_the_plugin_with_its_options() -> None:
    assert kubectl("nodefall", "--version").startswith("nodefall, version ")
    said = kubectl("nodefall", "doctor", "--context", "staging", "-i", "none.yaml")
    assert "none.yaml" in said
    assert "unknown flag" not in said


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["doct"], "doctor\t"),
        (["doctor", "--conte"], "--context\t"),
        (["lab", "u"], "up\t"),
        (["plan", "grace"], "graceful-poweroff\t"),
    ],
)
def test_kubectl_completes_the_plugin(words: list[str], line: str) -> None:
    lines = kubectl("__complete", "nodefall", *words).splitlines()
    assert any(each.startswith(line) or each == line.strip() for each in lines), lines
    assert any(each in (":0", ":4") for each in lines)
