"""etcd-leader-kill on three real machines, through the real engine.

Real: Debian's etcd 3.4 and etcdctl, a cluster of three members with TLS and kubeadm's paths; mounts, systemd, SSH and
sudo. Stand-ins: for the kubelet, a service that starts etcd while the manifest is a regular file, looks every 3 s where
the kubelet does every 20 s, and has etcd restarted meanwhile; for crictl, a script with the options and the output
of crictl 1.36 that the facts and the action use; for the API server, ``tests.kit.drive``.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.core.errors import Refused
from chaos.faults.readings.etcd import MANIFEST
from tests.kit.drive import drive
from tests.kit.machines import RealHost

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
PKI, SOCKET, UNIT, POD = (
    "/etc/kubernetes/pki/etcd",
    "/run/containerd/containerd.sock",
    "etcd-container",
    "/run/etcd-pod",
)
AUTHORITY = (
    f"mkdir -p {PKI}; cd {PKI}; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
    "-subj /CN=etcd-ca -keyout ca.key -out ca.crt 2>/dev/null; cat ca.crt ca.key"
)
CERTIFICATES = f"""mkdir -p {PKI}; cd {PKI}; cat > ca.key; openssl x509 -in ca.key -out ca.crt
for name in server peer healthcheck-client; do
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=$name -CA ca.crt \\
    -CAkey ca.key -addext subjectAltName=IP:127.0.0.1,IP:ADDRESS -keyout $name.key -out $name.crt 2>/dev/null
done"""
KUBELET = f"""#!/bin/sh
while :; do
  if test -f {MANIFEST}; then
    sed -n 's/^    - //p' {MANIFEST} > {POD}
    systemctl start {UNIT}
  elif test -e {POD}; then
    rm {POD}
    systemctl stop {UNIT}
  fi
  sleep 3
done
"""
CRICTL = f"""#!/bin/sh
[ "$1 $2" = "--runtime-endpoint unix://{SOCKET}" ] || exit 1
echo 'level=warning msg="Config \\"/etc/crictl.yaml\\" does not exist, trying next: \\"/usr/bin/crictl.yaml\\""' >&2
shift 2
id=$(systemctl show --property=InvocationID --value {UNIT})
pod="--label io.kubernetes.pod.namespace=kube-system --label io.kubernetes.pod.name=etcd-$(hostname)"
container="--label io.kubernetes.container.name=etcd --label io.kubernetes.pod.namespace=kube-system"
running() {{ [ "$(systemctl is-active {UNIT})" = active ]; }}
case "$*" in
  "pods --quiet --state Ready $pod") test ! -e {POD} || stat -c %i {POD} ;;
  "ps --quiet --state Running $pod" | "ps --quiet --state Running $container") ! running || echo $id ;;
  "ps --state Running -o json")
    item='{{"id": "'$id'", "createdAt": "'$(stat -c %Y {POD})000000000'", "labels": {{
      "io.kubernetes.container.name": "etcd", "io.kubernetes.pod.name": "etcd-'$(hostname)'",
      "io.kubernetes.pod.namespace": "kube-system", "io.kubernetes.pod.uid": "'$(hostname)'"}}}}'
    running || item=
    echo "{{\\"containers\\": [$item]}}" ;;
  "stop --timeout 0 $id") systemctl kill --signal=KILL {UNIT} && echo $id ;;
  "exec $id etcdctl "*) shift 2; "$@" || exit 1 ;;
  *) echo "crictl: the stand-in does not know $*" >&2; exit 1 ;;
