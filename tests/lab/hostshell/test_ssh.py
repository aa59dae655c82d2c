"""Hosts over SSH: output of the programs, armed commands, power."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from typing import Any

import paramiko
import pytest

from chaos.core.fact import HostFact
from chaos.faults.readings.identity import boot_id, machine_id, pid1_start
from chaos.faults.readings.logind import inhibitor_kubelet, inhibitor_locks, preparing_for_shutdown, scheduled_shutdown
from chaos.faults.readings.units import failsafe_timers, kubelet_unit, systemd_version
from chaos.machines.sessions.script import armed_argv, framed_argv, login_line

pytestmark = pytest.mark.lab
LOGIND = "org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
NOTHING = '(st) "" 18446744073709551615'


@pytest.mark.parametrize(
    ("command", "code", "stdout", "stderr"),
    [
        ("true", 0, "", ""),
        ("false", 1, "", ""),
        ("echo a 'b  c' \"d $0\"", 0, "a b  c d bash\n", ""),
        ("false || echo no && echo yes; echo $?", 0, "no\nyes\n0\n", ""),
        ("X=1; echo ${X}2 \\$X '$X'", 0, "12 $X $X\n", ""),
        ("nosuch --help", 127, "", "bash: 1: nosuch: not found\n"),
        ("sudo -n -- nosuch", 1, "", "sudo: nosuch: command not found\n"),
        ("sudo -n nosuch 2>/dev/null", 1, "", ""),
        ("whoami; sudo -n whoami; sudo -n -u root -- /usr/bin/whoami", 0, "chaos\nroot\nroot\n", ""),
        (
            "X=1; (X=2; echo $X; exit 3); echo $? $X; eval 'X=4; echo $X'; (exec echo a) && printf 'b\\041%s%%\\n' c",
            0,
            "2\n3 1\n4\na\nb!c%\n",
            "",
        ),
        ("sh -c 'echo $0 $1 $#; exec echo \"$@\"; echo never' name 'a b' c", 0, "name a b 2\na b c\n", ""),
        ("ls | wc", 2, "", "bash: 1: Syntax error: '|' is not simulated\n"),
        ("echo (date)", 2, "", "bash: 1: Syntax error: '(' is not simulated\n"),
        ("if true; then echo; fi", 2, "", "bash: 1: Syntax error: 'if' is not simulated\n"),
        ("sysctl -n vm.swappiness; sudo -n sysctl -w vm.swappiness=10", 0, "60\nvm.swappiness = 10\n", ""),
        ("sysctl vm.swappiness; cat /proc/sys/vm/swappiness", 0, "vm.swappiness = 10\n10\n", ""),
        ("sysctl -w vm.swappiness=1", 255, "", 'sysctl: permission denied on key "vm.swappiness"\n'),
        ("sysctl vm.nope", 255, "", "sysctl: cannot stat /proc/sys/vm/nope: No such file or directory\n"),
        ("sudo -n systemctl stop cron.service; systemctl is-active cron.service", 3, "inactive\n", ""),
        ("sudo -n systemctl start cron.service; systemctl is-active cron.service", 0, "active\n", ""),
        ("cat /etc/hostname /nope", 1, "w1\n", "cat: /nope: No such file or directory\n"),
        ("hostname; uname; uname -n; id -u; sudo id -u", 0, "w1\nLinux\nw1\n1000\n0\n", ""),
        ("systemctl is-active kubelet nope", 0, "active\ninactive\n", ""),
        ("systemctl is-active nope", 3, "inactive\n", ""),
        ("systemctl poweroff", 1, "", "Failed to power off system via logind: Interactive authentication required.\n"),
        ("systemctl frobnicate", 1, "", "Unknown command verb frobnicate.\n"),
        ("systemctl --frob", 1, "", "systemctl: unrecognized option '--frob'\n"),
        ("sudo -n systemctl stop x.timer", 5, "", "Failed to stop x.timer: Unit x.timer not loaded.\n"),
        ("sudo -n systemctl restart nope", 5, "", "Failed to restart nope.service: Unit nope.service not found.\n"),
        (f"busctl get-property {LOGIND} ScheduledShutdown PreparingForShutdown", 0, f"{NOTHING}\nb false\n", ""),
        (f"busctl --json=short get-property {LOGIND} PreparingForShutdown", 0, '{"type":"b","data":false}\n', ""),
        (f"busctl get-property {LOGIND} InhibitDelayMaxUSec", 0, "t 30000000\n", ""),
        ("busctl emit /x y PrepareForShutdown b true", 1, "", None),
        ("systemd-detect-virt --container", 1, "none\n", ""),
        ("sudo shutdown -c", 0, "", ""),
        ("sudo shutdown -P noon", 1, "", "Failed to parse time specification: noon\n"),
        ("shutdown --show", 1, "", "No scheduled shutdown.\n"),
    ],
)
def test_commands(shared: Any, command: str, code: int, stdout: str, stderr: str | None) -> None:
    ran = shared.run("w1", command)
    assert (ran.code, ran.stdout) == (code, stdout)
    assert stderr is None or ran.stderr == stderr


def test_the_facts_that_nodefall_reads(shared: Any) -> None:
    def read(fact: HostFact) -> Any:
        ran = shared.run("w1", shlex.join(fact.command.argv))
        return fact.parse(ran.stdout, ran.code)

    with shared.clock.participant():
        assert shared.clock.sleep(2)
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", read(boot_id))
    assert re.fullmatch(r"[0-9a-f]{32}", read(machine_id))
    assert read(kubelet_unit) == "kubelet.service"
    assert read(inhibitor_kubelet) is True
    lock = {"who": "kubelet", "what": "shutdown", "mode": "delay", "why": "Kubelet needs time to handle node shutdown"}
    assert read(inhibitor_locks) == [lock]
    assert read(systemd_version) == 252
    assert read(scheduled_shutdown) == NOTHING
    assert read(preparing_for_shutdown) == "b false"
    assert read(failsafe_timers) == []
    assert abs(read(pid1_start) - 1_795_000_000) <= 1


def test_an_armed_command_waits_for_input(shared: Any) -> None:
    command = login_line(armed_argv(["echo", "fired $x", "twice"], "mark-1"), "mark-1", ["sudo", "-n", "--"])
    with shared.clock.participant():
        into, out, _ = shared.ssh("w1").exec_command(command, timeout=20)
        assert shared.clock.sleep(5)  # an armed command does not hold time
        fired = shared.clock.now()
        into.write("go\n")
        *ready, began, said, end = out.read().decode().splitlines()
    assert float(began) == pytest.approx(fired, abs=1e-5)
    assert (ready, said, end) == (["mark-1 shell", "mark-1 ready "], "fired $x twice", "mark-1 0")
    unreleased = shared.run("w1", command).stdout.splitlines()
    assert unreleased == ["mark-1 shell", "mark-1 ready "]  # the end of input does not release the command


@pytest.mark.parametrize(
    ("argv", "sudo", "code", "stdout"),
    [
        (("whoami",), ("sudo", "-n", "--"), 0, "root\n"),
        (("whoami",), (), 0, "chaos\n"),
        (("false",), (), 1, ""),
        (("nosuch",), ("sudo", "-n", "--"), 127, ""),
        (("sh", "-c", 'echo "$0|$1"; exit 3', "it's", "a\n!b  %s \\ é"), (), 3, "it's|a\n!b  %s \\ é\n"),
    ],
)
def test_a_framed_command(shared: Any, argv: tuple[str, ...], sudo: tuple[str, ...], code: int, stdout: str) -> None:
    ran = shared.run("w1", login_line(framed_argv(argv, "mark-1"), "mark-1", sudo))
    assert ran.stdout == f"mark-1 shell\nmark-1 ready\n{stdout}mark-1 {code}\n"
    assert ran.stderr.startswith("mark-1 shell\nmark-1 ready\n")
    assert ran.stderr.endswith(f"mark-1 {code}\n")
    assert ran.code == code


def test_a_sleep_on_a_host_lets_time_pass_for_an_awake_caller(shared: Any) -> None:
    with shared.clock.participant():
        before = shared.clock.now()
        assert shared.run("w1", "date +%s && sleep 30 && date +%s").stdout == f"{int(before)}\n{int(before + 30)}\n"
        assert shared.clock.now() == pytest.approx(before + 30, abs=1e-5)


def test_concurrent_sleeps_take_the_time_of_one(shared: Any) -> None:
    with shared.clock.participant():
        before = shared.clock.now()
        assert shared.run("w1", "sleep 30 & sh -c 'sleep 20; date +%s' & wait").stdout == f"{int(before + 20)}\n"
        assert shared.clock.now() == pytest.approx(before + 30, abs=1e-5)


def test_a_transient_timer_fires_in_time(shared: Any) -> None:
    plant = "sudo -n systemd-run --on-active=40s --timer-property=AccuracySec=100ms --unit=nodefall-t shutdown -c"
    scheduled = f"busctl get-property {LOGIND} ScheduledShutdown"
    with shared.clock.participant():
        planted = shared.run("w1", plant)
        assert planted.code == 0
        assert (
            planted.stderr == "Running timer as unit: nodefall-t.timer\nWill run service as unit: nodefall-t.service\n"
        )
        assert shared.run("w1", plant).code == 1
        show = shared.run("w1", "systemctl show -p NextElapseUSecMonotonic --value nodefall-t.timer").stdout
        assert re.fullmatch(r"((\d+h )?\d+min )?\d+\.\d{6}s\n", show)
        at = shared.clock.now()
        ran = shared.run("w1", "sudo -n shutdown -P +1")
        assert ran.code == 0
        assert re.fullmatch(
            r"Shutdown scheduled for \w{3} [\d-]+ [\d:]+ UTC, use 'shutdown -c' to cancel\.\n", ran.stderr
        )
        kind, usec = shared.run("w1", scheduled).stdout.split()[1:]
        assert kind == '"poweroff"'
        assert int(usec) / 1e6 == pytest.approx(at + 60, abs=1e-3)
        assert shared.clock.sleep(39.9)
        assert (
            shared.run("w1", failsafe_timers_command()).stdout == "nodefall-t.timer loaded active waiting shutdown -c\n"
        )
        assert shared.clock.sleep(0.3)
        assert shared.run("w1", scheduled).stdout == NOTHING + "\n"
        assert shared.run("w1", failsafe_timers_command()).stdout == ""
        assert shared.clock.sleep(30)
    assert shared.redfish("GET", "w1")[1]["PowerState"] == "On"


def failsafe_timers_command() -> str:
    return shlex.join(failsafe_timers.command.argv)


def test_a_stopped_timer_does_not_fire(shared: Any) -> None:
    assert shared.run("w1", "sudo systemd-run --on-active=20 --unit=nodefall-s systemctl poweroff").code == 0
    assert shared.run("w1", "sudo -n systemctl stop nodefall-s.timer").code == 0
    shared.wait(90)
    assert shared.redfish("GET", "w1")[1]["PowerState"] == "On"


def test_inhibitors_as_busctl_prints_them(shared: Any) -> None:
    shared.wait(1)
    call = f"call {LOGIND} ListInhibitors"
    why = "Kubelet needs time to handle node shutdown"
    plain = shared.run("w1", f"busctl {call}").stdout
    assert re.fullmatch(rf'a\(ssssuu\) 1 "shutdown" "kubelet" "{why}" "delay" 0 \d+\n', plain)
    found = json.loads(shared.run("w1", f"busctl --json=short {call}").stdout)
    assert (found["type"], found["data"][0][0][:4]) == ("a(ssssuu)", ["shutdown", "kubelet", why, "delay"])
    table = shared.run("w1", "systemd-inhibit --list").stdout.splitlines()
    assert table[0].split() == ["WHO", "UID", "USER", "PID", "COMM", "WHAT", "WHY", "MODE"]
    assert table[-1] == "1 inhibitors listed."


def test_only_the_right_key_and_user_log_in(shared: Any) -> None:
    host = shared.host("w1")
    for user, key in (("root", paramiko.PKey.from_path(host["identityFile"])), ("chaos", paramiko.ECDSAKey.generate())):
        client = paramiko.SSHClient()
        client.load_host_keys(shared.facts["knownHosts"])
        with pytest.raises(paramiko.AuthenticationException):
            client.connect(
                host["address"],
                host["port"],
                user,
                pkey=key,
                allow_agent=False,
                look_for_keys=False,  # words: keep
            )
        client.close()


def connect_refused(lab: Any, node: str) -> bool:
    lab.forget(node)
    try:
        lab.ssh(node)
    except paramiko.ssh_exception.NoValidConnectionsError:
        return True
    return False


def test_power_off_and_on(make_lab: Callable[..., Any]) -> None:
    lab = make_lab("--pace", "100")
    with lab.clock.participant():
        assert lab.clock.sleep(2)
        first = lab.run("w1", "cat /proc/sys/kernel/random/boot_id /etc/machine-id").stdout.split()
        assert lab.run("w1", "sudo -n systemctl poweroff").code == 0
        assert lab.run("w1", f"busctl get-property {LOGIND} PreparingForShutdown").stdout == "b true\n"
        again = lab.run("w1", "sudo -n systemctl poweroff")
        assert (again.code, "already a shutdown or sleep operation" in again.stderr) == (1, True)
        assert lab.clock.sleep(45)
        assert not lab.ssh("w1").get_transport().is_active()
        assert connect_refused(lab, "w1")
        assert not connect_refused(lab, "w2")
        assert lab.redfish("GET", "w1")[1]["PowerState"] == "Off"
        assert lab.redfish("POST", "w1", "ForceOff")[0] == 409
        assert lab.redfish("POST", "w1", "On")[0] == 204
        assert lab.redfish("POST", "w1", "On")[0] == 409
        assert connect_refused(lab, "w1")  # still booting
        assert lab.clock.sleep(30)
        second = lab.run("w1", "cat /proc/sys/kernel/random/boot_id /etc/machine-id").stdout.split()
    assert second[1] == first[1]
    assert second[0] != first[0]


def test_a_restart_of_the_kubelet_in_a_shutdown_is_canceled_by_it(make_lab: Callable[..., Any]) -> None:
    """The restart releases the lock that delayed the shutdown; its transaction takes the place of the restart's job."""
    lab = make_lab("--pace", "100")
    with lab.clock.participant():
        assert lab.clock.sleep(2)
        assert lab.run("w1", "sudo -n systemctl poweroff").code == 0
        answer = lab.run("w1", "sudo -n systemctl restart kubelet")
        assert (answer.code, answer.stderr) == (1, "Job for kubelet.service canceled.\n")
        assert lab.clock.sleep(3)
        assert lab.redfish("GET", "w1")[1]["PowerState"] == "Off"
        assert lab.redfish("POST", "w1", "On")[0] == 204
        assert lab.clock.sleep(30)
        lab.forget("w1")
        assert lab.run("w1", "systemctl is-active kubelet").stdout == "active\n"


