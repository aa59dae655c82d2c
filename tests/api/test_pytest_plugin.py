"""The pytest plug-in, with pytester: collection, and the outcome of each verdict."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from msgspec import structs

import chaos.api.pytest.experiments  # imported once, not in every inner session
from chaos.app.run.results import Run
from chaos.core.errors import BadInput, NodefallError, Problem, Refused, RequirementUnmet, UndoPending
from chaos.core.installed_drivers import power_drivers, transport_drivers
from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status
from chaos.engine.registry import load_registry
from tests.kit.processes import plugin_options

pytest_plugins = "pytester"
# pytester removes modules that an inner session has imported from sys.modules, but caches keep their classes.
LOADED = (load_registry(), power_drivers(), transport_drivers())

ROOT = Path(__file__).parents[2]
OPTIONS = ("--strict-markers", *plugin_options())
LAB = "apiVersion: nodefall.dev/v1alpha1\nkind: Inventory\nmetadata: {name: mine}\nlab: {workers: 2}\n"
REAL = LAB.replace("lab: {workers: 2}", "cluster: {kubeconfig: k.yaml}")
EXPERIMENT = """apiVersion: nodefall.dev/v1alpha1
kind: Experiment
metadata: {name: NAME, labels: {os: linux, family: FAMILY}, annotations: {team.example/owner: storage, why: "it broke"}}
spec:
  title: A node that is cordoned gets no more pods
  targets: {victim: {role: worker}}
  method: [{name: cordon, action: cordon, target: victim}]
  steadyState: [{assert: nodes-ready, with: {nodes: all}}]
  hypothesis: [{assert: nodes-ready, with: {nodes: all}, within: 5s}]
  maxDuration: 5m
