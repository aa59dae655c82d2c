"""A cluster that is not on loopback needs an expected UID, and is never used as a lab."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.other_machine import ADDRESS
from tests.kit.processes import WALL, environment

pytestmark = [pytest.mark.root, pytest.mark.lab, pytest.mark.timeout(2 * WALL)]
ALONE = f"ip link set lo up && ip address add {ADDRESS}/32 dev lo"  # a network with no other host


def test_a_remote_cluster_needs_an_expected_uid(tmp_path: Path) -> None:
    alone = ("unshare", "--net", "sh", "-c", f'{ALONE} && exec "$@"', "sh")
    try:
        tried = subprocess.run((*alone, "true"), capture_output=True, text=True, timeout=WALL, check=False)
    except FileNotFoundError as error:
        pytest.skip(f"no separate network: {error}")
    if tried.returncode:
        pytest.skip(f"no separate network: {tried.stderr.strip()}")
    script = Path(__file__).parents[1] / "kit" / "other_machine.py"
    variables = environment(tmp_path)
    variables["PYTHONPATH"] += os.pathsep + str(script.parent)
    command = (*alone, sys.executable, str(script), str(tmp_path))
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=2 * WALL, check=False
    )
    assert done.returncode == 0, done.stderr
    which, other, lab, plan, run = (json.loads(line) for line in done.stdout.splitlines())
    assert which[0] == 4
    assert "is not on loopback, and the inventory has no expectUID" in which[1]
    assert other[0] == 4
    assert "wrong cluster: expected UID other" in other[1]
    assert lab[0] == 4
    assert "is not on loopback" in lab[1]
    assert plan[0] == 0, plan[1]
    assert run[0] == 0, run[1]
