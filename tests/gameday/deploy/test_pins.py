"""What is installed is pinned: files with hashes agree with pyproject.toml and constraints.txt, and CI uses them.

tools/audit.py: advisories found, none, no source, and a failure are four outcomes. tools/sbom.py: the version.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import audit, sbom
from tools.audit import Answer
from tools.lock_requirements import CI, CONSTRAINTS, ROOT, RUNTIME, TOOLS, build_requirements

HASHED = [CI, TOOLS, RUNTIME]
HINT = "run `python tools/lock_requirements.py`"
PROJECT: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: Mapping[str, list[str]] = PROJECT["optional-dependencies"]
ADVISORY = {"id": "CVE-2020-28493", "fix_versions": ["2.11.3"]}


def entries(name: str) -> list[str]:
    """Each pin of a file with its hashes, continued lines joined."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def pins(name: str) -> dict[str, Requirement]:
    """Requirements by canonical name, without hashes."""
    found = [Requirement(entry.split(" --hash=")[0].strip()) for entry in entries(name)]
    return {canonicalize_name(pin.name): pin for pin in found}


def missing(wanted: Iterable[str], file: str) -> list[str]:
    """Requirements that no pin of a file fulfils."""
    found = pins(file)
    return [text for text in wanted if not fulfilled(Requirement(text), found)]


def fulfilled(wanted: Requirement, found: Mapping[str, Requirement]) -> bool:
    pin = found.get(canonicalize_name(wanted.name))
    return pin is not None and wanted.specifier.contains(str(pin.specifier).removeprefix("=="), prereleases=True)


@pytest.mark.parametrize("file", HASHED)
def test_every_entry_is_one_version_with_hashes(file: str) -> None:
    """Nothing else: no address of an index, no file, no option."""
    pattern = re.compile(r"[a-z0-9-]+==[\w.]+( ; [^#@]+?)?(\s+--hash=sha256:[0-9a-f]{64})+")
    assert [entry for entry in entries(file) if not pattern.fullmatch(entry)] == []


@pytest.mark.parametrize("file", [CI, RUNTIME])
def test_versions_are_those_of_the_constraints(file: str) -> None:
    constraints = pins(CONSTRAINTS)
    pinned = pins(file)
    shared = {name: pin for name, pin in pinned.items() if name in constraints}
    versions = {name: str(pin.specifier) for name, pin in shared.items()}
    assert versions == {name: str(constraints[name].specifier) for name in shared}, HINT
    assert len(shared) > 40


def test_ci_has_every_constraint_and_the_build_requirements() -> None:
    assert set(pins(CI)) >= set(pins(CONSTRAINTS)), HINT
    assert missing(build_requirements(), CI) == [], HINT


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        (CONSTRAINTS, [*PROJECT["dependencies"], *EXTRAS["dev"]]),
        (CI, [*PROJECT["dependencies"], *EXTRAS["dev"]]),
        (RUNTIME, PROJECT["dependencies"]),
        (TOOLS, entries(".ci/tools.in")),
    ],
    ids=[CONSTRAINTS, CI, RUNTIME, TOOLS],
)
def test_pins_fulfil_what_is_required(file: str, wanted: list[str]) -> None:
    assert missing(wanted, file) == [], HINT


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [("click>=8.1,<9", True), ("click>=9", False), ("absent>=1", False), ("PyYAML>=6", True)],
)
def test_a_requirement_without_a_pin_is_found(wanted: str, expected: bool) -> None:
    assert (missing([wanted], CONSTRAINTS) == []) is expected


