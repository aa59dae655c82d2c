"""An expired client certificate: what is sent, what is restored, and what is refused."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from chaos.faults.actions.certificate_expired import _EXPIRE_SCRIPT, CertificateState
from tests.kit.actionkit import ActionDescription, describe

TARGET = "/var/lib/kubelet/pki/kubelet-client-2026-01-31-10-00-00.pem"
FOUND = {"target": TARGET, "mode": "600", "owner": "0:0", "sha256": "9f" * 32}
FORMER = FOUND | {"expired": False, "mounted": False, "prepared": False}
CREDENTIALS = {"user": "system:node:n1.example", "rotated-file": True, "bootstrap": "", "renewal-in": 90000}


def node(credentials: dict[str, Any] | None = None, unit: str = "kubelet.service", **changes: Any) -> Target:
    facts = {
        "kubelet-unit": unit,
        "inhibitor-kubelet": True,
        "kubelet-client-certificate": FORMER | changes,
        "kubelet-credentials": CREDENTIALS | (credentials or {}),
    }
    return Target("n1", facts=facts, tag="run-do", max_duration=600.0)


def test_a_certificate_is_mounted_over_the_kubelets_and_unmounted() -> None:
    done = describe("certificate-expired", {"duration": "90s"}, node())
    restore = (
        """sh -c 'umount "$2" || umount --lazy "$2"; systemctl restart "$3" && """
        """rm --force "$1.crt" "$1.pid" && rm --force "$1"' nodefall """
        f"/run/nodefall-kubelet-client.pem {TARGET} kubelet.service"
    )
    former = f"kubelet-client-certificate is {FORMER}"
    script = shlex.split(done.inject[0])
    assert script[4:] == [
        "/run/nodefall-kubelet-client.pem",
        "/O=system:nodes/CN=system:node:n1.example",
        TARGET,
        "kubelet.service",
    ]
    assert done == ActionDescription(
        inject=done.inject,
        preconditions=[former],
        failsafe=f"nodefall-run-do after 90s: {restore}",
        undo=[f"{restore} unless {former}"],
        proof=[former, "inhibitor-kubelet is True", "the node is Ready"],
        disarm="nodefall-run-do",
    )


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (node({"rotated-file": False}), "does not name kubelet-client-current.pem"),
        (node({"bootstrap": "/etc/kubernetes/bootstrap-kubelet.conf"}), "would ask for another certificate with /etc/"),
        (node({"renewal-in": 4199}), "may be renewed at any time"),
        (node({"renewal-in": -1}), "may be renewed at any time"),
        (node(expired=True), "has expired"),
        (node(mounted=True, expired=True), "another file is mounted over"),
        (node(prepared=True), "or prepared for that"),
    ],
)
def test_it_is_refused(target: Target, why: str) -> None:
    with pytest.raises(Unsupported, match=why) as refused:
        describe("certificate-expired", {}, target)
    assert refused.value.hint


@pytest.mark.parametrize("fact", ["kubelet-unit", "kubelet-client-certificate", "kubelet-credentials"])
def test_it_is_refused_where_a_fact_is_not_known(fact: str) -> None:
    facts = {name: value for name, value in node().facts.items() if name != fact}
    with pytest.raises(Unsupported, match=f"the fact {fact} is not known"):
        describe("certificate-expired", {}, Target("n1", facts=facts, tag="run-do"))


@pytest.mark.parametrize(
    "forged",
    [
        {"target": "/etc/shadow"},
        {"target": "/var/lib/kubelet/pki/kubelet-client-1.pem/../../../../etc/shadow"},
        {"node": "n1/O=system:masters"},
        {"unit": "systemd-reboot.service"},
        {"mode": "u+s"},
        {"sha256": "x"},
    ],
)
def test_a_forged_state_is_not_decoded(forged: dict[str, str]) -> None:
    good = {"unit": "kubelet.service", "tag": "run-do", "seconds": 60.0, "had_inhibitor": True, "node": "n1", **FOUND}
    assert msgspec.convert(good, CertificateState).target == TARGET
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(good | forged, CertificateState)


@pytest.mark.parametrize("has_pgrep", [False, True])
def test_nothing_is_mounted_where_the_kubelets_that_run_cannot_be_noted(has_pgrep: bool, tmp_path: Path) -> None:
    """On this machine, with programs that only say that they ran."""
    for name in ("openssl", "mount", "systemctl", *(["pgrep"] if has_pgrep else [])):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name}\n")
        (tmp_path / name).chmod(0o755)
    given = (f"{tmp_path}/expired", "/CN=x", TARGET, "kubelet.service")
    script = ("/bin/sh", "-c", _EXPIRE_SCRIPT, "nodefall", *given)
    done = subprocess.run(script, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode == 0) is has_pgrep
    assert ("mount" in done.stdout.split()) is has_pgrep
