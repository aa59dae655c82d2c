"""Facts about the kubelet's client certificate: output of coreutils, openssl 3.0 and the kernel."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chaos.faults.readings.certificates import kubelet_client_certificate, kubelet_credentials
from chaos.lab.node.kubelet.apiserver_link import client_certificate

TARGET = "/var/lib/kubelet/pki/kubelet-client-2026-01-31-10-00-00.pem"
DIGEST = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
ROOT = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
MOUNTED = f"41 22 0:24 /nodefall-kubelet-client.pem {TARGET} rw,nosuid,nodev shared:5 - tmpfs tmpfs rw,size=100k\n"
HEAD = f"{TARGET}\nmode=600 owner=0:0\n{DIGEST}  /var/lib/kubelet/pki/kubelet-client-current.pem\n"
VALID, EXPIRED = "Certificate will not expire\n", "Certificate will expire\n"
TAIL = f"processes\n812\nformer\nfile\n{TARGET}\n"
REAL = TARGET.replace("/var/lib/kubelet", "/data disk/kubelet")
FAULT = f"{HEAD}{EXPIRED}prepared=/run/nodefall-kubelet-client.pem\n{ROOT}{MOUNTED}"
IN_FORCE = {"expired": True, "mounted": True, "prepared": True, "former-process": False}
BASE = {"target": TARGET, "mode": "600", "owner": "0:0", "sha256": DIGEST}
PATH = "/var/lib/kubelet/pki/kubelet-client-current.pem"
NOW = "1790000000\n"  # 2026-09-21
ROTATED = f"client-certificate: {PATH}\nclient-key: {PATH}\n"
NODE = re.sub(r"-----BEGIN EC PRIVATE.*", "", client_certificate("n1"), flags=re.DOTALL)  # from 2020 to 2120


@pytest.mark.parametrize(
    ("stdout", "value"),
    [
        (HEAD + VALID + ROOT + TAIL, BASE | {"expired": False, "mounted": False, "prepared": False}),
        (FAULT + TAIL, BASE | IN_FORCE | {"former-process": True}),  # cut off before it was noted which ran
        # As before former-process: the undo of a run of then compares all of it.
        (HEAD + EXPIRED + ROOT + TAIL, BASE | {"expired": True, "mounted": False, "prepared": False}),
        # A kubelet that ran when it was mounted; later others; and none.
        (f"{FAULT}processes\n812\nformer\n812\nfile\n{TARGET}\n", BASE | IN_FORCE | {"former-process": True}),
        (f"{FAULT}processes\n900\nformer\n812\nfile\n{TARGET}\n", BASE | IN_FORCE),
        (f"{FAULT}processes\nformer\n812\nfile\n{TARGET}\n", BASE | IN_FORCE),
        # /var/lib/kubelet is a symbolic link.
        (
            FAULT.replace(f" {TARGET} ", " " + REAL.replace(" ", "\\040") + " ")
            + f"processes\n900\nformer\n812\nfile\n{REAL}\n",
            BASE | IN_FORCE,
        ),
    ],
)
def test_certificate(stdout: str, value: dict[str, Any]) -> None:
    assert kubelet_client_certificate.parse(stdout, 0) == value


@pytest.mark.parametrize(
    ("stdout", "code", "why"),
    [
        (HEAD + ROOT + TAIL, 0, "openssl is not installed"),
        (HEAD + VALID + TAIL, 0, "not a symbolic link"),  # mountinfo was not read
        (HEAD.replace(TARGET, "/etc/shadow") + VALID + ROOT + TAIL, 0, "not a symbolic link"),
        (
            HEAD.replace(TARGET, "kubelet-client-2026-01-31-10-00-00.pem") + VALID + ROOT + TAIL,
            0,
            "not a symbolic link",
        ),
        (ROOT + TAIL, 0, "not a symbolic link"),
        (HEAD + VALID + ROOT + TAIL.replace(f"{TARGET}\n", ""), 0, "not a symbolic link"),
        ("", 127, "did not answer"),
        (HEAD + VALID + ROOT, 0, "did not answer"),
    ],
)
def test_a_certificate_that_is_not_understood(stdout: str, code: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        kubelet_client_certificate.parse(stdout, code)


@pytest.mark.parametrize(
    ("stdout", "changes"),
    [
        (NOW + ROTATED + NODE, {}),
        (NOW + ROTATED.replace(PATH, f'"{PATH}"') + NODE, {}),
        (NOW + NODE, {"rotated-file": False}),  # client-certificate-data
        (NOW + ROTATED.replace(f"client-key: {PATH}", "client-key: /etc/key.pem") + NODE, {"rotated-file": False}),
        (
            f"{NOW}bootstrap=/etc/kubernetes/bootstrap-kubelet.conf\n{ROTATED}{NODE}",
            {"bootstrap": "/etc/kubernetes/bootstrap-kubelet.conf"},
        ),
    ],
)
def test_credentials(stdout: str, changes: dict[str, Any]) -> None:
    value = {"user": "system:node:n1", "rotated-file": True, "bootstrap": ""} | changes
    seconds = kubelet_credentials.parse(stdout, 0).pop("renewal-in")
    assert kubelet_credentials.parse(stdout, 0) == value | {"renewal-in": seconds}
    assert seconds == pytest.approx(1577836800 + 0.7 * 36524 * 86400 - 1790000000, abs=1)


@pytest.mark.parametrize("stdout", ["", ROTATED + NODE, NOW + ROTATED, NOW + NODE + NODE.replace("\n", "\r\n")])
def test_credentials_that_are_not_understood(stdout: str) -> None:
    with pytest.raises(ValueError, match=r"host did not answer|no client certificates|2 certificates"):
        kubelet_credentials.parse(stdout, 0)


def test_only_paths_of_a_kubeconfig_leave_the_host(tmp_path: Path) -> None:
    """On this machine, with files of the test."""
    if not shutil.which("sed"):
        pytest.skip("no sed")
    data = "LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0tCg=="
    config = tmp_path / "kubelet.conf"
    config.write_text(f"users:\n- user:\n    client-certificate-data: {data}\n    client-key-data: {data}\n")
    flags = {"kubeconfig": str(config), "bootstrap-kubeconfig": str(tmp_path / "absent")}
    argv = kubelet_credentials.command_for({"kubelet-flags": flags}).argv
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    assert data not in done.stdout
    assert "bootstrap=" not in done.stdout
    config.write_text("users:\n- user:\n" + "".join(f"    {line}\n" for line in ROTATED.splitlines()))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    assert ROTATED in done.stdout
