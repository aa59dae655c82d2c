"""What is kept of the output of a failed ``kind create cluster``: kind 0.20 to 0.32 with kubeadm 1.26 to 1.36."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

import pytest

import chaos.cli.kind.diagnosis
from chaos.cli.kind.diagnosis import (
    CGROUP_REMEDY,
    INOTIFY_COMMAND,
    cgroup_warning,
    failure_lines,
    host_warnings,
    inotify_warnings,
    known_cause,
    last_lines,
)
from tests.kit.command_standins import StandIns

START = """Creating cluster "x" ...
 ✓ Ensuring node image (kindest/node:v1.36.2) 🖼
 ✓ Preparing nodes 📦 📦
 ✓ Writing configuration 📜
 ✗ Starting control-plane 🕹️
Deleted nodes: ["x-control-plane"]
"""
STEP = "✗ Starting control-plane 🕹️"
INIT = (
    'ERROR: failed to create cluster: failed to init node with kubeadm: command "docker exec --privileged '
    'x-control-plane kubeadm init --config=/kind/kubeadm.conf --v=6" failed with error: exit status 1'
)
LOG = """Command Output: I0724 07:00:48.103632     164 initconfiguration.go:254] loading configuration from a file
W0724 07:00:48.105696     164 initconfiguration.go:331] [config] WARNING: Ignored YAML document
[init] Using Kubernetes version: v1.36.2
[certs] Generating "ca" certificate and key
"""
POLL = "I0724 07:01:27.646595     164 round_trippers.go:553] GET https://x:6443/healthz  in 0 milliseconds\n"
STACK = """k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/init.runWaitControlPlanePhase
\tk8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/init/waitcontrolplane.go:110
k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow.(*Runner).Run.func1
\tk8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow/runner.go:260
github.com/spf13/cobra.(*Command).execute
\tgithub.com/spf13/cobra@v1.8.1/command.go:985
main.main
\tk8s.io/kubernetes/cmd/kubeadm/kubeadm.go:25
runtime.main
\truntime/proc.go:271
runtime.goexit
\truntime/asm_amd64.s:1695
"""
HEALTH = (
    "The HTTP call equal to 'curl -sSL http://127.0.0.1:10248/healthz' returned error: "
    'Get "http://127.0.0.1:10248/healthz": context deadline exceeded'
)
CHAIN = f"""[kubelet-check] Waiting for a healthy kubelet at http://127.0.0.1:10248/healthz. This can take up to 4m0s
[kubelet-check] The kubelet is not healthy after 4m0.000947s

Unfortunately, an error has occurred, likely caused by:
\t- The kubelet is not running
\t- The kubelet is unhealthy due to a misconfiguration of the node in some way (required cgroups disabled)

If you are on a systemd-powered system, you can try to troubleshoot the error with the following commands:
\t- 'systemctl status kubelet'
\t- 'journalctl -xeu kubelet'
{HEALTH}