"""
MANIFEST = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
TEMPLATE = "{{ if .Values.chaos }}\nkind: Experiment\n{{ end }}\n"
RESULT = RunResult(
    *(1, "cordon-1", "cordon", "A title", Status.HELD, 0, "all 3 expectations held", True, "v1.36.2", "uid"),
    *(0.0, 9.0, {}, (), (), ()),
)


@pytest.fixture
def workspace(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A directory with two experiments, an inventory, and other YAML files."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    files = {"lab.yaml": LAB, "e/one.yaml": experiment("one", "power"), "e/two.yml": experiment("two", "taint")}
    files |= {"e/web.yaml": MANIFEST, "e/template.yaml": TEMPLATE, "e/notes.txt": experiment("three", "power")}
    for name, text in files.items():
        path = pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return pytester


def experiment(name: str, family: str) -> str:
    return EXPERIMENT.replace("NAME", name).replace("FAMILY", family)


def run(workspace: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return workspace.runpytest_inprocess(*OPTIONS, *arguments)


def collected(workspace: pytest.Pytester, *arguments: str) -> list[str]:
    result = run(workspace, "--collect-only", "-q", "e", *arguments)
    return [line for line in result.outlines if "::" in line]


def return_outcome(monkeypatch: pytest.MonkeyPatch, outcome: RunResult | NodefallError) -> None:
    """Make every run return or raise ``outcome``."""

    def run(experiment: object, inventory: object, *, reports: Path, **_: object) -> Run:
        if isinstance(outcome, NodefallError):
            raise outcome
        return Run(outcome, Timeline(), reports / "cordon" / "20261121T000000Z")

    monkeypatch.setattr(chaos.api.pytest.experiments, "run", run)


def test_the_entry_point_is_importable_and_imports_nothing_slow() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module = project["entry-points"]["pytest11"]["nodefall"]
    assert import_module(module).pytest_collect_file
    slow = ("pydantic", "msgspec", "yaml", "kubernetes", "chaos.app", "chaos.api.pytest.experiments")
    code = f"import sys, {module}; sys.exit([n for n in {slow} if n in sys.modules] or 0)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_experiments_alone_need_an_inventory(workspace: pytest.Pytester) -> None:
    result = workspace.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no inventory is given; add --nodefall-inventory FILE*"])


def test_without_an_inventory_other_tests_run(workspace: pytest.Pytester) -> None:
    workspace.makepyfile(test_other="def test_other(): pass")
    result = workspace.runpytest_inprocess()
    result.assert_outcomes(passed=1)


def test_other_files_are_no_experiments(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", values="a: 1", map="apiVersion: nodefall.dev/v1alpha1\nkind: Statements\n")
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], ["e/one.yaml::one", "e/two.yml::two"]),
        (["-k", "two"], ["e/two.yml::two"]),
        (["-m", "nodefall"], ["e/one.yaml::one", "e/two.yml::two"]),
        (["-m", "family/power and os/linux"], ["e/one.yaml::one"]),
        (["-m", "team.example/owner/storage and not family/power"], ["e/two.yml::two"]),
        (["-m", "nodefall and not os/linux"], []),
        (["--deselect", "e/one.yaml::one"], ["e/two.yml::two"]),
    ],
)
def test_experiments_are_items(workspace: pytest.Pytester, options: list[str], names: list[str]) -> None:
    assert collected(workspace, "--nodefall-inventory", "lab.yaml", *options) == names


def test_the_inventory_of_an_ini_file_is_relative_to_it(workspace: pytest.Pytester) -> None:
    workspace.makeini("[pytest]\nnodefall_inventory = lab.yaml\n")
    assert collected(workspace, f"--rootdir={workspace.path}") == ["e/one.yaml::one", "e/two.yml::two"]


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "file not found"), ("kind: Inventory\n", "apiVersion"), (LAB.replace("lab", "lob"), "lob")],
)
def test_an_invalid_inventory_is_a_usage_error(workspace: pytest.Pytester, text: str | None, message: str) -> None:
    if text:
        (workspace.path / "other.yaml").write_text(text)
    result = run(workspace, "e", "--nodefall-inventory", "other.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*other.yaml*{message}*"])


def test_problems_of_an_experiment_are_reported_with_their_position(workspace: pytest.Pytester) -> None:
    (workspace.path / "e" / "bad.yaml").write_text(experiment("bad", "x").replace("action: cordon", "action: cordn"))
    result = run(workspace, "e", "--nodefall-inventory", "lab.yaml")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*bad.yaml:7:*cordn*did you mean 'cordon'*"])


VIOLATED = structs.replace(RESULT, status=Status.VIOLATED, exit_code=1, headline="violated: a pod did start")
UNDECIDED = structs.replace(RESULT, status=Status.INCONCLUSIVE, exit_code=2, headline="inconclusive: not observed")
UNDO_PENDING = structs.replace(VIOLATED, exit_code=3)
PROBLEM = Problem("w.yaml", 3, 1, "unknown key")


@pytest.mark.parametrize(
    ("outcome", "counts", "tag", "message"),
    [
        (RESULT, {"passed": 1}, None, ""),
        (VIOLATED, {"failed": 1}, "failure", "violated: a pod did start"),
        (UNDECIDED, {"errors": 1}, "error", "inconclusive: not observed"),
        (UNDO_PENDING, {"errors": 1}, "error", "violated: a pod did start"),
        (RequirementUnmet("it requires a grace period", hint="set one"), {"skipped": 1}, "skipped", "a grace period"),
        (Refused("another run is active"), {"errors": 1}, "error", "another run is active"),
        (UndoPending("the node is off", hint="nodefall undo r"), {"errors": 1}, "error", "nodefall undo r"),
        (BadInput([PROBLEM]), {"errors": 1}, "error", "w.yaml:3:1: unknown key"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, NodefallError) else None,
)
def test_a_verdict_is_an_outcome(
    workspace: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    outcome: RunResult | NodefallError,
    counts: dict[str, int],
    tag: str | None,
    message: str,
) -> None:
    return_outcome(monkeypatch, outcome)
    monkeypatch.delenv("CI", raising=False)  # with it, pytest's own summary repeats all lines of a message
    monkeypatch.delenv("BUILD_NUMBER", raising=False)
    result = run(workspace, "e/one.yaml", "--nodefall-inventory", "lab.yaml", "--junitxml", "j.xml", "-rA")
    result.assert_outcomes(**counts)
    result.stdout.fnmatch_lines(["nodefall: experiments run on mine, a simulated cluster"])
    lines = result.outlines
    assert sum(line.startswith("This was a simulated cluster: ") for line in lines) == 1
    assert [line for line in lines if "another exception" in line] == []
    if isinstance(outcome, NodefallError) and "errors" in counts:
        assert lines.count(outcome.message) == 1
        assert lines.count(f"hint: {outcome.hint}") == bool(outcome.hint)
    assert result.ret == (0 if counts == {"passed": 1} else 1)
    document = ET.parse(workspace.path / "j.xml")  # noqa: S314 - written by this test
    case = next(document.iter("testcase"))
    assert [child.tag for child in case] == ([tag] if tag else []), "Jenkins' schema allows no properties here"
    if tag:
        (element,) = (child for child in case if child.tag == tag)
        assert message in element.attrib["message"]
    if isinstance(outcome, RunResult):
        report = workspace.path / "reports" / "cordon" / "20261121T000000Z" / "report.html"
        assert {p.attrib["name"]: p.attrib["value"] for p in document.iter("property")} == {
            "e/one.yaml::one nodefall.report": str(report),
            "e/one.yaml::one nodefall.verdict": str(outcome.status),
            "e/one.yaml::one nodefall.cluster": "simulated",
        }
        if tag:
            result.stdout.fnmatch_lines([f"*{outcome.headline}*", f"*report: {report}*"])
            result.stdout.fnmatch_lines([f"* e/one.yaml::one - Failed: *{outcome.headline}*"])


@pytest.mark.parametrize("code", [130, 143])
def test_an_interrupted_run_ends_the_session(
    workspace: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    return_outcome(monkeypatch, structs.replace(UNDECIDED, exit_code=code))
    result = workspace.runpytest_inprocess(*OPTIONS, "e", "--nodefall-inventory", "lab.yaml", no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "passed" not in result.stdout.str()


@pytest.mark.parametrize("processes", [0, 2])
def test_what_an_interruption_left_out_is_not_green(
    workspace: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # the inner session begins a group of processes
    (workspace.path / "e" / "zero.yaml").write_text(experiment("zero", "x"))
    workspace.makeconftest(INTERRUPTED_AT_TWO)
    options = ("e/zero.yaml", "e/two.yml", "e/one.yaml", "--nodefall-inventory", "lab.yaml", "--junitxml", "j.xml")
    parallel = ("-n", str(processes), "--dist", "loadfile") if processes else ()
    result = workspace.runpytest_subprocess(*OPTIONS, *options, *parallel)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    document = ET.parse(workspace.path / "j.xml")  # noqa: S314 - written by this test
    found = {each.attrib["name"]: [child.tag for child in each] for each in document.iter("testcase")}
    assert found["two"] == ["error"]
    assert found.keys() == {"zero", "one", "two"}
    if processes:
        assert found["zero"] == ["error"]
    else:
        assert (found["zero"], found["one"]) == ([], ["error"])
        texts = {each.attrib["name"]: "".join(each.itertext()) for each in document.iter("testcase")}
        assert texts["two"].startswith("interrupted: ")
        assert texts["one"].startswith("not started: ")


def test_a_session_of_refused_experiments_fails_unless_that_is_allowed(
    workspace: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    return_outcome(monkeypatch, RequirementUnmet("it requires a grace period"))
    workspace.makepyfile(test_other="def test_other(): pass")
    arguments = ("e", "test_other.py", "--nodefall-inventory", "lab.yaml")
    refused = run(workspace, *arguments)
    assert refused.ret == pytest.ExitCode.TESTS_FAILED
    refused.stdout.fnmatch_lines(["nodefall: every experiment was refused, so the session fails; *"])
    allowed = run(workspace, *arguments, "--nodefall-allow-refused")
    assert allowed.ret == pytest.ExitCode.OK
    assert "was refused, so" not in allowed.stdout.str()
    assert run(workspace, "test_other.py", "--nodefall-inventory", "lab.yaml").ret == pytest.ExitCode.OK


INTERRUPTED_AT_TWO = """
import os, signal, time
import chaos.api.pytest.experiments
from chaos.app.run.results import Run
from chaos.core.timeline import Timeline
from tests.api.test_pytest_plugin import RESULT

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ

