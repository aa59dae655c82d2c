"""A cluster that is not on loopback is used only where the inventory says which one it is, and never as a lab."""

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
ALONE = f"ip link set lo up && ip address add {ADDRESS}/32 dev lo"  # nothing else is in that network


def test_which_cluster_it_is_must_be_said(tmp_path: Path) -> None:
    alone = ("unshare", "--net", "sh", "-c", f'{ALONE} && exec "$@"', "sh")
    try:
        tried = subprocess.run((*alone, "true"), capture_output=True, text=True, timeout=WALL, check=False)
    except FileNotFoundError as error:
        pytest.skip(f"no network of our own: {error}")
    if tried.returncode:
        pytest.skip(f"no network of our own: {tried.stderr.strip()}")
    script = Path(__file__).parents[1] / "kit" / "other_machine.py"
    known = environment(tmp_path)
    known["PYTHONPATH"] += os.pathsep + str(script.parent)
    command = (*alone, sys.executable, str(script), str(tmp_path))
    told = subprocess.run(
        command, cwd=tmp_path, env=known, capture_output=True, text=True, timeout=2 * WALL, check=False
    )
    assert told.returncode == 0, told.stderr
    which, other, lab, plan, run = (json.loads(line) for line in told.stdout.splitlines())
    assert which[0] == 4
    assert "is not on loopback, and the inventory does not say which cluster it is" in which[1]
    assert other[0] == 4
    assert "this is another cluster: expectUID is other" in other[1]
    assert lab[0] == 4
    assert "is not on loopback, so it is no lab" in lab[1]
    assert plan[0] == 0, plan[1]
    assert run[0] == 0, run[1]