def test_a_power_cut_ends_running_commands(make_lab: Callable[..., Any]) -> None:
    lab = make_lab()
    _, out, _ = lab.ssh("w1").exec_command("sleep 1000", timeout=20)
    assert lab.redfish("POST", "w1", "ForceOff")[0] == 204
    assert out.channel.recv_exit_status() == -1
    assert connect_refused(lab, "w1")


def test_redfish_refusals(shared: Any) -> None:
    assert shared.redfish("GET", "w1", Authorization="Basic eDp5")[0] == 401
    assert shared.redfish("POST", "w1", "Nonsense")[0] == 400
    root = shared.host("w1")["power"]["url"].partition("/Systems")[0]
    for url in (root, root + "/"):
        assert json.loads(shared.http.request("GET", url).data)["Systems"] == {"@odata.id": "/redfish/v1/Systems"}


def kubelet(lab: Any, path: str, token: str = "") -> tuple[int, str]:
    port = lab.api("GET", "/api/v1/nodes/w2")[1]["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    headers = {"Authorization": f"Bearer {token or lab.facts['token']}"}
    answer = lab.http.request("GET", f"https://127.0.0.1:{port}{path}", headers=headers)
    return answer.status, answer.data.decode()


def test_the_kubelets_port(make_lab: Callable[..., Any]) -> None:
    lab = make_lab()
    status, text = kubelet(lab, "/metrics")
    assert status == 200
    assert "kubelet_graceful_shutdown_start_time_seconds 0\n" in text
    assert json.loads(kubelet(lab, "/configz")[1])["kubeletconfig"]["shutdownGracePeriod"] == "30s"
    assert json.loads(kubelet(lab, "/pods")[1])["kind"] == "PodList"
    assert kubelet(lab, "/nope")[0] == 404
    assert kubelet(lab, "/metrics", "wrong")[0] == 401
    assert lab.run("w2", "sudo -n systemctl stop kubelet").code == 0
    with pytest.raises(Exception, match="refused"):
        kubelet(lab, "/metrics")
    assert lab.run("w2", "systemctl is-active kubelet").stdout == "inactive\n"
    with lab.clock.participant():
        assert lab.run("w2", "sudo -n systemctl restart kubelet").code == 0
        assert lab.run("w2", "systemctl is-active kubelet").stdout == "active\n"
    assert kubelet(lab, "/healthz") == (200, "ok")
