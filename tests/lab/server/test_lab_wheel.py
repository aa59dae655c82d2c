"""The lab without the rest of nodefall: a wheel that holds chaos/lab only, run in a separate environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.slow]
ROOT = Path(__file__).parents[3]
PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "nodefall-lab"
version = "0"
[tool.hatch.build.targets.wheel]
packages = ["chaos"]
"""
NO_INDEX = ("No matching distribution found", "Could not find a version", "Connection", "Temporary failure")
ABSENT = (
    "import chaos.lab.facade, importlib.util as u; print([n for n in ('model', 'cli') if u.find_spec('chaos.' + n)])"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for PYTHONPATH: the installed wheel, and links to this environment's other packages."""
    source, wheels, site = (tmp_path_factory.mktemp(name) for name in ("source", "wheels", "site"))
    (source / "pyproject.toml").write_text(PYPROJECT)
    (source / "chaos").mkdir()
    (source / "chaos" / "lab").symlink_to(ROOT / "chaos" / "lab")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries=1", "--timeout=10"]
    wheel = [*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(source)]
    built = subprocess.run(wheel, capture_output=True, text=True, timeout=120, check=False)
    if built.returncode and any(text in built.stderr for text in NO_INDEX):
        pytest.skip("pip wheel: the package index with hatchling is unreachable")
    assert built.returncode == 0, built.stderr
    (path,) = wheels.iterdir()
    install = [*pip, "install", "--no-deps", "--no-index", "--target", str(site), str(path)]
    subprocess.run(install, capture_output=True, timeout=60, check=True)
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.suffix != ".pth" and not entry.name.startswith(("chaos", "nodefall", "__editable__")):
            (site / entry.name).symlink_to(entry)
    return site


def run(site: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python with nothing but ``site``. ``-P`` leaves the working directory out of sys.path."""
    argv = [sys.executable, "-S", "-P", *arguments]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site)}
    return subprocess.run(argv, env=environment, input=stdin, capture_output=True, text=True, timeout=60, check=False)


def test_the_wheel_holds_the_lab_only(site: Path) -> None:
    assert sorted(path.name for path in (site / "chaos").iterdir()) == ["lab"]
    ran = run(site, "-c", ABSENT)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "[]\n", "")


def test_the_lab_runs_from_its_wheel(site: Path) -> None:
    spec = json.dumps({"nodes": [{"name": "only"}]})
    ran = run(site, "-m", "chaos.lab", stdin=f"{spec}\nstop\n")
    assert (ran.returncode, ran.stderr) == (0, "")
    ready = json.loads(ran.stdout)
    assert [host["node"] for host in ready["hosts"]] == ["only"]
    assert not Path(ready["directory"]).exists()
