"""tools/audit.py: advisories found, none, no source, and a failure are four outcomes. tools/sbom.py: the version."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tools import audit, sbom
from tools.audit import Answer

ADVISORY = {"id": "CVE-2020-28493", "fix_versions": ["2.11.3"]}


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
