"""deploy/ci: what a CI service runs. Its syntax by the services' own schemas, and the commands by running them.

docs/ci.md: what it offers to copy is understood.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.api import load
from chaos.cli.kind.commands import down_command, up_command
from chaos.documents.inventory import load_inventory
from tests.kit.processes import plugin_options

ROOT = Path(__file__).parents[3]
CI = ROOT / "deploy" / "ci"
GITHUB, GITLAB = CI / "github-actions.yaml", CI / "gitlab-ci.yml"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
SCHEMAS = [
    *((path, ["vendor.github-workflows"]) for path in (GITHUB, *WORKFLOWS)),
    (GITLAB, ["vendor.gitlab-ci", "--data-transform=gitlab-ci"]),
    (ROOT / ".github" / "dependabot.yml", ["vendor.dependabot"]),
]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
NAMED = re.compile(r"^`(\S+\.yaml)`[^\n]*\n\n```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Loader(yaml.BaseLoader):
    """All scalars are text, as ``on`` is a key; GitLab's tag is a tuple."""


Loader.add_constructor("!reference", lambda loader, node: tuple(item.value for item in node.value))


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader)  # noqa: S506 - makes text only
    return document


def scripts(path: Path) -> Iterator[str]:
    """Every shell script, those of GitLab as a job has them: one line after the other."""
    document = read(path)
    if path == GITHUB:
        yield from (step["run"] for step in document["jobs"]["experiments"]["steps"] if "run" in step)
        return
    for job in (value for value in document.values() if isinstance(value, dict)):
        for part in ("before_script", "script", "after_script"):
            if part in job:
                yield "\n".join(line for line in job[part] if isinstance(line, str))


@pytest.mark.parametrize(("path", "schema"), SCHEMAS, ids=lambda value: value.name if isinstance(value, Path) else "")
def test_schema(path: Path, schema: list[str]) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *schema, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_actionlint() -> None:
    if not shutil.which("actionlint"):
        pytest.skip("there is no program actionlint")
    files = [str(path) for path in (GITHUB, *WORKFLOWS)]
    done = subprocess.run(["actionlint", *files], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout


def test_zizmor_finds_nothing_that_an_attacker_could_use() -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    files = [str(path) for path in (GITHUB, ROOT / ".github", ROOT / "action.yml") if path.exists()]
    command = [str(zizmor), "--offline", "--no-progress", "--strict-collection", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ci_tries_every_python_that_is_supported() -> None:
    versions = read(ROOT / ".github" / "workflows" / "ci.yaml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    classifiers = [f"Programming Language :: Python :: {version}" for version in versions]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [c for c in project["classifiers"] if c.startswith("Programming Language :: Python :: 3.")] == classifiers


def test_nothing_is_published_before_the_tests_pass() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "release.yaml")["jobs"]
    needs = {
        name: [job.get("needs", [])] if isinstance(job.get("needs"), str) else job.get("needs", [])
        for name, job in jobs.items()
    }

    def before(name: str) -> set[str]:
        return set(needs[name]).union(*(before(other) for other in needs[name]))

    assert all("test" in before(name) for name in jobs if name != "test")
    assert {"pypi", "image"} <= before("notes")


@pytest.mark.parametrize(("tag", "why"), [("v9.9.9", "the tag is v9.9.9"), ("", "the tag is missing")])
def test_a_tag_that_is_not_the_version_is_no_release(tag: str, why: str) -> None:
    script = ROOT / "tools" / "release.sh"
    done = subprocess.run([script, *filter(None, [tag])], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 64
    assert why in done.stderr


@pytest.mark.parametrize("path", [GITHUB, GITLAB], ids=lambda path: path.name)
def test_scripts_are_shell(path: Path) -> None:
    for script in scripts(path):
        done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=100, check=False)
        assert (done.returncode, done.stderr) == (0, ""), script


@pytest.mark.parametrize("path", [GITHUB, GITLAB], ids=lambda path: path.name)
def test_kind_is_called_as_it_is(path: Path) -> None:
    lines = [line.split() for script in scripts(path) for line in script.splitlines() if "nodefall kind " in line]
    for words in lines:
        name, *arguments = words[words.index("kind") + 1 :]
        {"up": up_command, "down": down_command}[name].make_context(name, [word.strip('"') for word in arguments])
    assert {words[words.index("kind") + 1] for words in lines} == {"up", "down"}


@pytest.mark.slow
@pytest.mark.parametrize("path", [GITHUB, GITLAB], ids=lambda path: path.name)
def test_the_lab_is_described_and_experiments_are_collected(tmp_path: Path, path: Path) -> None:
    """The commands of the file, in a repository that has nothing but experiments."""
    shutil.copytree(ROOT / "experiments" / "workloads", tmp_path / "experiments" / "workloads")
    shutil.copy(ROOT / "experiments" / "cordon.yaml", tmp_path / "experiments")
    wanted = [s for s in scripts(path) if "kind: Inventory" in s or "-m pytest" in s]
    assert len(wanted) == 2
    order = sorted(wanted, key=lambda script: "-m pytest" in script)
    variables = {"EXPERIMENTS": "experiments", "CLUSTER": "lab"}
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    options = " ".join(["--collect-only", "-qq", *plugin_options()])
    bin_ = Path(sys.executable).parent
    environment = {
        **inherited,
        **variables,
        "PYTEST_ADDOPTS": options,
        "PATH": f"{bin_}:{inherited['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        ["bash", "-e"],
        input="\n".join(order),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "experiments/cordon.yaml::cordon" in done.stdout


@pytest.mark.parametrize("path", [GITHUB, GITLAB], ids=lambda path: path.name)
def test_the_lab_is_the_default_and_artifacts_are_uploaded(path: Path) -> None:
    document = read(path)
    text = json.dumps(document)
    chosen = document["on"]["workflow_dispatch"]["inputs"]["cluster"]["default"] if path == GITHUB else None
    assert (chosen or document["variables"]["CLUSTER"]["value"]) == "lab"
    for artifact in ("junit.xml", "reports/", "cache"):
        assert artifact in text


def test_what_is_to_be_copied_is_understood(tmp_path: Path) -> None:
    files = dict(NAMED.findall(PAGE))
    assert list(files) == ["experiments/shop-stays.yaml", "experiments/shop.yaml", "lab.yaml"]
    (tmp_path / "experiments").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    loaded = load(tmp_path / "experiments" / "shop-stays.yaml")
    assert [manifest["kind"] for manifest in loaded.manifests] == ["Deployment"]
    lab = load_inventory(tmp_path / "lab.yaml").lab
    assert lab is not None
    rest = [text for text in BLOCK.findall(PAGE) if text not in files.values()]
    for text in rest:
        (tmp_path / "other.yaml").write_text(text)
        assert load_inventory(tmp_path / "other.yaml").cluster
    assert len(rest) == 1


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
