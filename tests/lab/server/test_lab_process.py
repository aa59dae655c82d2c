"""The lab as a process: start, end, and cleanup."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from chaos.app.labs import start_lab
from chaos.core.clock import SystemClock
from chaos.core.errors import NodefallError
from chaos.core.lab_settings import Lab
from chaos.machines.power.redfish import RedfishPower

pytestmark = pytest.mark.lab
SPEC = json.dumps({"nodes": [{"name": "only"}]})
# Starts a lab as nodefall does, prints its ready line, and waits to be killed.
OWNER = """
import subprocess, sys
lab = subprocess.Popen([sys.executable, "-m", "chaos.lab", "--linger", sys.argv[1]], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, text=True, start_new_session=True)
lab.stdin.write(sys.argv[2] + "\\n")
lab.stdin.flush()
print(lab.stdout.readline(), flush=True)
sys.stdin.read()
"""


def alive(pid: int) -> bool:
    """Whether a process still runs, also one that is not a child; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int, seconds: float) -> None:
    clock = SystemClock()
    end = clock.now() + seconds
    while alive(pid):
        assert clock.now() < end, f"process {pid} still runs"
        clock.sleep(0.05)
    clock.close()


def orphan(linger: str) -> dict[str, Any]:
    """Ready line of a lab whose owner has just been killed."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, linger, SPEC], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout
    facts: dict[str, Any] = json.loads(owner.stdout.readline())
    owner.kill()
    owner.communicate(timeout=10)
    return facts


def test_nothing_is_left_when_the_owner_is_killed() -> None:
    facts = orphan("0.5")
    wait_until_gone(facts["pid"], 20)
    assert not Path(facts["directory"]).exists()


def test_an_orphan_stays_while_a_client_is_connected() -> None:
    facts = orphan("0.5")
    source = facts["timeSource"]
    with socket.create_connection((source["address"], source["port"]), timeout=10) as line:
        clock = SystemClock()
        clock.sleep(2)
        clock.close()
        line.sendall(b"now\n")
        assert float(line.recv(100)) > 1_795_000_000
    wait_until_gone(facts["pid"], 20)
    assert not Path(facts["directory"]).exists()


def test_sigterm_ends_an_orphan_at_once() -> None:
    facts = orphan("600")
    os.kill(facts["pid"], signal.SIGTERM)
    wait_until_gone(facts["pid"], 20)
    assert not Path(facts["directory"]).exists()


@pytest.mark.parametrize("how", ["stop", "SIGTERM", "SIGINT"])
def test_ends_on_request(how: str) -> None:
    lab = subprocess.Popen(
        [sys.executable, "-m", "chaos.lab"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert lab.stdin
    assert lab.stdout
    lab.stdin.write(SPEC + "\n")
    lab.stdin.flush()
    facts = json.loads(lab.stdout.readline())
    if how == "stop":
        lab.stdin.write("stop\n")
        lab.stdin.flush()
    else:
        lab.send_signal(getattr(signal, how))
    assert lab.wait(20) == 0
    lab.communicate()
    assert not Path(facts["directory"]).exists()


@pytest.mark.parametrize("spec", ["", "{", '{"nodes": []}', '{"nodes": [{"name": "a"}], "unknown": 1}'])
def test_a_bad_spec_is_refused(spec: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "chaos.lab"], input=spec + "\n", capture_output=True, text=True, timeout=30, check=False
    )
    assert (ran.returncode, ran.stdout) == (64, "")
    assert ran.stderr.startswith("LabSpec: ")
    assert "Traceback" not in ran.stderr


def test_free_running_time_needs_no_client(tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    file.write_text(SPEC)
    command = [sys.executable, "-m", "chaos.lab", "--spec", str(file), "--speed", "100"]
    lab = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert lab.stdin
    assert lab.stdout
    source = json.loads(lab.stdout.readline())["timeSource"]
    with socket.create_connection((source["address"], source["port"]), timeout=10) as line:
        times = []
        clock = SystemClock()
        for _ in range(2):
            line.sendall(b"now\n")
            times.append(float(line.recv(100)))
            clock.sleep(0.5)
        clock.close()
    lab.communicate("stop\n", timeout=20)
    assert times[1] > times[0] + 5


def test_start_lab_gives_an_inventory_and_stops() -> None:
    with start_lab(Lab(workers=2, zones=["a", "b"], seed=5), seed=9) as lab:
        inventory = lab.inventory
        assert sorted(inventory.hosts) == ["control-plane", "worker-1", "worker-2"]
        assert inventory.cluster
        assert inventory.cluster.simulated
        assert inventory.cluster.time_source
        host = inventory.hosts["worker-1"]
        assert host.identity_file
        assert isinstance(host.power, RedfishPower)
        assert host.power.password
        assert Path(host.identity_file).is_file()
        assert Path(str(host.power.password.file)).is_file()
        pid = lab.facts["pid"]
    wait_until_gone(pid, 1)
    assert not Path(lab.facts["directory"]).exists()
    lab.stop()


def test_windows_workers_are_hosts_over_winrm() -> None:
    with start_lab(Lab(workers=1, windows_workers=1, zones=["a", "b"])) as lab:
        hosts = {host["node"]: host for host in lab.facts["hosts"]}
        assert list(hosts) == ["control-plane", "worker-1", "windows-1"]
        assert [host["os"] for host in hosts.values()] == ["linux", "linux", "windows"]
        assert [name for name, host in hosts.items() if "winrm" in host] == ["windows-1"]
        winrm = hosts["windows-1"]["winrm"]
        assert winrm["https"].startswith("https://127.0.0.1:")
        for key in ("passwordFile", "caFile"):
            assert Path(winrm[key]).is_file()
        assert Path(winrm["passwordFile"]).stat().st_mode & 0o077 == 0
        found = {name: (host.os, host.transport) for name, host in lab.inventory.hosts.items()}
        linux = ("linux", None)
        assert found == {"control-plane": linux, "worker-1": linux, "windows-1": ("windows", "winrm")}
        assert lab.inventory.hosts["windows-1"].port == urlsplit(winrm["https"]).port


def test_start_lab_reports_why_it_did_not_start() -> None:
    with pytest.raises(NodefallError, match="systemd 1 is not simulated"), start_lab(Lab(systemd=1)):
        pass


def test_many_nodes_under_a_small_limit_of_open_files() -> None:
    spec = json.dumps({"nodes": [{"name": f"n{number}"} for number in range(150)]})
    script = 'ulimit -Sn 128 && exec "$0" -m chaos.lab'
    lab = subprocess.Popen(
        ["sh", "-c", script, sys.executable], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    out, _ = lab.communicate(f"{spec}\nstop\n", timeout=40)
    assert lab.returncode == 0
    assert len(json.loads(out)["hosts"]) == 150