esac
"""
UNITS = {
    UNIT: f"ExecStart=/bin/sh -c 'exec $(cat {POD})'\nRestart=always\nRestartSec=1",
    "static-pods": "ExecStart=/bin/sh /usr/local/bin/static-pods",
    "runtime-socket": f"RuntimeDirectory=containerd\nExecStart=/usr/bin/socat UNIX-LISTEN:{SOCKET},fork EXEC:true",
}
CLEAN = f"""systemctl stop static-pods {UNIT} runtime-socket; umount {MANIFEST} 2>/dev/null
rm -rf {MANIFEST} {PKI} {POD} /var/lib/etcd/member /usr/local/bin/static-pods /usr/local/bin/crictl
cd /etc/systemd/system; rm {" ".join(f"{name}.service" for name in UNITS)}; systemctl daemon-reload"""
ETCDCTL = (
    f"etcdctl --endpoints=https://127.0.0.1:2379 --cacert={PKI}/ca.crt --cert={PKI}/healthcheck-client.crt "
    f"--key={PKI}/healthcheck-client.key"
)


def manifest(host: RealHost, addresses: dict[str, str]) -> str:
    """As kubeadm's, as far as the stand-in reads it."""
    peers = ",".join(f"{name}=https://{address}:2380" for name, address in addresses.items())
    client, peer = f"https://{addresses[host.name]}:2379", f"https://{addresses[host.name]}:2380"
    options = {
        "name": host.name, "data-dir": "/var/lib/etcd", "listen-client-urls": f"https://127.0.0.1:2379,{client}",
        "advertise-client-urls": client, "listen-peer-urls": peer, "initial-advertise-peer-urls": peer,
        "initial-cluster": peers, "client-cert-auth": "true", "peer-client-cert-auth": "true",
        "cert-file": f"{PKI}/server.crt", "key-file": f"{PKI}/server.key", "trusted-ca-file": f"{PKI}/ca.crt",
        "peer-cert-file": f"{PKI}/peer.crt", "peer-key-file": f"{PKI}/peer.key",
        "peer-trusted-ca-file": f"{PKI}/ca.crt",
    }  # fmt: skip
    command = "".join(f"    - --{name}={value}\n" for name, value in options.items())
    return f"kind: Pod\nspec:\n  containers:\n  - command:\n    - etcd\n{command}"


def put(host: RealHost, path: str, text: str, mode: str = "644") -> None:
    host.docker("exec", "-i", host.name, "sh", "-c", f"cat > {path}; chmod {mode} {path}", stdin=text.encode())


