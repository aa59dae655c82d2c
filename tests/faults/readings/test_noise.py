"""No text that a fact's own program did not print becomes part of a value.

The valid output of each fact is what a host of the lab prints, or a sample; then it is disturbed. A disturbed output is
unknown, or has the value of the clean one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaos.faults.actions
import chaos.faults.readings
import chaos.faults.readings.windows
from chaos.core.api_fact import PseudoFact, labels_fact
from chaos.core.command import HostCommand
from chaos.core.fact import SECONDS_SINCE_READ, FactRef, HostFact, find_fact
from chaos.core.labels import ZONE_LABEL
from chaos.core.registry import discover
from chaos.faults.readings.pings import NODES
from chaos.lab.http.resources import RESOURCES
from chaos.machines.windows_command_line import process_command_line
from tests.kit.lab_host import EtcdLab
from tests.kit.win_host import WindowsHost

LINUX = discover(chaos.faults.readings, HostFact) | discover(chaos.faults.actions, HostFact)
WINDOWS = discover(chaos.faults.readings.windows, HostFact)
PARAMS = {
    "unit-state": {"unit": "cron.service"},
    "sysctl": {"key": "vm.swappiness"},
    "command-exit": {"argv": "true"},
    "disk-limits": {"unit": "kubepods.slice", "path": "/var/lib/kubelet"},
    "disk-reads": {"unit": "kubepods.slice", "path": "/var/lib/kubelet", "count": "8"},
    "dns-lookup": {"name": "kubernetes.io"},
    "mount": {"path": "/var/lib/data"},
    "mtu-pings": {"size": "1280"},
    "swap-area": {"path": "/dev/vda2"},
    "service-state": {"service": "w32time"},
    "nodefall-shutdown": {"run": "r1"},
}
READ_BY_EXIT_CODE = {"command-exit", "etcd-health"}
READ_BY_EXIT_CODE_ON_WINDOWS = {"kubelet-unit", "runtime-unit"}
ROOT = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
SWAPS = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/vda2 partition\t2097148\t\t10\t\t-2\n"
SHOWN = "Id={}\nLoadState={}\nActiveState={}\nUnitFileState=enabled\n"
# Of facts for which the lab prints nothing, or has no program; with another exit code than 0 as a pair.
SAMPLES: dict[str, str | tuple[str, int]] = {
    "bus-processes": (
        "MainPID=300\nId=dbus.service\nLoadState=loaded\n\nMainPID=0\nId=dbus-broker.service\nLoadState=not-found\n\n"
        "MainPID=310\nId=systemd-logind.service\nLoadState=loaded\n"
    ),
    "clock-skew": "1769990911.25\n1769987311.20\n",
    "disk-limit-files": "/run/systemd/transient/kubepods.slice.d/50-IOReadIOPSMax.conf\n",
    "failsafe-timers": "nodefall-run-1a2b3c-stop.timer loaded active waiting nodefall: systemctl start kubelet\n",
    "kubelet-certificate": "-----BEGIN CERTIFICATE-----\nMIIB+/=\n-----END CERTIFICATE-----\n",
    "iptables": (
        "legacy\n*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j ACCEPT\nCOMMIT\nnft\n# x\n*nat\n-A OUTPUT -j K\nCOMMIT\n"
    ),
    "kubelet-journal": '{"__REALTIME_TIMESTAMP":"1795232137988077","MESSAGE":"I1121 Shutdown manager"}\n',
    "mount": (
        "rmdir: failed to remove '/var/lib/data/.nodefall-absent': No such file or directory\n"
        f"{ROOT}40 22 254:17 / /var/lib/data rw,relatime shared:5 - ext4 /dev/vdb1 rw\n"
    ),
    "nft-rules": (
        "table inet nodefall\nlisted\n"
        "table inet nodefall {\n\tchain cut {\n\t\tcounter packets 3 bytes 1 drop\n\t}\n}\n"
    ),
    "nologin": "/run/nologin\n",
    "rtc": "alarm: off\n",
    "static-pod-files": "/etc/kubernetes/manifests/etcd.yaml\n/etc/kubernetes/manifests/kube-apiserver.yaml\n",
    "swap": SWAPS,
    "swap-area": SWAPS,
    "swap-areas": SWAPS,
    "time-sync-state": "ActiveState=active\n",
    "time-sync-unit": SHOWN.format("chrony.service", "loaded", "active"),
}
SAMPLES_ON_WINDOWS: dict[str, str | tuple[str, int]] = {
    "connection-peers": "10.0.0.9 49822 10.0.0.5 22\n",
    "failsafe-timers": '"\\nodefall-0a1b2c-cut","N/A","Ready"\n',
    "firewall-rules": (
        "\nHKEY_LOCAL_MACHINE\\SYSTEM\\FirewallRules\n"
        "    {1A}    REG_SZ    v2.31|Action=Block|Active=TRUE|Dir=In|Name=nodefall-0a1b2c-cut|\n\n"
        "End of search: 1 match(es) found.\n"
    ),
}
FOREIGN = [
    "*** System restart required ***",
    "ready",
    "Broadcast: the system will reboot now",
    "[   12.345678] audit: type=1400 audit(1.2:3): apparmor",
    "sudo: unable to resolve host w1: Name or service not known",
    "Last login: Sat Nov 28 18:30:08 2026 from 10.0.0.9",
    "bash: warning: setlocale: LC_ALL: cannot change locale (xx)",
    "\x1b]0;title\x07",
    "\x1b[?2004h",
    "Überraschung",
]
# Facts whose value is any text on one line: what stands in that line is the value. Other lines make it unknown.
ANY_LINE = {("linux", "sysctl"), ("windows", "machine-id"), ("windows", "stable-id"), ("windows", "login-domain")}
# Facts of which an empty output is the output of a program that has found nothing: that it is whole is known by the
# end mark of the transport.
NOTHING_FOUND = {
    *("control-plane-files", "disk-limit-files", "failsafe-timers", "kubelet-journal", "rtc", "static-pod-files"),
    *("black-hole-routes", "link-kinds", "link-mtus", "qdiscs", "api-peers", "api-reachable", "host-addresses"),
    *("stable-id", "peer-routes", "server-addresses"),
}
NOTHING_FOUND_ON_WINDOWS = {"failsafe-timers", "api-peers", "api-reachable", "firewall-rules", "server-addresses"}


class Reader:
    """The valid output of each fact of one system, with its exit code."""

    def __init__(self, facts: Mapping[str, HostFact], samples: Mapping[str, Any], nodes: list[Any], name: str) -> None:
        self._facts, self._samples = facts, samples
        self._known: dict[str, Any] = {
            NODES: nodes,
            labels_fact((ZONE_LABEL,)): {ZONE_LABEL: "a"},
            str(PseudoFact.NODE_NAME): name,
            SECONDS_SINCE_READ: "10",
        }

    def run(self, command: HostCommand) -> tuple[int, str, str]:
        raise NotImplementedError

    def fact(self, name: str) -> HostFact:
        return find_fact(self._facts, str(FactRef(name, PARAMS.get(name, {}))))

    @cache  # noqa: B019 - one reader for each system
    def output(self, reference: str) -> tuple[str, int]:
        name = FactRef.parse(reference).name
        if name in self._samples:
            sample = self._samples[name]
            return (sample, 0) if isinstance(sample, str) else sample
        fact = find_fact(self._facts, reference)
        code, stdout, _ = self.run(fact.command_for({need: self.known(need) for need in fact.needs}))
        return stdout.replace("\r\n", "\n"), code

    def known(self, reference: str) -> Any:
        if reference not in self._known:
            self._known[reference] = find_fact(self._facts, reference).parse(*self.output(reference))
        return self._known[reference]


class LinuxReader(Reader):
    def __init__(self) -> None:
        self._lab = EtcdLab()
        super().__init__(LINUX, SAMPLES, _nodes(self._lab.cluster.store), "cp-1")

    def run(self, command: HostCommand) -> tuple[int, str, str]:
        argv = ("env", "SSH_CONNECTION=10.0.0.9 40000 10.0.0.1 22", *command.argv)
        return self._lab.run("cp-1", shlex.join(argv), stdin=command.stdin)


class WindowsReader(Reader):
    def __init__(self) -> None:
        self._host = WindowsHost()
        super().__init__(WINDOWS, SAMPLES_ON_WINDOWS, _nodes(self._host.cluster.store), "win1")

    def run(self, command: HostCommand) -> tuple[int, str, str]:
        return self._host.run(str(process_command_line(command.argv)), command.stdin, cmd=False)


def _nodes(store: Any) -> list[Any]:
    shown = next(resource for resource in RESOURCES.values() if resource.plural == "nodes")
    return [shown.show(node) for node in store.list("nodes")]


@cache
def reader(system: str) -> Reader:
    return LinuxReader() if system == "linux" else WindowsReader()


CASES = [
    *(("linux", name) for name in sorted(LINUX.keys() - READ_BY_EXIT_CODE)),
    *(("windows", name) for name in sorted(WINDOWS.keys() - READ_BY_EXIT_CODE_ON_WINDOWS)),
]


def read_clean(system: str, name: str) -> tuple[HostFact, str, int, Any]:
    """The fact, its valid output and exit code, and the value."""
    fact = reader(system).fact(name)
    stdout, code = reader(system).output(str(FactRef(name, PARAMS.get(name, {}))))
    return fact, stdout, code, fact.parse(stdout, code)


def disturbed(stdout: str) -> Iterator[tuple[str, str]]:
    """Disturbed outputs, and what was done to each."""
    rows = stdout.splitlines(keepends=True)
    for line in FOREIGN:
        for position in range(len(rows) + 1):
            yield f"{line!r} at line {position}", "".join([*rows[:position], f"{line}\n", *rows[position:]])
        for text in (
            f"{line}{stdout}",
            f"{stdout}{line}",
            _within(stdout, f"{line}\n"),
            _within(stdout, f"\n{line}\n"),
        ):
            yield f"{line!r} without its line breaks", text
    for position in range(len(rows) + 1):
        yield f"an empty line at {position}", "".join([*rows[:position], "\n", *rows[position:]])
    for end in range(1, len(stdout)):
        if stdout[end - 1] != "\n":
            yield f"cut after {end} characters", stdout[:end]
    for encoding in ("utf-16", "utf-16-le", "utf-32", "cp037"):
        yield f"in {encoding}", stdout.encode(encoding, "replace").decode("utf-8", "replace")
    yield "with a byte order mark", f"\ufeff{stdout}"
    yield "with a NUL", stdout.replace("\n", "\0\n")


def _within(text: str, inserted: str) -> str:
    middle = len(text) // 2
    return f"{text[:middle]}{inserted}{text[middle:]}"


def read(fact: HostFact, stdout: str, code: int) -> tuple[Any, ...]:
    """The value, or nothing where it is unknown."""
    try:
        return (fact.parse(stdout, code),)
    except ValueError:
        return ()


@pytest.mark.parametrize(("system", "name"), CASES, ids=[f"{system} {name}" for system, name in CASES])
def test_noise_changes_no_value(system: str, name: str) -> None:
    fact, stdout, code, value = read_clean(system, name)
    assert stdout, "an empty output shows nothing here: add a sample"
    for what, text in disturbed(stdout):
        if "without" in what and (system, name) in ANY_LINE and text.count("\n") == 1:
            continue
        assert read(fact, text, code) in ((), (value,)), what


@pytest.mark.parametrize(("system", "name"), CASES, ids=[f"{system} {name}" for system, name in CASES])
def test_an_empty_output_is_unknown_or_the_result_of_a_search(system: str, name: str) -> None:
    fact, _, code, value = read_clean(system, name)
    found = read(fact, "", code)
    nothing_found = NOTHING_FOUND if system == "linux" else NOTHING_FOUND_ON_WINDOWS
    assert found in ((), (value,)) or (name in nothing_found and found[0] in ([], {}, "", False, {"lines": []}))


@given(st.sampled_from(CASES), st.text(st.characters(exclude_characters="\n"), min_size=1, max_size=30), st.data())
def test_a_foreign_line_anywhere_changes_no_identity(case: tuple[str, str], line: str, data: st.DataObject) -> None:
    """Of facts with one line, any second line makes the value unknown."""
    fact, stdout, code, value = read_clean(*case)
    rows = stdout.splitlines(keepends=True)
    if len(rows) > 1 or case[1] in NOTHING_FOUND | NOTHING_FOUND_ON_WINDOWS:
        return
    text = "".join(data.draw(st.permutations([*rows, f"{line}\n"])))
    assert read(fact, text, code) in ((), (value,))


def test_every_fact_that_reads_its_output_has_a_form() -> None:
    for facts, by_exit_code in ((LINUX, READ_BY_EXIT_CODE), (WINDOWS, READ_BY_EXIT_CODE_ON_WINDOWS)):
        without = {name for name, fact in facts.items() if getattr(fact, "_form", None) is None}
        assert without == by_exit_code
