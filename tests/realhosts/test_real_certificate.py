"""An expired client certificate on a real machine: real openssl, mounts and systemd, and a kubelet that would exit.

The stand-in for the kubelet has the real one's flags, and does not start with a certificate that has expired.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.core.errors import Refused
from chaos.lab.node.kubelet.apiserver_link import FILE, client_certificate
from tests.kit.drive import drive
from tests.kit.machines import RealHost

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
TARGET = "/var/lib/kubelet/pki/kubelet-client-2026-01-31-10-00-00.pem"
CONFIG, BOOTSTRAP = "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf"
DROP_IN = "/etc/systemd/system/kubelet.service.d/certificate.conf"
STATE = (
    f"systemctl is-active kubelet; readlink {FILE}; stat -Lc '%a %U %G %i' {FILE}; sha256sum {FILE};"
    " ls /run/nodefall* /var/lib/kubelet/pki; grep -c kubelet-client /proc/self/mountinfo"
)
SETUP = f"""mkdir -p /var/lib/kubelet/pki /etc/kubernetes {DROP_IN.rpartition("/")[0]}
umask 077; cat > {TARGET}; ln -sfn {TARGET} {FILE}
printf 'users:\\n- user:\\n    client-certificate: %s\\n    client-key: %s\\n' {FILE} {FILE} > {CONFIG}
cat > {DROP_IN} <<'END'
[Service]
ExecStartPre=/usr/bin/openssl x509 -noout -checkend 0 -in {FILE}
ExecStart=
ExecStart=/usr/local/bin/kubelet --what=shutdown --who=kubelet --mode=delay \\
"--why=Kubelet needs time to handle node shutdown" /bin/sh -c "exec sleep infinity" kubelet \\
--bootstrap-kubeconfig={BOOTSTRAP} --kubeconfig={CONFIG}
END
systemctl daemon-reload; systemctl restart kubelet"""
CLEAN = f"rm -r {DROP_IN} {CONFIG} /var/lib/kubelet/pki; systemctl daemon-reload; systemctl restart kubelet"


@pytest.fixture
def host(three: list[RealHost]) -> Iterator[RealHost]:
    host = three[0]
    # The lab's certificate is valid until 2120, and has a private key.
    host.docker("exec", "-i", host.name, "sh", "-c", SETUP, stdin=client_certificate(host.name).encode())
    try:
        yield host
    finally:
        host.run(CLEAN)


def test_it_is_proven_undone_and_leaves_nothing(host: RealHost, tmp_path: Path) -> None:
    before = host.run(STATE, check=False)
    assert before.startswith("active\n")
    result = drive(host, "certificate-expired", {}, tmp_path)
    (step,) = result.steps
    assert (step.proof_status, step.weak) == ("proven", False), step.because
    assert "has ended" in step.because
    assert [undo.proven for undo in result.undo] == [True], result.leftovers
    assert host.run(STATE, check=False) == before
    assert not host.run("systemctl list-units --all --no-legend 'nodefall-*'")
    log = host.run("journalctl -q -u kubelet -o cat --no-pager")
    assert "Certificate will expire" in log  # the stand-in was started with the certificate, and refused it
    assert "PRIVATE KEY" not in "".join(file.read_text() for file in tmp_path.rglob("*.json*"))


def test_a_file_that_is_open_is_restored_and_the_directory_may_be_a_symbolic_link(
    host: RealHost, tmp_path: Path
) -> None:
    """umount(2) fails with EBUSY while a program, as a backup, has the mounted file open."""
    host.run("systemctl stop kubelet; mv /var/lib/kubelet /srv/kubelet; ln -s /srv/kubelet /var/lib/kubelet")
    host.run("systemctl start kubelet")
    try:
        before = host.run(STATE, check=False)

        def hold(_: object) -> None:
            host.run(f"systemd-run --unit=backup sh -c 'exec sleep 200 < {FILE}'")
            assert "Certificate will expire" in host.run(f"openssl x509 -noout -checkend 0 -in {FILE}", check=False)
            assert "busy" in host.run(f"umount {TARGET} 2>&1", check=False)

        result = drive(host, "certificate-expired", {}, tmp_path, then="8s", during=hold)
        (step,) = result.steps
        assert (step.proof_status, step.weak) == ("proven", False), step.because
        assert [undo.proven for undo in result.undo] == [True], result.leftovers
        assert host.run(STATE, check=False) == before
    finally:
        host.run("systemctl stop backup kubelet; rm /var/lib/kubelet; mv /srv/kubelet /var/lib/kubelet", check=False)
        host.run("systemctl start kubelet")


def test_a_kubelet_that_would_bootstrap_is_refused(host: RealHost, tmp_path: Path) -> None:
    host.run(f"touch {BOOTSTRAP}")
    try:
        with pytest.raises(Refused, match=f"would ask for another certificate with {BOOTSTRAP}"):
            drive(host, "certificate-expired", {}, tmp_path)
    finally:
        host.run(f"rm {BOOTSTRAP}")
    assert host.run("systemctl is-active kubelet") == "active"
