"""The kubelet's client certificate on a simulated host: expired, mounted, unmounted, and gone with the power."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.command import HostCommand
from chaos.faults.actions.certificate_expired import ACTION, CertificateState
from chaos.faults.readings.certificates import kubelet_client_certificate, kubelet_credentials
from chaos.lab.node.kubelet.apiserver_link import TARGET
from tests.kit.lab_host import Host


def fact(host: Host) -> dict[str, Any]:
    wanted = kubelet_client_certificate
    code, out, _ = host.run(str(wanted.command_for({})))
    found: dict[str, Any] = wanted.parse(out, code)
    return found


def commands(host: Host) -> tuple[str, str]:
    found = fact(host)
    state = CertificateState(
        "kubelet.service", "t", 60.0, True, "w1", found["target"], found["mode"], found["owner"], found["sha256"]
    )
    (inject,), (undo,) = ACTION.program(state).commands, ACTION.program(state).undo.steps
    assert isinstance(inject, HostCommand)
    assert isinstance(undo.command, HostCommand)
    return str(inject), str(undo.command)


def wait(host: Host, seconds: float) -> None:
    host.cluster.sim.run_until(host.cluster.sim.now + seconds)


def test_a_kubelet_with_an_expired_certificate_does_not_start() -> None:
    host = Host()
    before = fact(host)
    inject, undo = commands(host)
    assert host.run(inject)[0] == 0
    wait(host, 30)
    assert host.state() == ("on", True, False)
    during = fact(host)
    assert (during["expired"], during["mounted"], during["prepared"]) == (True, True, True)
    assert during["sha256"] != before["sha256"]
    assert host.run(undo)[0] == 0
    wait(host, 5)
    assert host.machine.kubelet.is_running
    assert fact(host) == before
    code, _, err = host.run(undo)
    assert (code, err) == (0, f"umount: {TARGET}: not mounted.\n" * 2)
    assert fact(host) == before


def test_a_boot_brings_the_certificate_back() -> None:
    host = Host()
    before = fact(host)
    assert host.run(commands(host)[0])[0] == 0
    host.machine.reset()
    host.lose_power()
    wait(host, 60)
    assert host.machine.kubelet.is_running
    assert fact(host) == before


def test_credentials() -> None:
    host, wanted = Host(), kubelet_credentials
    flags = {"kubeconfig": "/etc/kubernetes/kubelet.conf", "bootstrap-kubeconfig": "/etc/kubernetes/bootstrap.conf"}
    code, out, _ = host.run(str(wanted.command_for({"kubelet-flags": flags})))
    value = wanted.parse(out, code)
    assert int(value.pop("renewal-in")) > 10**9
    assert value == {"user": "system:node:w1", "rotated-file": True, "bootstrap": ""}


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("openssl version", "does not simulate openssl version"),
        (f"mount --bind /run/absent {TARGET}", "special device /run/absent does not exist"),
        ("mount --bind /run/x /etc", "simulates only mount --bind"),
        ("umount /etc", "simulates only umount"),
        ("stat --format=%n /absent", "cannot statx '/absent': No such file"),
        ("sha256sum /absent", "sha256sum: /absent: No such file"),
        ("openssl x509 -noout -checkend 0 -in /absent", "Can't open /absent"),
        ("stat /etc/hostname", "simulates only stat"),
    ],
)
def test_what_fails(script: str, why: str) -> None:
    code, out, err = Host().run(script)
    assert code
    assert not out
    assert why in err


@pytest.mark.parametrize(
    "script", ["openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out /run/x", f"umount {TARGET}"]
)
def test_what_only_root_may_do(script: str) -> None:
    assert host_error(script)


def host_error(script: str) -> str:
    code, _, err = Host().run(script, root=False)
    assert code
    return err


def test_files_of_run_are_appended_to_by_root() -> None:
    host = Host()
    assert host.run('sh -c \'echo one >> "$1"; echo two >> "$1"; cat "$1"\' nodefall /run/f')[1] == "one\ntwo\n"
    assert "cannot create /etc/f: Permission denied" in host.run("sh -c 'echo one >> \"$1\"' nodefall /etc/f")[2]
    assert (
        "cannot create /run/f: Permission denied" in host.run("sh -c 'echo x >> \"$1\"' nodefall /run/f", root=False)[2]
    )
