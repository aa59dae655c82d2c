"""Identity of a machine and its kubelet: output of the programs, real and simulated."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from chaos.faults.readings.certificates import CLIENT_CERTIFICATES, kubelet_user
from chaos.faults.readings.identity import system_uuid
from chaos.lab.node.kubelet.apiserver_link import FILE, client_certificate
from tests.kit.lab_host import Host

UUID = "4C4C4544-0042-3510-8034-B3C04F584332"
NODE, OTHER = client_certificate("n1"), client_certificate("n2")
OWN_CERTIFICATE = re.search(r"-----BEGIN CERTIFICATE.*?END CERTIFICATE-----\n", NODE, re.DOTALL)


def test_the_lab_keeps_a_key_beside_the_certificate() -> None:
    assert "PRIVATE KEY" in NODE
    assert client_certificate("n1") == NODE


@pytest.mark.parametrize(
    ("stdout", "exit_code", "user"),
    [
        (NODE, 0, "system:node:n1"),
        (NODE, 2, "system:node:n1"),  # some files are missing
        (NODE + NODE, 0, "system:node:n1"),
        (client_certificate("ip-10-0-0-11.eu.example"), 0, "system:node:ip-10-0-0-11.eu.example"),
    ],
)
def test_the_kubelets_user(stdout: str, exit_code: int, user: str) -> None:
    assert kubelet_user.parse(stdout, exit_code) == user


@pytest.mark.parametrize(
    ("stdout", "error"),
    [
        ("", "no client certificates of a kubelet"),
        (NODE + OTHER, "several client certificates"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", r"\w"),
    ],
)
def test_no_user(stdout: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        kubelet_user.parse(stdout, 0)


def test_a_real_sed_prints_no_key_and_goes_on_without_a_file(tmp_path: Path) -> None:
    sed = shutil.which("sed")
    assert sed
    (tmp_path / "pem").write_text(NODE)
    _, quiet, blocks, *files = kubelet_user.command.argv
    assert files == list(CLIENT_CERTIFICATES)
    argv = [sed, quiet, blocks, str(tmp_path / "missing"), str(tmp_path / "pem")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert OWN_CERTIFICATE
    assert done.stdout == OWN_CERTIFICATE[0]
    assert kubelet_user.parse(done.stdout, done.returncode) == "system:node:n1"


def test_the_system_uuid() -> None:
    assert system_uuid.parse(f"{UUID}\n", 0) == UUID.lower()
    for stdout, code in (("", 1), ("\n", 0)):
        with pytest.raises(ValueError, match="no DMI product UUID"):
            system_uuid.parse(stdout, code)


def test_a_simulated_host() -> None:
    host = Host()
    code, stdout, stderr = host.run(str(kubelet_user.command))
    assert "PRIVATE" not in stdout
    assert stderr.startswith("sed: can't read /var/lib/rancher/k3s/agent/client-kubelet.crt: No such file or directory")
    assert kubelet_user.parse(stdout, code) == "system:node:w1"
    code, stdout, _ = host.run(str(system_uuid.command))
    uuid = system_uuid.parse(stdout, code)
    assert uuid == host.machine.system_uuid
    assert uuid.replace("-", "") != host.machine.machine_id
    node = host.cluster.registry.store.get("nodes", "", "w1")
    assert node is not None
    assert node["status"]["nodeInfo"]["systemUUID"] == uuid


@pytest.mark.parametrize(
    ("script", "code", "stderr"),
    [
        (f"cat {FILE}", 1, f"cat: {FILE}: Permission denied\n"),
        ("cat /sys/class/dmi/id/product_uuid", 1, "cat: /sys/class/dmi/id/product_uuid: Permission denied\n"),
        (f"sed -n '/A/,/B/p' {FILE}", 2, f"sed: can't read {FILE}: Permission denied\n"),
        ("sed s/a/b/ /etc/hostname", 1, "sed: the lab simulates only sed -n /FROM/,/TO/p FILE...\n"),
    ],
)
def test_files_of_root(script: str, code: int, stderr: str) -> None:
    assert Host().run(script, root=False) == (code, "", stderr)