def await_true(host: RealHost, script: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while host.run(f"{script} >/dev/null 2>&1 && echo yes", check=False) != "yes":
        assert time.monotonic() < end, f"{host.name}: {script}"
        time.sleep(0.5)


def leader(host: RealHost) -> str:
    """Name of the leader that the member on ``host`` knows, "" for none."""
    members = json.loads(host.run(f"{ETCDCTL} member list -w json"))
    (status,) = json.loads(host.run(f"{ETCDCTL} endpoint status -w json"))
    names = {member["ID"]: str(member["name"]) for member in members["members"]}
    return names.get(status["Status"].get("leader"), "")


def await_other_leader(host: RealHost, former: str) -> None:
    """An election takes a second or two, and a few on a busy machine."""
    end = time.monotonic() + 30.0
    while leader(host) in ("", former):
        assert time.monotonic() < end, f"{former} still leads, as {host.name} sees it"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def members(three: list[RealHost]) -> Iterator[dict[str, RealHost]]:
    addresses = {host.name: host.addresses[0] for host in three}
    authority = three[0].run(AUTHORITY).encode() + b"\n"
    try:
        for host in three:
            script = CERTIFICATES.replace("ADDRESS", addresses[host.name])
            host.docker("exec", "-i", host.name, "sh", "-c", script, stdin=authority)
            put(host, "/usr/local/bin/static-pods", KUBELET, "755")
            put(host, "/usr/local/bin/crictl", CRICTL, "755")
            for name, service in UNITS.items():
                unit = f"[Unit]\nStartLimitIntervalSec=0\n[Service]\n{service}\n"
                put(host, f"/etc/systemd/system/{name}.service", unit)
            host.run(f"mkdir -p {MANIFEST.rpartition('/')[0]}")
            put(host, MANIFEST, manifest(host, addresses), "600")
            host.run("systemctl daemon-reload; systemctl start runtime-socket static-pods")
        for host in three:
            await_true(host, f"{ETCDCTL} endpoint health --cluster")
        yield {host.name: host for host in three}
    finally:
        for host in three:
            host.run(CLEAN, check=False)


def leftovers(host: RealHost) -> str:
    return host.run(
        "systemctl list-units --all --no-legend 'nodefall-*'; systemctl list-timers --all --no-legend 'nodefall-*';"
        " ls /run/systemd/transient | grep nodefall; grep manifests /proc/self/mountinfo",
        check=False,
    )


def test_a_leader_is_killed_another_one_leads_and_it_returns(members: dict[str, RealHost], tmp_path: Path) -> None:
    former = leader(next(iter(members.values())))
    victim, other = members[former], next(host for name, host in members.items() if name != former)
    digest = victim.run(f"sha256sum {MANIFEST}")

    def during(_: object) -> None:
        assert victim.run(f"systemctl is-active {UNIT}", check=False) in ("inactive", "failed")
        await_other_leader(other, former)
        other.run(f"{ETCDCTL} put during {tmp_path.name}")
        victim.run(f"systemd-run --unit=backup sh -c 'exec sleep 200 < {MANIFEST}'")  # has it open
        await_true(victim, f"umount {MANIFEST} 2>&1 | grep busy")

    result = drive(victim, "etcd-leader-kill", {}, tmp_path, then="25s", during=during, recovery="45s")
    victim.run("systemctl stop backup")
    (step,) = result.steps
    assert (step.proof_status, step.weak) == ("proven", False), step.because
    assert "the leader before, has ended" in step.because
    assert [undo.proven for undo in result.undo] == [True], result.leftovers
    assert victim.run(f"sha256sum {MANIFEST}") == digest
    assert leader(victim) not in ("", former)
    assert tmp_path.name in victim.run(f"{ETCDCTL} get during")
    assert not leftovers(victim)


def test_a_follower_is_refused(members: dict[str, RealHost], tmp_path: Path) -> None:
    leads = leader(next(iter(members.values())))
    follower = next(host for name, host in members.items() if name != leads)
    with pytest.raises(Refused, match=f"{follower.name} is not the leader of etcd: {leads} is"):
        drive(follower, "etcd-leader-kill", {}, tmp_path)
    assert leader(follower) == leads


@pytest.mark.nightly
def test_the_leader_of_two_healthy_members_is_refused(members: dict[str, RealHost], tmp_path: Path) -> None:
    leads = leader(next(iter(members.values())))
    ill = next(host for name, host in members.items() if name != leads)
    ill.run(f"systemctl stop static-pods {UNIT}")
    try:
        with pytest.raises(Refused, match="only 1 of 3 voting members of etcd would be healthy"):
            drive(members[leads], "etcd-leader-kill", {}, tmp_path)
    finally:
        ill.run("systemctl start static-pods")
        await_true(ill, f"{ETCDCTL} endpoint health --cluster")
    assert not leftovers(members[leads])


def run_until_killed(host: RealHost, folder: Path) -> None:
    """In a separate process, which is killed while the fault lasts."""

    def during(_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    drive(host, "etcd-leader-kill", {"duration": "1m"}, folder, then="50s", during=during)


@pytest.mark.nightly
def test_a_node_heals_itself_when_the_controller_dies(members: dict[str, RealHost], tmp_path: Path) -> None:
    victim = members[leader(next(iter(members.values())))]
    child = multiprocessing.get_context("spawn").Process(target=run_until_killed, args=(victim, tmp_path))
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    assert "manifests" in leftovers(victim)
    await_true(victim, f"{ETCDCTL} endpoint health", 90.0)
    assert not leftovers(victim)
