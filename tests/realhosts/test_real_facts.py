"""Facts read on a real machine, and the units of pressure actions run small under a real PID 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.core.clock import SystemClock
from chaos.faults.actions._filler import FillerState, run_filler
from chaos.faults.actions.pressure import DISK_SCRIPT, MEMORY_SCRIPT, PID_SCRIPT
from tests.kit.drive import open_hosts
from tests.kit.machines import RealHost

MIB = 1 << 20


def test_facts_of_a_machine(three: list[RealHost], tmp_path: Path) -> None:
    host = three[0]
    host.run("mkdir -p /var/lib/kubelet")
    hosts = open_hosts({host.name: host}, tmp_path, SystemClock())
    try:
        values = {
            name: hosts.read(host.name, name)
            for name in ("root", "shared-kernel", "memory", "disk", "pids", "swap", "cgroup-version", "clock-skew",
                         "kubelet-flags", "iptables", "static-pod-files", "disk-filler")
        }  # fmt: skip
    finally:
        hosts.close()
    assert values["root"] is True
    assert values["shared-kernel"] is True
    assert 0 < values["memory"]["available"] < values["memory"]["total"]
    assert 0 < values["disk"]["available"] < values["disk"]["total"]
    assert 0 < values["pids"]["running"] < values["pids"]["max"]
    assert values["cgroup-version"] in (1, 2)
    assert (values["clock-skew"], values["disk-filler"], values["static-pod-files"]) == (0, "inactive", [])
    assert values["iptables"].keys() == {"legacy", "nft"}


FREE = "$(df -P -k /var/lib/kubelet | awk 'NR == 2 { print $4 }')"
# Arguments by which each takes next to nothing.
SMALL = [
    ("disk", DISK_SCRIPT, f"mkdir -p /var/lib/kubelet; a={FREE}; echo /var/lib/kubelet $((a - 2048))"),
    ("memory", MEMORY_SCRIPT, "echo 'MemFree: 99999 kB' > /tmp/meminfo; echo /tmp/meminfo 10 4096"),
    ("pid", PID_SCRIPT, "IFS=' /' read -r _ _ _ _ t _ < /proc/loadavg; echo $((t + 20)) 0"),
]


@pytest.mark.parametrize(("kind", "script", "arguments"), SMALL)
def test_the_unit_runs_and_ends_by_itself(three: list[RealHost], kind: str, script: str, arguments: str) -> None:
    host = three[0]
    small = host.run(arguments).split()
    limits = ("TasksMax=200", f"MemoryMax={64 * MIB}")
    (command,) = run_filler(FillerState(4.0, "test", 0), kind, script, small, limits).commands
    host.run(str(command))
    state = f"systemctl show --property=ActiveState --value nodefall-{kind}-filler.service"
    assert host.run(f"sleep 2; {state}") == "active"
    assert host.run(f"sleep 4; {state}") == "inactive"
    assert host.run("ls -A /var/lib/kubelet") == ""
