"""CPU quota of the kubelet's unit on a simulated host, as systemd 252 shows it."""

from __future__ import annotations

from tests.kit.lab_host import Host

SHOW = "systemctl show --property=CPUQuotaPerSecUSec,DropInPaths,NeedDaemonReload kubelet.service"
FILE = "/run/systemd/system.control/kubelet.service.d/50-CPUQuota.conf"
SET = "systemctl set-property --runtime kubelet.service CPUQuota=0.5%"


def shown(host: Host) -> dict[str, str]:
    return dict(line.split("=", 1) for line in host.run(SHOW)[1].splitlines())


def test_a_quota_ends_when_its_file_is_gone_and_systemd_has_reloaded() -> None:
    host = Host()
    free = {"CPUQuotaPerSecUSec": "infinity", "DropInPaths": "", "NeedDaemonReload": "no"}
    assert shown(host) == free
    assert host.run(SET, root=False)[0] == 1
    assert shown(host) == free
    assert host.run(SET) == (0, "", "")
    limited = {"CPUQuotaPerSecUSec": "5ms", "DropInPaths": FILE, "NeedDaemonReload": "no"}
    assert shown(host) == limited
    assert host.run(f"rm --force {FILE}", root=False)[0] == 1
    assert shown(host) == limited
    for _ in range(2):
        assert host.run(f"rm --force {FILE}") == (0, "", "")
        assert shown(host) in (limited | {"NeedDaemonReload": "yes"}, free)
        assert host.run("systemctl daemon-reload") == (0, "", "")
        assert shown(host) == free


def test_the_kernel_counts_what_the_quota_makes_the_kubelet_wait() -> None:
    host = Host()
    group = host.run("systemctl show --property=ControlGroup kubelet.service")[1].strip().partition("=")[2]
    stat = f"cat /sys/fs/cgroup{group}/cpu.stat"
    assert "throttled_usec 0\n" in host.run(stat)[1]
    host.run(SET)
    host.cluster.sim.run_until(host.cluster.sim.now + 10.0)
    assert "throttled_usec 9950000\n" in host.run(stat)[1]
    host.run("systemctl stop kubelet")
    assert host.run(stat)[0] == 1


def test_other_properties_are_refused() -> None:
    host = Host()
    for words in ("kubelet.service CPUQuota=", "kubelet.service CPUWeight=1", "cron.service CPUQuota=5%"):
        code, _, error = host.run(f"systemctl set-property --runtime {words}")
        assert (code, "the lab simulates only" in error) == (1, True)
    assert "only systemctl set-property --runtime" in host.run("systemctl set-property kubelet.service CPUQuota=5%")[2]
