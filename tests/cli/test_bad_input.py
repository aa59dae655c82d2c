"""Bad input: exit code, position and message, and never a traceback. One case runs as a process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.core.errors import BadInput
from chaos.core.registry import PluginRegistry
from chaos.documents.experiment import load_experiment
from tests.kit.command import command

DATA = Path(__file__).parent.parent / "documents" / "data"
CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "bad_input.yaml").read_text(encoding="utf-8"))
Process = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Process]]:
    """Every case, by name."""
    folder = tmp_path_factory.mktemp("bad")
    shutil.copytree(DATA, folder, dirs_exist_ok=True)
    files = []
    for index, case in enumerate(CASES):
        file = folder / f"{index}.yaml"
        file.write_text(content(case), encoding="utf-8")
        files.append(file)
    matching = [command("validate", file) for file in files]
    return {case["name"]: (file, process) for case, file, process in zip(CASES, files, matching, strict=True)}


def content(case: dict[str, Any]) -> str:
    if "text" in case:
        return str(case["text"])
    base = (DATA / f"{case['base']}.yaml").read_text(encoding="utf-8")
    assert case["old"] in base, case["name"]
    return base.replace(case["old"], case["new"], 1)


def test_there_are_enough_cases() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_file_is_refused_with_position_and_reason(
    case: dict[str, Any], outcomes: dict[str, tuple[Path, Process]]
) -> None:
    file, process = outcomes[case["name"]]
    assert process.returncode == case["exit"], process.stderr
    assert "Traceback" not in process.stderr
    position = f"{file}:{case['at']}: " if case["at"] else f"{file}: "
    matching = [
        line
        for line in process.stderr.splitlines()
        if line.startswith(f"error: {position}") and case["message"] in line
    ]
    assert matching, process.stderr


def test_a_process_prints_the_same(outcomes: dict[str, tuple[Path, Process]]) -> None:
    file, here = outcomes[CASES[0]["name"]]
    arguments = [sys.executable, "-m", "chaos", "validate", str(file)]
    process = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert (process.returncode, process.stdout, process.stderr) == (here.returncode, here.stdout, here.stderr)


def test_a_secret_is_not_repeated(outcomes: dict[str, tuple[Path, Process]]) -> None:
    _, process = outcomes["a secret in the file"]
    assert "hunter2" not in process.stdout + process.stderr


def _missing(path: Path) -> None:
    assert not path.exists()


def _almost(path: Path) -> None:
    path.with_suffix(".yml").write_text("a: b")


def _latin1(path: Path) -> None:
    path.write_bytes(b"a: b\nc: caf\xe9\n")


def _writable(mode: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        shutil.copy(DATA / "inventory.yaml", path)
        path.chmod(mode)
        if mode & 0o020 and os.geteuid() == 0:
            os.chown(path, 0, 12345)

    return make


def _huge(path: Path) -> None:
    path.write_text("# " + "x" * (3 * 1024 * 1024))


def _near(path: Path) -> None:
    path.with_name("files.yaml").write_text("a: b")


FILES: list[tuple[Callable[[Path], Any], str]] = [
    (_missing, "file.yaml: file not found\n"),
    (_almost, "file.yaml: file not found (did you mean '"),
    (_almost, "file.yml'?)"),
    (_near, "files.yaml'?)"),
    (Path.mkdir, "no experiment, inventory or game day in "),
    (os.mkfifo, "is not a regular file"),
    (_latin1, "file.yaml:2:7: is not UTF-8 (byte 0xe9)"),
    (_writable(0o666), "not trusted: any user may write this file"),
    (_huge, "the limit is 2097152"),
]
if os.geteuid() == 0:
    FILES.append((_writable(0o664), "not trusted: the group may write this file"))


@pytest.mark.parametrize(("make", "message"), FILES, ids=[message for _, message in FILES])
def test_unusable_files(make: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    make(path)
    process = command("validate", str(path))
    assert process.returncode == 64
    assert message in process.stderr
    assert "Traceback" not in process.stderr


def test_all_problems_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(
        (DATA / "inventory.yaml").read_text().replace("port: 22", "port: 0").replace("maxNodes", "maxNode")
    )
    second.write_text("a: b\n")
    process = command("validate", str(first), str(second), str(DATA / "experiment.yaml"))
    assert process.returncode == 64
    assert len(process.stderr.splitlines()) == 3
    assert process.stdout.endswith("experiment.yaml: Experiment graceful-poweroff is valid\n")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("nowhere/file.yaml", "there is no directory 'nowhere'"),
        ("file.yaml", f"check the path, which is relative to {Path.cwd()}"),
    ],
)
def test_a_relative_path_that_is_missing(name: str, hint: str) -> None:
    process = command("validate", name)
    assert (process.returncode, process.stderr) == (64, f"error: {name}: file not found ({hint})\n")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("victims.yml", "did you mean 'victims.yaml'?"),
        ("wictims.yaml", "did you mean 'victims.yaml'?"),
        ("poweroff.yaml", "did you mean 'experiments/poweroff.yaml'?"),
        ("other.yaml", "check the path, which is relative to HERE, or write it with nodefall new other.yaml"),
        ("HERE/o r.yaml", "write it with nodefall new 'HERE/o r.yaml'"),
    ],
)
def test_what_to_do_about_a_missing_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victims.yaml").touch()
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "poweroff.yaml").touch()
    with pytest.raises(BadInput) as caught:
        load_experiment(Path(name.replace("HERE", str(tmp_path))), PluginRegistry({}, {}))
    assert caught.value.problems[0].hint == hint.replace("HERE", str(tmp_path))


KUBECONFIG = "apiVersion: v1\nkind: Config\nclusters: []\ncurrent-context: c\n"
EXPERIMENT, INVENTORY = str(DATA / "experiment.yaml"), str(DATA / "inventory.yaml")
SWAPPED = "give an experiment as EXPERIMENT, and an inventory with --inventory"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", EXPERIMENT, "-i", "kubeconfig"], "this is a kubeconfig: an Inventory is required here"),
        (["run", EXPERIMENT, "-i", "kubeconfig"], "(name it in an inventory: cluster: {kubeconfig: "),
        (["run", "kubeconfig", "-i", INVENTORY], "this is a kubeconfig: an Experiment is required here"),
        (["plan", EXPERIMENT, "-i", "kubeconfig"], "this is a kubeconfig: an Inventory is required here"),
        (["doctor", "-i", "kubeconfig"], "this is a kubeconfig: an Inventory is required here"),
        (
            ["run", INVENTORY, "-i", INVENTORY],
            "wrong kind Inventory: an Experiment is required here (give an inventory",
        ),
        (["run", EXPERIMENT, "-i", EXPERIMENT], f"wrong kind Experiment: an Inventory is required here ({SWAPPED})"),
        (["judge", "recording.jsonl.gz", INVENTORY], "wrong kind Inventory: an Experiment is required here"),
        (["judge", "recording.jsonl.gz", EXPERIMENT], "recording.jsonl.gz: file not found"),
        (
            ["run", "--plan", "plan.json", "-i", INVENTORY],
            "plan.json: file not found (check the path, which is ",
        ),
        (["report", "last"], "no run 'last': there is no directory reports\nhint: run an experiment first"),
        (["undo", "last"], "no run 'last': there is no directory reports\nhint: run an experiment first"),
        (["report", "last", "--reports", "."], "no run 'last': . has no runs yet\nhint: run an experiment first"),
    ],
)
def test_a_wrong_file_is_named_with_what_it_is(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kubeconfig").write_text(KUBECONFIG)
    done = command(*arguments)
    assert (done.returncode, message in done.stderr) == (64, True), done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_run_is_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory = Path("reports/graceful-poweroff/20261121T033533Z")
    directory.mkdir(parents=True)
    (directory / "run.json").write_text("{}")
    done = command("report", "gracefull-poweroff")
    assert (done.returncode, "hint: did you mean graceful-poweroff?" in done.stderr) == (64, True), done.stderr
