"""The programs of npm, and files for them to read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NPM_FOLDER = "NODEFALL_NPM"  # where `npm ci` has installed package-lock.json
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def npm() -> Path:
    """The folder with node_modules; the test is skipped without it."""
    if not shutil.which("node"):
        pytest.skip("there is no program node")
    folder = os.environ.get(NPM_FOLDER)
    if not folder:
        pytest.skip(
            f"there is no package yaml-language-server: run npm ci beside {HERE}/package.json, set {NPM_FOLDER}"
        )
    assert (Path(folder) / "node_modules" / "yaml-language-server").is_dir(), f"{NPM_FOLDER}={folder} is incomplete"
    return Path(folder)


Run = Callable[..., Any]


@pytest.fixture
def run_module(npm: Path) -> Run:
    """Runs a module of this folder with node and arguments; what it prints, from JSON."""

    def run(module: str, *arguments: str) -> Any:
        shutil.copy(HERE / module, npm / module)  # so that it finds its packages
        argv = ["node", str(npm / module), *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, cwd=npm)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
