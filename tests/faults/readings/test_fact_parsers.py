"""Output of real hosts, and the values of facts that are parsed from it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaos.faults.readings
from chaos.core.fact import FactRef, HostFact
from chaos.core.registry import discover
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED

FACTS: dict[str, HostFact] = discover(chaos.faults.readings, HostFact)
PARAMS = {
    "unit-state": {"unit": "cron.service"},
    "sysctl": {"key": "vm.swappiness"},
    "command-exit": {"argv": "true"},
    "disk-limits": {"unit": "kubepods.slice", "path": "/d"},
    "disk-reads": {"unit": "kubepods.slice", "path": "/d", "count": "8"},
    "dns-lookup": {"name": "n.example"},
    "mount": {"path": "/d"},
    "mtu-pings": {"size": "1280"},
}
BOUND = {name: fact.bind(PARAMS.get(name, {})) for name, fact in FACTS.items()}
PID1 = "1 (systemd) S 0 1 1 0 -1 4194560 9 8 7 6 5 4 3 2 20 0 1 0 1500 1 1 1"
LOCKS = (
    '{"type":"a(ssssuu)","data":[[["sleep","UPower","Pause device polling","delay",0,700],'
    '["shutdown","kubelet","Kubelet needs time to handle node shutdown","delay",0,812]]]}'
)
NO_LOCKS = '{"type":"a(ssssuu)","data":[[]]}'

GOOD = [
    ("host-time", "1795232137.988077600\n", 1795232137.9880776),
    ("host-time", "1795232137.N\n", 1795232137.5),  # busybox
    ("boot-id", "f4dc55dd-fb0c-4e07-97b3-1883fa27ab8b\n", "f4dc55dd-fb0c-4e07-97b3-1883fa27ab8b"),
    ("machine-id", "a34188058e584bab8c51cd34df85c05c\n", "a34188058e584bab8c51cd34df85c05c"),
    ("pid1-start", f"{PID1}\ncpu  1 2 3\nbtime 1795231571\n", 1795231586),
    ("pid1-start", f"{PID1.replace('systemd', 'a) (b c')}\nbtime 1795231571\n", 1795231586),
    ("systemd-version", "systemd 252 (252.38-1~deb12u1)\n+PAM\n", 252),
    ("systemd-version", "systemd 257~rc1 (257~rc1)\n", 257),
    ("scheduled-shutdown", '(st) "" 18446744073709551615\n', NO_SHUTDOWN_SCHEDULED),
    ("scheduled-shutdown", '(st) "poweroff" 1795231571000000\n', '(st) "poweroff" 1795231571000000'),
    ("preparing-for-shutdown", "b false\n", "b false"),
    ("power-key", 's "poweroff"\n', 's "poweroff"'),
    ("inhibit-delay-max", "t 5000000\n", "t 5000000"),
    ("inhibitor-kubelet", LOCKS, True),
    ("inhibitor-kubelet", NO_LOCKS, False),
    ("inhibitor-kubelet", LOCKS.replace('"delay",0,812', '"block",0,812'), False),
    ("inhibitor-locks", NO_LOCKS, []),
    ("failsafe-timers", "nodefall-cancel-shutdown.timer loaded active waiting x\n", ["nodefall-cancel-shutdown.timer"]),
    ("failsafe-timers", "", []),
    ("kubelet-unit", "Id=kubelet.service\nLoadState=loaded\nActiveState=active\n", "kubelet.service"),
    (
        "kubelet-unit",
        (
            "Id=kubelet.service\nLoadState=loaded\nActiveState=inactive\n\n"
            "Id=k3s.service\nLoadState=not-found\nActiveState=inactive\n\n"
            "Id=k3s-agent.service\nLoadState=loaded\nActiveState=active\n"
        ),
        "k3s-agent.service",
    ),
]
BAD = [
    ("boot-id", "", 1),
    ("host-time", "", 1),
    ("host-time", "noon\n", 0),
    ("pid1-start", "1 (systemd) S 0\nbtime 5\n", 0),
    ("pid1-start", PID1, 0),
    ("systemd-version", "sh: systemctl: not found", 127),
    ("scheduled-shutdown", "", 1),
    ("inhibitor-locks", "Failed to connect to bus", 1),
    ("inhibitor-locks", '{"data":[]}', 0),
    ("inhibitor-kubelet", '{"data":[[["shutdown"]]]}', 0),
    ("kubelet-unit", "Id=kubelet.service\nLoadState=not-found\nActiveState=inactive\n", 0),
    ("failsafe-timers", "", 1),
]


@pytest.mark.parametrize(("name", "stdout", "value"), GOOD)
def test_parse(name: str, stdout: str, value: Any) -> None:
    assert FACTS[name].parse(stdout, 0) == value


def test_inhibitor_locks_have_who_what_and_mode() -> None:
    locks = FACTS["inhibitor-locks"].parse(LOCKS, 0)
    assert [(lock["who"], lock["what"], lock["mode"]) for lock in locks] == [
        ("UPower", "sleep", "delay"),
        ("kubelet", "shutdown", "delay"),
    ]


@pytest.mark.parametrize(("name", "stdout", "exit_code"), BAD)
def test_errors_have_a_reason(name: str, stdout: str, exit_code: int) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        FACTS[name].parse(stdout, exit_code)


@given(st.sampled_from(sorted(FACTS)), st.text(), st.integers(0, 255))
def test_any_output_parses_or_is_refused(name: str, stdout: str, exit_code: int) -> None:
    try:
        BOUND[name].parse(stdout, exit_code)
    except ValueError:
        return


# Read-only programs, with the arguments that make them so.
READ_ONLY: tuple[str, ...] = (
    "cat ",
    "systemd-detect-virt",
    "busctl ",
    "systemctl show",
    "systemctl list-units",
    "systemctl --version",
    "hostname -I",
    "getent ",
    "grep ",
    "printenv ",
    "ps -eo",
)
READ_ONLY += ("rtcwake -m show", "date +%s.%N")
READ_ONLY += (
    "nft list",
    "nft --version",
    "ss -H",
    "sh -c 'sh -c '\"'\"'curl -s -k --noproxy",
    "sh -c 'busctl --json=short call",
)
READ_ONLY += ("sh -c 'nft list tables && echo listed && nft list table",)
READ_ONLY += ("sed -n '/^-----BEGIN CERTIFICATE-----$/,/^-----END CERTIFICATE-----/p' /",)
READ_ONLY += ("stat ", "find ", "id -u", 'sh -c \'echo "$1" && df', "sh -c 'ps -eo pid=,args=; echo; systemctl show")
READ_ONLY += ("sh -c '{ cat /proc/uptime; date +%s.%N; cat /proc/uptime; } | awk ",)
READ_ONLY += ("sh -c 'echo legacy\n", "sh -c 'exec journalctl -q -u ")
READ_ONLY += ("sh -c 'LC_ALL=C rmdir \"$1/.nodefall-absent\" 2>&1; cat /proc/self/mountinfo'",)  # changes nothing
READ_ONLY += ('sh -c \'readlink "$1"; stat ', "sh -c 'date +%s; stat ")
READ_ONLY += ("/usr/bin/crictl --runtime-endpoint unix:///run/s ps ",)
READ_ONLY += (
    "sh -c 'tc -s -j qdisc show && ip -j link show'",
    "tc -j qdisc show",
    "sh -c 'ip -j -4 route show type blackhole && ip -j -6 route show type blackhole'",
    "unshare --net sh -c 'echo tried && nft -f - && echo loaded'",
    "ip -d -j link show",
    "ip -j link show",
    "ip -j -force -batch -",
    "sh -c 'echo peer control-plane",
)
READ_ONLY += ("env 'RES_OPTIONS=timeout:2 attempts:1' getent -s dns ahosts ",)
READ_ONLY += ("unshare --net sh -c 'modprobe -q ifb numifbs=0; ip link add nodefall0 type ifb; tc -force -batch -'",)
# The latter in a network namespace that nothing else is in; the module adds no device to the host.
READ_ONLY += ('sh -c \'systemctl show --property=ControlGroup,DropInPaths,NeedDaemonReload "$1"; stat ',)
# Reads a disk in a scope that ends with it.
READ_ONLY += (
    'sh -c \'export LC_ALL=C; systemd-run --scope --quiet --slice="$1" -- timeout --signal=INT 20 dd if="$2" ',
)
# Of etcdctl only verbs that read: test_etcd_facts.py.
READ_ONLY += (
    "sh -c 'sha256sum \"$1\"; cat /proc/self/mountinfo'",
    'sh -c \'id=$("$1" --runtime-endpoint "unix://$2" ps ',
)
KNOWN: dict[str, Any] = {
    "kubelet-cgroup": "/system.slice/kubelet.service",
    "kubelet-flags": {},
    "time-sync-unit": "t",
    "kubelet-server": "https://cp:6443",
    "server-addresses": ["10.0.0.1"],
    "api-peers": [],
    "node-name": "n1",
    "kubelet-unit": "k",
    "runtime-socket": "/run/s",
    "runtime-client": "/usr/bin/crictl",
    "runtime-unit": "r",
    "unread-seconds": 3,
    "object/api/v1/nodes#/items": [],
    "peer-routes": {"10.0.0.1": "eth0"},
    str(FactRef("disk-limits", {"unit": "kubepods.slice", "path": "/d"})): {"disk": "/dev/vda"},
}


@pytest.mark.parametrize("name", sorted(set(FACTS) - {"command-exit"}))  # the user vouches for that one
def test_reading_changes_nothing(name: str) -> None:
    """Facts are read before a run is confirmed."""
    assert str(BOUND[name].command_for(KNOWN)).startswith(READ_ONLY)