failed while waiting for the kubelet to start
{STACK}error execution phase wait-control-plane
{STACK}"""
REFUSED = "dial tcp 172.23.0.5:6443: connect: connection refused"
NO_CLIENT = f"error: error execution phase wait-control-plane: cannot obtain client without bootstrap: {REFUSED}"
GOROUTINE = """goroutine 1 [running, locked to thread]:
runtime/debug.Stack()
\t/usr/local/go/src/runtime/debug/stack.go:26 +0x5e
k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow.(*Runner).Run(0xc0001a2b40, {0xc000110c00, 0x0, 0x4})
\tk8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow/runner.go:236 +0x1d5
panic({0x1c2f8a0, 0x2d3a1f0})
\t/usr/local/go/src/runtime/panic.go:787 +0x132
created by main.start in goroutine 1
\tk8s.io/kubernetes/cmd/kubeadm/start.go:12 +0x1f
...12 frames elided...
"""
PREFLIGHT = """[preflight] Running pre-flight checks
\t[WARNING Swap]: swap is supported for cgroup v2 only.
[preflight] Some fatal errors occurred:
\t[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2
\t[ERROR CRI]: could not connect to the container runtime: connection refused
[preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`
error: error execution phase preflight: preflight checks failed
To see the stack trace of this error execute with --v=5 or higher
"""
CHECKS = [
    "[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2",
    "[ERROR CRI]: could not connect to the container runtime: connection refused",
    "error: error execution phase preflight: preflight checks failed",
]
TAKEN = (
    "docker: Error response from daemon: driver failed programming external connectivity: "
    "Bind for 127.0.0.1:6443 failed: port is already allocated"
)
RUN = 'ERROR: failed to create cluster: command "docker run --name x-control-plane" failed with error: exit status 125'
NO_LINE = 'ERROR: failed to create cluster: could not find a log line that matches "Reached target .*Multi-User.*"'
CONFIG = """ERROR: failed to create cluster: unable to decode config: yaml: unmarshal errors:
  line 3: field rols not found in type v1alpha4.Node
"""
API_DOWN = '"Unhandled Error" err="could not get current server API group list"'
E_LOG = f"E0724 07:02:27.000001     164 memcache.go:265] {API_DOWN}\n"
INOTIFY = f"raise the inotify limits of the machine on which the containers run: {INOTIFY_COMMAND}"
KUBELET = 'kubelet[379]: E0904 05:44:56.290542 379 kubelet.go:1530] "Failed to start cAdvisor" err='
CGROUP = (
    'kubelet[4756]: E1112 12:19:21.474821 4756 run.go:72] "command failed" err="failed to validate kubelet '
    'configuration, error: kubelet is configured to not run on a host using cgroup v1. It is unsupported"'
)
PREPARED = "kubeadmConfigPatches:\n- |\n  kind: KubeletConfiguration\n  failCgroupV1: false\n"
KERNEL = platform.release()
WATCHES = "fs.inotify.max_user_watches is 8192, and kind recommends 524288"
INSTANCES = "fs.inotify.max_user_instances is 128, and kind recommends 512"
INFO = {"stdout": f"1 {KERNEL}\n"}
UNIX = {"stdout": "unix:///var/run/docker.sock\n"}
FAILS: dict[str, object] = {"stderr": "template parsing error", "exit": 1}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param(
            f"{START}{INIT}\n{LOG}{POLL * 400}{CHAIN}",
            [
                INIT,
                "[kubelet-check] The kubelet is not healthy after 4m0.000947s",
                HEALTH,
                "failed while waiting for the kubelet to start",
                "error execution phase wait-control-plane",
            ],
            id="a chain of errors with stacks",
        ),
        pytest.param(f"{START}{INIT}\n{LOG}{NO_CLIENT}\n{STACK}", [INIT, NO_CLIENT], id="kubeadm 1.35 with a stack"),
        pytest.param(f"{INIT}\n{LOG}{NO_CLIENT}\n\n{GOROUTINE}", [INIT, NO_CLIENT], id="a stack of goroutines"),
        pytest.param(f"{INIT}\n{LOG}{PREFLIGHT}", [INIT, *CHECKS], id="preflight"),
        pytest.param(f"{INIT}\nCommand Output: {NO_CLIENT}\n{STACK}", [INIT, NO_CLIENT], id="the output is the error"),
        pytest.param(f"{START}{RUN}\nCommand Output: {TAKEN}\n", [RUN, TAKEN], id="a port is taken"),
        pytest.param(f"{RUN}\nCommand Output: 5d0c\n{TAKEN}\n", [RUN, "5d0c", TAKEN], id="after an ID"),
        pytest.param(f"{START}{NO_LINE}\n", [NO_LINE], id="only an error of kind"),
        pytest.param(f"{NO_LINE}\nStack Trace: \n{STACK}", [NO_LINE], id="a stack of kind"),
        pytest.param(CONFIG, [" ".join(line.split()) for line in CONFIG.splitlines()], id="an error of two lines"),
        pytest.param(f"{INIT}\n{LOG}{E_LOG * 90}", [INIT, API_DOWN], id="logged errors, where kubeadm prints no other"),
        pytest.param(f"{INIT}\n{LOG}{E_LOG * 90}{NO_CLIENT}\n", [INIT, NO_CLIENT], id="logged errors beside another"),
        pytest.param(f"{INIT.replace('ERROR', chr(27) + '[31mERROR')}{chr(27)}[0m\n", [INIT], id="colors"),
        pytest.param(f"{INIT}\n{NO_CLIENT}\n{STACK}".replace("\n", "\r\n"), [INIT, NO_CLIENT], id="line ends"),
        pytest.param(f"{START}the provider died\n", [STEP, "the provider died"], id="no error line"),
        pytest.param(START, [STEP], id="progress only"),
        pytest.param(STACK, [" ".join(line.split()) for line in STACK.splitlines()], id="a stack only"),
        pytest.param("", [], id="nothing"),
        pytest.param("error: \ufffd\x00bad\u202e\n", ["error: \ufffd\\x00bad\\u202e"], id="what is no text"),
    ],
)  # fmt: skip
def test_which_lines_say_why(output: str, expected: list[str]) -> None:
    assert failure_lines(output.split("\n")) == expected


def test_many_errors_keep_the_first_and_the_last() -> None:
    shown = failure_lines([INIT, *(f"error: {number}" for number in range(500))])
    assert shown == [INIT, "error: 0", "...", *(f"error: {number}" for number in range(490, 500))]


def test_long_lines_are_cut() -> None:
    (shown,) = failure_lines(["error: " + "x" * 5000])
    assert len(shown) == 600


def test_huge_and_hostile_output_takes_little_time() -> None:
    lines = [*["a.b " * 1000, "[" * 4000, "[a-check" * 500, "\t" * 4000, "goroutine 1 [" * 300] * 40, *[POLL] * 10_000]
    start = time.process_time()
    failure_lines(lines)
    assert time.process_time() - start < 10


def test_the_end_of_other_output() -> None:
    lines = [f"#{number} RUN apt-get" for number in range(30)]
    assert last_lines(["", *lines, " ", "\t"]) == lines[-15:]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("\x1b[0;1;31mFailed to create control group inotify object: Too many open files\x1b[0m", INOTIFY),
        ("Failed to allocate manager object: Too many open files", INOTIFY),
        (f'{KUBELET}"inotify_init: too many open files"', INOTIFY),
        (f'{KUBELET}"inotify_add_watch /sys/fs/cgroup/kubelet.slice: no space left on device"', INOTIFY),
        (CGROUP, CGROUP_REMEDY),
        ("write /var/lib/etcd/member: no space left on device", None),
        ("Reached target Multi-User System.", None),
        ("Failed to set 'blkio.weight' attribute: Invalid argument", None),
    ],
)
def test_known_causes(line: str, hint: str | None) -> None:
    found = known_cause(["Welcome to Debian GNU/Linux 13 (trixie)!", line, "Exiting PID 1..."])
    assert (found.hint if found else None) == hint
    assert found is None or found.line == " ".join(line.replace("\x1b[0;1;31m", "").replace("\x1b[0m", "").split())


@pytest.mark.parametrize(
    ("version", "kubelet", "config", "warns"),
    [
        ("1", "v1.36.2", "", True),
        ("v1", "v1.35.0", "", True),  # as podman says
        ("1", "v1.34.9", "", False),
        ("1", "v2.0.0", "", True),
        ("2", "v1.36.2", "", False),
        ("v2", "v1.36.2", "", False),
        ("", "v1.36.2", "", False),
        ("1", "kindest/node:v1.36.2", "", True),
        ("1", "registry.example:5000/kindest/node:v1.36.2@sha256:0a1b", "", True),
        ("1", "kindest/node:v1.33.1", "", False),
        ("1", "registry.example:5000/node", "", False),  # an unknown version
        ("1", "mine:latest", "", False),
        ("1", "v1.36.2", PREPARED, False),
        ("1", "v1.36.2", PREPARED.replace("false", "true"), True),
    ],
)
def test_kubelets_on_cgroup_v1(version: str, kubelet: str, config: str, warns: bool) -> None:
    shown = cgroup_warning(version, kubelet, config)
    expected = f"the kubelet of {kubelet} does not start on cgroup v1, which the containers use: {CGROUP_REMEDY}"
    assert shown == (expected if warns else "")


@pytest.mark.parametrize(
    ("watches", "instances", "expected"),
    [
        ("8192\n", "128\n", [WATCHES, INSTANCES]),
        ("524288\n", "512\n", []),
        ("524287\n", "1024\n", [WATCHES.replace("8192", "524287")]),
        (None, "128\n", [INSTANCES]),
        ("", "no number", []),
    ],
)
def test_limits_of_inotify(tmp_path: Path, watches: str | None, instances: str | None, expected: list[str]) -> None:
    write_limits(tmp_path, watches, instances)
    found = list(inotify_warnings(tmp_path))
    assert [warning.partition(":")[0] for warning in found] == expected
    assert all(f"sudo sysctl {warning.split()[0]}=" in warning for warning in found)


def write_limits(proc: Path, watches: str | None, instances: str | None) -> None:
    folder = proc / "fs" / "inotify"
    folder.mkdir(parents=True)
    for name, value in (("max_user_watches", watches), ("max_user_instances", instances)):
        if value is not None:
            (folder / name).write_text(value)


@pytest.mark.parametrize(
    ("engine", "info", "context", "environ", "expected"),
    [
        ("docker", INFO, UNIX, {}, 3),
        ("docker", INFO, FAILS, {}, 3),
        ("docker", INFO, FAILS, {"DOCKER_HOST": "unix:///run/user/1000/docker.sock"}, 3),
        ("docker", INFO, UNIX, {"DOCKER_HOST": "tcp://192.0.2.1:2376"}, 1),
        ("docker", INFO, UNIX, {"DOCKER_HOST": "ssh://ops@192.0.2.1"}, 1),
        ("docker", INFO, {"stdout": "ssh://ops@192.0.2.1\n"}, {}, 1),
        ("docker", INFO, UNIX, {"CONTAINER_HOST": "ssh://ops@192.0.2.1"}, 3),
        ("docker", {"stdout": "1 6.12.5-linuxkit\n"}, UNIX, {}, 1),  # a virtual machine
        ("docker", {"stdout": f"2 {KERNEL}\n"}, UNIX, {}, 2),
        ("docker", {"stdout": f" {KERNEL}\n"}, UNIX, {}, 0),  # an old engine
        ("docker", FAILS, UNIX, {}, 0),
        ("podman", {"stdout": f"v1 {KERNEL}\n"}, UNIX, {}, 3),
        ("podman", {"stdout": f"v1 {KERNEL}\n"}, UNIX, {"CONTAINER_HOST": "ssh://ops@192.0.2.1"}, 1),
        ("podman", {"stdout": f"v1 {KERNEL}\n"}, UNIX, {"DOCKER_HOST": "ssh://ops@192.0.2.1"}, 3),
        ("missing", INFO, UNIX, {}, 0),
    ],
)
def test_limits_of_this_machine_count_only_for_its_own_engine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    info: dict[str, object],
    context: dict[str, object],
    environ: dict[str, str],
    expected: int,
) -> None:
    standins = StandIns(tmp_path, {"docker info": info, "docker context inspect": context, "podman info": info})
    standins.install("docker", "podman")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}" if engine != "missing" else str(tmp_path / "empty"))
    write_limits(tmp_path / "proc", "8192", "128")
    monkeypatch.setattr(chaos.cli.kind.diagnosis, "_PROC", tmp_path / "proc")
    name = "docker" if engine == "missing" else engine
    assert len(host_warnings(name, "v1.36.2", tmp_path / "missing.yaml", environ)) == expected
