"""deploy/image/Dockerfile: everything pinned; built where Docker answers, and its container runs a game day.

No registry of images is needed: both bases are made of Debian's packages, as those that the file names are.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chaos.gameday.deploy.deployment import USER
from tests.kit.gamedays import left_behind, verdicts_of, write_day
from tests.kit.machines import Docker, cache, docker_daemon, missing
from tests.kit.processes import ROOT, WALL, lab

IMAGE = ROOT / "deploy" / "image"
DOCKERFILE = (IMAGE / "Dockerfile").read_text(encoding="utf-8")
PINNED = re.compile(r"[a-z0-9.-]+\.[a-z]+/[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}")
BASE = "nodefall-test-python:bookworm"
PACKAGES = "python3,python3-pip,ca-certificates"
CONTEXT = ("LICENSE", "chaos", "experiments", "hosts", "docs", "deploy/requirements.txt", "deploy/image")


def test_bases_are_pinned_and_public() -> None:
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)$", DOCKERFILE, re.MULTILINE))
    assert set(arguments) == {"BUILDER", "BASE", "PIP_INDEX_URL"}
    assert PINNED.fullmatch(arguments["BUILDER"])
    assert PINNED.fullmatch(arguments["BASE"])
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BUILDER}", "${BASE}"]
    assert arguments["PIP_INDEX_URL"] == "https://pypi.org/simple"


def test_nothing_is_imported_from_the_working_directory() -> None:
    """As ``python -m`` does, and /tmp may have a module of somebody else."""
    (variables,) = re.findall(r"^ENV (.*)$", DOCKERFILE, re.MULTILINE)
    assert "PYTHONSAFEPATH=1" in variables.split()


def test_packages_are_pinned_by_hash() -> None:
    (install,) = re.findall(r"pip install (.*?)\n[A-Z]", DOCKERFILE, re.DOTALL)
    assert "--require-hashes" in install
    assert "-r /requirements.txt" in install


def test_the_user_is_that_of_the_manifests() -> None:
    assert f"\nUSER {USER}:{USER}\n" in DOCKERFILE


@contextmanager
def wheels(folder: Path) -> Iterator[str]:
    """An index on loopback with the pinned packages, as pip of this machine gets them; yields its URL."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--require-hashes", "--only-binary", ":all:", "--no-deps"]
    found = folder / "found"
    requirements = ROOT / "deploy" / "requirements.txt"
    subprocess.run([*command, "-r", str(requirements), "-d", str(found)], check=True, timeout=600)
    for wheel in found.iterdir():
        project = re.sub(r"[-_.]+", "-", wheel.name.split("-")[0]).lower()
        (folder / "simple" / project).mkdir(parents=True, exist_ok=True)
        wheel.rename(folder / "simple" / project / wheel.name)
    handler = partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nothing."""


def _base() -> Path:
    """A file system with Debian's Python, made once."""
    made = cache() / "python-bookworm.tar"
    if not made.exists():
        draft = made.with_suffix(f".{os.getpid()}.tar")
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(draft)]
        subprocess.run(command, check=True, timeout=900)
        draft.rename(made)
    return made


def build(docker: Docker, folder: Path) -> str:
    """The name of the image, built from a copy of what a checkout has."""
    context = folder / "context"
    for name in CONTEXT:
        source, target = ROOT / name, context / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    docker("import", str(_base()), BASE, timeout=600)
    with wheels(folder / "index") as index:
        arguments = [f"--build-arg={key}={BASE}" for key in ("BUILDER", "BASE")]
        options = ("--network", "host", *arguments, f"--build-arg=PIP_INDEX_URL={index}")
        docker(
            "build",
            *options,
            "-f",
            str(context / "deploy/image/Dockerfile"),
            "-t",
            "nodefall",
            str(context),
            timeout=1200,
        )
    return "nodefall"


@pytest.mark.root
@pytest.mark.lab
@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_container_runs_a_game_day(tmp_path: Path) -> None:
    """Against a lab of the host: as a user without a name, on a read-only file system, without a capability."""
    write_day(tmp_path, ["one", "two"])
    with docker_daemon() as docker, lab(tmp_path) as inventory:
        image = build(docker, tmp_path)
        user = json.loads(docker("inspect", "--format", "{{json .Config.User}}", image))
        assert user == f"{USER}:{USER}"
        for path in (tmp_path, *tmp_path.glob("state/**/*"), *tmp_path.glob("*.*"), make_reports(tmp_path)):
            os.chown(path, USER, USER)
        command = [
            *("run", "--rm", "--network", "host", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"),
            *("--security-opt", "no-new-privileges", "-v", f"{tmp_path}:{tmp_path}:ro"),
            *("-v", f"{tmp_path / 'reports'}:/reports", image),
        ]
        version = docker(*command, "--version", timeout=WALL)
        assert version.startswith("nodefall")
        day = ("gameday", "run", str(tmp_path / "day.yaml"), "-i", str(inventory), "--reports", "/reports")
        state = json.loads(docker(*command, *day, "--scheduled", "--id", "job-1", "--yes", "--json", timeout=2 * WALL))
        assert verdicts_of(state) == {"one": "held", "two": "held"}
        assert (tmp_path / "reports" / "one").stat().st_uid == USER
        os.chown(inventory, 0, 0)
        assert left_behind(inventory, tmp_path) == []


def make_reports(folder: Path) -> Path:
    (folder / "reports").mkdir()
    return folder / "reports"
