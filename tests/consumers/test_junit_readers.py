"""JUnit readers count as many failures as the run had expectations, steps and undos that were not held.

Schemas, copied with their notices:
windyroad-JUnit.xsd (Apache License 2.0): https://github.com/windyroad/JUnit-Schema
jenkins-junit-9.xsd and jenkins-junit-10.xsd (MIT): https://github.com/jenkinsci/xunit-plugin
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from chaos.reports.day.formats import render_junit
from chaos.reports.run.junit import render
from tests.consumers.conftest import HERE, Run
from tests.kit.consumed_runs import NAMES, consumed_runs, not_held
from tests.kit.recorded_days import hostile_view

XMLLINT = shutil.which("xmllint")
SCHEMAS = sorted((HERE / "schemas").glob("*.xsd"))
RUNS = consumed_runs()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, int]:
    """Files of JUnit cases, with the number of those that were not held."""
    folder, found = tmp_path_factory.mktemp("junit"), {}
    for number, made in enumerate(RUNS.values()):
        path = folder / f"{number:02}.xml"
        path.write_text(render(*made), encoding="utf-8")
        found[path] = not_held(made[0])
    (folder / "day.xml").write_text(render_junit(hostile_view(NAMES[1])), encoding="utf-8")
    return found | {folder / "day.xml": 6}  # of two clusters: one run is held, three are not


def test_there_are_forty_runs_and_a_day(files: dict[Path, int]) -> None:
    assert len(files) == 41
    assert sum(count > 0 for count in files.values()) > 30


@pytest.mark.slow
@pytest.mark.skipif(not XMLLINT, reason="needs Debian's package libxml2-utils")
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda path: path.stem)
def test_every_file_has_the_schema(files: dict[Path, int], schema: Path) -> None:
    assert validate(schema, list(files)) == ""


def validate(schema: Path, paths: Sequence[Path]) -> str:
    """What the schema forbids, "" for nothing."""
    argv = [XMLLINT or "", "--noout", "--nonet", "--schema", str(schema), *map(str, paths)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return "".join(line for line in done.stderr.splitlines(keepends=True) if not line.endswith(" validates\n"))


@pytest.mark.slow
@pytest.mark.skipif(not XMLLINT, reason="needs Debian's package libxml2-utils")
def test_the_schemas_forbid_what_they_should(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<testsuites><testsuite name='a'/></testsuites>")
    assert all("a.xml" in validate(schema, [tmp_path / "a.xml"]) for schema in SCHEMAS)


@pytest.mark.slow
def test_junitparser_counts_what_was_not_held(files: dict[Path, int]) -> None:
    junitparser = pytest.importorskip("junitparser")
    counted = {}
    for path in files:
        cases = [case for suite in junitparser.JUnitXml.fromfile(str(path)) for case in suite]
        failed = [
            case for case in cases if any(isinstance(r, junitparser.Failure | junitparser.Error) for r in case.result)
        ]
        assert len({case.name for case in cases}) == len(cases)
        assert all(result.text.startswith(result.message) for case in failed for result in case.result)
        counted[path] = len(failed)
    assert counted == files


@pytest.mark.slow
def test_parsers_of_npm_count_what_was_not_held(files: dict[Path, int], run_module: Run) -> None:
    found = run_module("read_junit.mjs", *map(str, files))
    for path, count in files.items():
        cases = sum(1 for _ in ET.parse(path).iter("testcase"))  # noqa: S314 - our own
        for reader, read in found[str(path)].items():
            assert read == {"cases": cases, "failed": count, "names": cases}, (reader, path)