def test_ci_installs_nothing_without_a_hash() -> None:
    """pip is given the files that it downloaded with hashes, and no index, before the README's command runs."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    lines = [line for line in script.splitlines() if re.search(r"\bpip (install|download)\b", line)]
    assert len(lines) == 1
    assert "--require-hashes --only-binary :all: " in lines[0]
    assert script.index("--require-hashes") < script.index("export PIP_NO_INDEX=1") < script.index('eval "')


def answer(code: int, *packages: dict[str, Any], error: str = "") -> Answer:
    return Answer(code, {"dependencies": list(packages), "fixes": []}, error)


def package(name: str, *vulns: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "vulns": list(vulns)}


KNOWS = answer(1, package("jinja2", ADVISORY))


EMPTY_INDEX = answer(0, package("jinja2"))


NO_ADVISORIES_SERVED = answer(0, {"name": "jinja2", "skip_reason": "not found on PyPI and could not be audited"})


UNREACHABLE = Answer(1, None, "Traceback:\nConnectionError: Name or service not known")


CLEAN = answer(0, package("click"), package("rich"))


FOUND = answer(1, package("click", {"id": "CVE-2030-1", "fix_versions": []}), package("rich"))


PARTLY = answer(0, package("click"), {"name": "rich", "skip_reason": "rich could not be audited"})


@pytest.mark.parametrize(
    ("pypi", "osv", "code", "expected"),
    [
        ([KNOWS, CLEAN], [], 0, "PyPI has no advisory of a pinned package"),
        ([KNOWS, FOUND], [], 1, "click 1.0: CVE-2030-1, fixed in no release"),
        ([KNOWS, PARTLY], [], 1, "rich could not be audited"),
        ([KNOWS, UNREACHABLE], [], 1, "the audit with PyPI failed: Traceback"),
        ([KNOWS, answer(2, package("click"), error="bad option")], [], 1, "the audit with PyPI failed: bad option"),
        ([EMPTY_INDEX], [KNOWS, CLEAN], 0, "osv.dev has no advisory of a pinned package"),
        ([UNREACHABLE], [KNOWS, FOUND], 1, "click 1.0: CVE-2030-1"),
        ([EMPTY_INDEX], [UNREACHABLE], 0, "skipped: no source of advisories is reachable"),
        ([NO_ADVISORIES_SERVED], [UNREACHABLE], 0, "PyPI is no source of advisories: not found on PyPI"),
        ([UNREACHABLE], [UNREACHABLE], 0, "osv.dev is no source of advisories: ConnectionError: Name or service"),
    ],
)
def test_outcomes(
    pypi: list[Answer], osv: list[Answer], code: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {"pypi": iter(pypi), "osv": iter(osv)}
    audited: list[str] = []

    def stand_in(options: Sequence[str], files: Iterable[Path]) -> Answer:
        audited.extend(path.name for path in files)
        return next(answers[options[-1]])

    assert audit.main(stand_in) == code
    assert expected in capsys.readouterr().out
    assert [next(rest, None) for rest in answers.values()] == [None, None]
    assert ("requirements.txt" in audited) is ("skipped" not in expected and "no source" not in expected)


def test_what_is_audited_is_every_pinned_file() -> None:
    hashed = {path for path in audit.ROOT.glob("**/*.txt") if "--hash=" in path.read_text(encoding="utf-8")}
    assert set(audit.PINNED) == {path for path in hashed if ".venv" not in path.parts}


def test_the_bill_of_materials_names_the_version() -> None:
    raw = json.dumps({"metadata": {"component": {"name": "nodefall"}}, "components": []})
    component = json.loads(sbom.finished(raw, "1.2.3"))["metadata"]["component"]
    assert component == {"name": "nodefall", "version": "1.2.3", "purl": "pkg:pypi/nodefall@1.2.3"}
    assert sbom.finished(raw, "1.2.3") == sbom.finished(raw, "1.2.3")


def test_actions_of_workflows_are_pinned_by_commit() -> None:
    """A tag can be moved to other code. The tag is beside it, for people."""
    files = [*(ROOT / "deploy").rglob("*.y*ml"), *(ROOT / ".github").rglob("*.y*ml"), *(ROOT / "docs").rglob("*.md")]
    used = [use for file in files for use in re.findall(r"^[- ]*uses: (.*)$", file.read_text("utf-8"), re.MULTILINE)]
    assert len(used) >= 5
    used = [use for use in used if not use.startswith(("./", "OWNER/"))]  # of the same commit; of this repository
    assert [use for use in used if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}  # v[\d.]+", use)] == []
