"""Runs from public reports of other tools' users, from the command to what a reader of JUnit cases counts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.consumers.conftest import HERE
from tests.consumers.test_junit_readers import XMLLINT, validate
from tests.kit.processes import WALL, environment, nodefall, plugin_options

pytestmark = [pytest.mark.slow, pytest.mark.lab]
FIELD = HERE / "field"


def cases(directory: Path) -> list[tuple[str, list[str]]]:
    """Name and children of each case."""
    document = ET.parse(directory / "junit.xml")  # noqa: S314 - our own
    return [(case.get("name", ""), [child.tag for child in case]) for case in document.iter("testcase")]


def test_two_unnamed_expectations_are_two_cases(tmp_path: Path) -> None:
    done = nodefall("run", FIELD / "junit-same-names.yaml", "-i", FIELD / "lab.yaml", "--repeat", "2", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    directories = sorted(tmp_path.glob("reports/dup/*"))
    found = [case for directory in directories for case in cases(directory)]
    assert len({name for name, _ in found}) == len(found) == 12, "a reader merges cases of one name, also of two files"
    assert [children for _, children in found if children] == [["failure"]] * 2


def test_a_refused_run_has_a_directory_and_is_not_green(tmp_path: Path) -> None:
    done = nodefall("run", FIELD / "refused.yaml", "-i", FIELD / "lab.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 4
    (directory,) = tmp_path.glob("reports/refused/*")
    assert f"report: {directory.relative_to(tmp_path)}/report.html" in done.stderr
    assert cases(directory) == [("the run is complete", ["error"])]
    why = json.loads(done.stdout)["error"]["message"]
    assert why.startswith("the experiment requires kubelet.shutdownGracePeriod >1h")
    assert why in (directory / "junit.xml").read_text().replace("&gt;", ">")
    assert 'verdict="refused"} 1' in (directory / "metrics.txt").read_text()
    listed = json.loads(nodefall("runs", "--json", cwd=tmp_path).stdout)
    assert [run["verdict"] for run in listed["runs"]] == ["refused"]
    assert nodefall("report", directory, cwd=tmp_path).returncode == 0
    assert nodefall("show", "last", cwd=tmp_path).returncode == 64, "the newest run is one that has begun"


def test_a_run_without_a_cluster_has_a_directory_too(tmp_path: Path) -> None:
    (tmp_path / "gone.yaml").write_text(
        "apiVersion: nodefall.dev/v1alpha1\nkind: Inventory\nmetadata: {name: gone}\ncluster: {kubeconfig: k.yaml}\n"
    )
    (tmp_path / "k.yaml").write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nusers: [{name: a, user: {token: t}}]\n"
        "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:9', insecure-skip-tls-verify: true}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
    )
    done = nodefall("run", FIELD / "st.yaml", "-i", "gone.yaml", cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    (directory,) = tmp_path.glob("reports/st/*")
    assert cases(directory) == [("the run is complete", ["error"])]


def test_pytest_fails_if_everything_was_refused(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "pytest", *plugin_options(), str(FIELD / "refused.yaml")]
    argv += ["--nodefall-inventory", str(FIELD / "lab.yaml"), "--junitxml", "junit.xml", "-p", "no:cacheprovider"]
    done = subprocess.run(
        argv, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=WALL, check=False
    )
    assert done.returncode == 1, done.stdout
    assert "1 skipped" in done.stdout
    assert cases(tmp_path) == [("refused", ["skipped"])]


@pytest.mark.skipif(not XMLLINT, reason="needs Debian's package libxml2-utils")
def test_the_file_of_pytest_has_jenkins_schema(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-m",
        "pytest",
        *plugin_options(),
        str(FIELD / "junit-same-names.yaml"),
        str(FIELD / "st.yaml"),
    ]
    argv += ["--nodefall-inventory", str(FIELD / "lab.yaml"), "--junitxml", "junit.xml", "-p", "no:cacheprovider"]
    done = subprocess.run(
        argv, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=WALL, check=False
    )
    assert done.returncode == 1, done.stdout
    assert cases(tmp_path) == [("dup", ["failure"]), ("st", [])]
    assert validate(HERE / "schemas" / "jenkins-junit-10.xsd", [tmp_path / "junit.xml"]) == ""
    properties = ET.parse(tmp_path / "junit.xml").iter("property")  # noqa: S314 - our own
    assert len([each for each in properties if each.get("name", "").endswith(" nodefall.report")]) == 2