def run(experiment, inventory, *, reports, **_):
    if experiment.experiment.metadata.name == "two":
        deadline = time.monotonic() + 20
        while IS_WORKER and not os.path.exists("zero ran") and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5 if IS_WORKER else 0)  # until the controller has the report of zero's setup
        os.killpg(0, signal.SIGINT)
        time.sleep(30)
    return Run(RESULT, Timeline(), reports / "cordon" / "20261121T000000Z")

def pytest_runtest_call(item):
    if IS_WORKER and item.name == "zero":
        open("zero ran", "x").close()
        time.sleep(30)

chaos.api.pytest.experiments.run = run
os.setpgrp() if not IS_WORKER else None
"""


BUSY = """
import os, time
from pathlib import Path
import chaos.api.pytest.experiments  # imported once, not in every inner session
from chaos.core.errors import Refused

def run(experiment, inventory, **_):
    with open("busy", "x"):
        time.sleep(0.2)
        os.unlink("busy")
    with open("done", "a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
    raise Refused("that was all")

chaos.api.pytest.experiments.run = run
"""


@pytest.mark.timeout(300)
def test_processes_of_xdist_run_one_at_a_time_on_a_cluster(workspace: pytest.Pytester) -> None:
    (workspace.path / "real.yaml").write_text(REAL)
    workspace.makeconftest(BUSY)
    for number in range(2):
        (workspace.path / "e" / f"more{number}.yaml").write_text(experiment(f"more{number}", "x"))
    result = workspace.runpytest_subprocess(
        "--strict-markers",
        *plugin_options(),
        "-n",
        "2",
        "--dist",
        "load",
        "e",
        "--nodefall-inventory",
        "real.yaml",
        "-p",
        "no:cacheprovider",
    )
    result.assert_outcomes(errors=4)
    assert result.stdout.str().count("that was all") >= 4, "no run found another one active"
    assert len((workspace.path / "done").read_text().split()) == 4


LABTEST = """
import pytest
from chaos.api import Lab

@pytest.mark.parametrize("nodefall_lab", [{"workers": 2, "seed": 5}], indirect=True)
def test_it(nodefall_lab, nodefall_run):
    assert isinstance(nodefall_lab, Lab)
    done = nodefall_run("one.yaml", nodefall_lab.inventory)
    assert (done.result.status, done.result.simulated) == ("held", True), done.result.headline

def test_no_silent_lab(nodefall_run):
    nodefall_run("one.yaml")
"""


@pytest.mark.lab
def test_fixtures(workspace: pytest.Pytester) -> None:
    (workspace.path / "one.yaml").write_text(experiment("one", "x"))
    workspace.makepyfile(LABTEST)
    result = run(workspace, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*UsageError: no inventory*"])
    assert list((workspace.path / "reports" / "one").glob("*/report.html"))
