"""An action of another package on a real machine, through the real engine: tests/api/outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.core.errors import Refused
from chaos.machines.pool import Hosts
from tests.api.outside.nodefall_sysctl import ACTION
from tests.kit.drive import drive, registry_with
from tests.kit.machines import RealHost

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]
FORWARD = "net.ipv4.ip_forward"
PORTS = "net.ipv4.ip_local_port_range"
REGISTRY = registry_with(ACTION)


@pytest.fixture
def host(three: list[RealHost]) -> Iterator[RealHost]:
    """A machine whose network parameters are writable: Docker mounts /proc/sys read-only."""
    machine = three[0]
    machine.run("mount --bind /proc/sys/net /proc/sys/net && mount -o remount,bind,rw /proc/sys/net")
    yield machine
    machine.run("umount /proc/sys/net")


def read(host: RealHost, key: str) -> str:
    return " ".join(host.run(f"cat /proc/sys/{key.replace('.', '/')}").split())


def timers(host: RealHost) -> str:
    return host.run("systemctl list-units --all --plain --no-legend 'nodefall-*.timer'")


@pytest.mark.parametrize(
    ("key", "value"), [(FORWARD, "0"), pytest.param(PORTS, "40000 40100", marks=pytest.mark.nightly)]
)
def test_it_is_proven_undone_and_leaves_nothing(host: RealHost, tmp_path: Path, key: str, value: str) -> None:
    former, seen = read(host, key), []
    result = drive(
        host,
        "sysctl",
        {"key": key, "value": value},
        tmp_path,
        during=lambda _: seen.append((read(host, key), timers(host).startswith("nodefall-"))),
        registry=REGISTRY,
    )
    (step,) = result.steps
    assert (step.proof_status, step.weak) == ("proven", False), step.because
    assert seen == [(value, True)]
    assert [undo.proven for undo in result.undo] == [True], result.leftovers
    assert read(host, key) == former
    assert not timers(host)


@pytest.mark.nightly
def test_the_timer_restores_the_value_and_the_step_is_no_longer_proven(host: RealHost, tmp_path: Path) -> None:
    former, seen = read(host, PORTS), []

    def fire(_: Hosts) -> None:
        host.run(f"systemctl start {timers(host).split()[0].removesuffix('.timer')}.service")
        seen.append(read(host, PORTS))

    given = {"key": PORTS, "value": "40000 40100"}
    result = drive(host, "sysctl", given, tmp_path, then="15s", during=fire, registry=REGISTRY)
    (step,) = result.steps
    assert seen == [former]
    assert step.proof_status == "disproven", step.because
    assert [undo.proven for undo in result.undo] == [True], result.leftovers
    assert not timers(host)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [("net.ipv4.no_such_parameter", "1", "there is no kernel parameter"), (FORWARD, "1", "is 1 already")],
)
def test_it_is_refused(host: RealHost, tmp_path: Path, key: str, value: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        drive(host, "sysctl", {"key": key, "value": value}, tmp_path, registry=REGISTRY)
