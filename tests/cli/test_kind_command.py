"""``nodefall kind`` with stand-ins for kind and docker, with the output of the real ones; the cluster is a lab."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import chaos.cli.kind.up
from chaos.api import Lab
from chaos.cli.app import cli
from chaos.cli.complete import experiment_path
from chaos.cli.kind.tools import PROVIDER, Tools, find_tools
from chaos.cli.kind.up import RETAIN_HINT, UpOptions, down, up
from chaos.core.duration import parse_duration
from chaos.core.errors import NodefallError, Refused, UsageError
from chaos.core.inventory import Inventory
from chaos.documents.inventory import load_inventory
from tests.kit.command_standins import StandIns
from tests.kit.kindcluster import KindCluster, described
from tests.kit.processes import until

ROOT = Path(__file__).parents[2]
NODES = ["control-plane", "worker-1", "worker-2"]
CREATING = 'Creating cluster "x" ...\n • Ensuring node image (localhost/nodefall-kind:v1) 🖼  ...\n'
FAILED = "ERROR: failed to create cluster: failed to init node with kubeadm: exit status 1\n"
CLASH = 'ERROR: failed to create cluster: node(s) already exist for a cluster with the name "x"\n'
IMAGE_ID = "docker image inspect --format {{.Id}}"
NO_IMAGE = {"stderr": "Error: No such image\n", "exit": 1}
NO_DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n"


@pytest.fixture
def standins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIns:
    """No cluster exists, and the image is built."""
    result = StandIns(tmp_path / "bin")
    result.folder.mkdir()
    result.answers = {
        "docker ps": {},
        "docker info": {"stdout": f"2 {platform.release()}\n"},
        "docker context inspect": {"stdout": "unix:///var/run/docker.sock\n"},
        "docker image inspect": {"stdout": "sha256:0123\n"},
        "docker logs": {"stdout": "Welcome to Debian GNU/Linux 13 (trixie)!\r\n"},
        "docker exec": {},
        "docker update": {},
        "docker build": {"stderr": "#1 [internal] load build definition from Dockerfile\n"},
        "kind get clusters": {"stderr": "No kind clusters found.\n"},
        "kind get nodes": {"stdout": "".join(f"{node}\n" for node in reversed(NODES))},
        "kind create cluster": {"stderr": CREATING + FAILED, "exit": 1},
        "kind delete cluster": {"stderr": 'Deleting cluster "x" ...\n'},
    }
    result.install("kind", "docker")
    monkeypatch.setenv("PATH", f"{result.folder}:{os.environ['PATH']}")
    for name in (PROVIDER, "DOCKER_HOST", "CONTAINER_HOST"):
        monkeypatch.delenv(name, raising=False)
    return result


@pytest.fixture
def options(tmp_path: Path) -> UpOptions:
    return UpOptions("x", tmp_path / "x.yaml")


def existing_files(options: UpOptions) -> list[bool]:
    return [options.out.exists(), options.kubeconfig.exists()]


@pytest.mark.parametrize(
    ("installed", "provider", "engine"),
    [
        (["kind", "docker", "podman"], None, "docker"),
        (["kind", "podman"], None, "podman"),
        (["kind", "docker", "podman"], "podman", "podman"),
        (["docker"], None, "cannot find the program kind"),
        (["kind"], None, "program docker nor podman is not installed"),
        (["kind", "docker"], "podman", "program podman is not installed"),
        (["kind", "docker"], "nerdctl", "unsupported KIND_EXPERIMENTAL_PROVIDER=nerdctl"),
    ],
)
def test_which_programs(installed: list[str], provider: str | None, engine: str) -> None:
    environ = {PROVIDER: provider} if provider else {}
    which: Callable[[str], str | None] = lambda name: name if name in installed else None  # noqa: E731
    if engine in ("docker", "podman"):
        assert find_tools(environ, which) == Tools(engine)
    else:
        with pytest.raises(Refused, match=engine):
            find_tools(environ, which)


@pytest.mark.lab
def test_up_and_down(standins: StandIns, options: UpOptions) -> None:
    output: list[str] = []
    with Lab(workers=2, speed=20) as lab:
        kubeconfig = options.out.with_name("lab.kubeconfig")
        kubeconfig.write_text(with_context(lab.kubeconfig.read_text(), "kind-x"))
        standins.answers["kind create cluster"] = {"stderr": CREATING, "kubeconfig": str(kubeconfig)}
        standins.override({f"{IMAGE_ID} localhost/nodefall-kind": NO_IMAGE})
        result = up(options, Tools("docker"), output.append)
    assert result["nodes"] == NODES
    assert 'Creating cluster "x" ...' in output
    (built,) = standins.calls("docker build")
    assert "--build-arg=NODE=kindest/node:v1.36.2" in built
    (created,) = standins.calls("kind create cluster")
    assert created[0] == "docker"
    assert "--retain" in created, "the logs of the containers are read before they are deleted"
    assert standins.calls("docker logs") == standins.calls("docker pull") == []
    assert f"--config={ROOT / 'hosts' / 'kind' / 'cluster.yaml'}" in created
    assert [call[-1] for call in standins.calls("docker update --restart=no")] == NODES
    inventory = load_inventory(options.out)
    assert (inventory.defaults.transport, inventory.defaults.engine) == ("docker", "docker")
    assert inventory.cluster is not None
    assert (inventory.cluster.kubeconfig, inventory.cluster.context) == (str(options.kubeconfig), "kind-x")
    assert inventory.cluster.expect_uid
    assert {name: host.power and host.power.kind for name, host in inventory.hosts.items()} == dict.fromkeys(
        NODES, "docker"
    )
    assert all(host.address is None for host in inventory.hosts.values()), "addresses change with each start"
    standins.answers["kind get clusters"] = {"stdout": "other\nx\n"}
    standins.save()
    with pytest.raises(UsageError, match="already exists"):
        up(options, Tools("docker"), output.append)
    assert down(options, Tools("docker"))
    assert existing_files(options) == [False, False]
    assert len(standins.calls("kind delete cluster --name=x")) == 1
    with pytest.raises(Refused, match="the kind cluster 'x' already exists"):
        up(options, Tools("docker"), output.append)


def with_context(kubeconfig: str, context: str) -> str:
    """The kubeconfig as kind writes it: with one context, named after the cluster."""
    document = yaml.safe_load(kubeconfig)
    document["contexts"][0]["name"] = document["current-context"] = context
    return str(yaml.safe_dump(document))


def test_down_without_a_cluster_removes_only_generated_files(standins: StandIns, options: UpOptions) -> None:
    options.out.write_text("# mine\n")
    assert not down(options, Tools("docker"))
    assert options.out.exists()
    assert standins.calls("kind delete") == []


@pytest.mark.parametrize(
    ("answers", "message", "deleted"),
    [
        ({}, "failed to init node with kubeadm", 1),
        ({"kind create cluster": {"stderr": CLASH, "exit": 1}}, "the kind cluster 'x' already exists", 0),
        ({"docker ps": {"stderr": NO_DAEMON, "exit": 1}}, "Cannot connect to the Docker daemon", 0),
        (
            {f"{IMAGE_ID} localhost/": NO_IMAGE, "docker build": {"stderr": "no such host\n", "exit": 1}},
            "docker build .*no such host",
            0,
        ),
        (
            {"docker image inspect": NO_IMAGE, "docker pull": {"stderr": "manifest unknown\n", "exit": 1}},
            "docker pull kindest/node:v1.36.2: manifest unknown",
            0,
        ),
        ({"docker image inspect": NO_IMAGE, "docker pull": {}}, "no image, although it was pulled", 0),
        (
            {"kind delete cluster": {"stderr": "ERROR: failed to delete nodes\n", "exit": 1}},
            "kubeadm.*; and cannot delete the incomplete cluster: .*failed to delete nodes",
            1,
        ),
        ({"kind create cluster": {"exit": 0}}, "x.kubeconfig", 1),  # there is nothing to connect to
    ],
)
def test_a_failed_creation_leaves_nothing(
    standins: StandIns, options: UpOptions, answers: dict[str, dict[str, object]], message: str, deleted: int
) -> None:
    standins.override(answers)
    with pytest.raises(NodefallError, match=message):
        up(options, Tools("docker"), lambda _: None)
    assert len(standins.calls("kind delete cluster --name=x")) == deleted
    assert existing_files(options) == [False, False]


SYSCTL = "sudo sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512"
NO_INOTIFY = "Failed to allocate manager object: Too many open files"
NO_CADVISOR = 'E0904 05:44:56 kubelet.go:1530] "Failed to start cAdvisor" err="inotify_init: too many open files"'
NOT_UTF8 = "\udcff\x1b[31m"  # as surrogateescape reads it


@pytest.mark.parametrize(
    ("answers", "line", "hint"),
    [
        ({}, "", RETAIN_HINT),
        ({"docker logs": {"stdout": f"Welcome!\r\n{NO_INOTIFY}\r\n"}}, f"control-plane: {NO_INOTIFY}", SYSCTL),
        ({"docker logs --tail=500 worker-2": {"stdout": NO_INOTIFY}}, f"worker-2: {NO_INOTIFY}", SYSCTL),
        ({"docker exec": {"stdout": f"{NO_CADVISOR}\n" * 500}}, f"control-plane: {NO_CADVISOR}", SYSCTL),
        ({"docker logs": {"stdout": f"{NOT_UTF8}\n{NO_INOTIFY}"}}, f"control-plane: {NO_INOTIFY}", SYSCTL),
        ({"docker logs": {"exit": 1, "stderr": "no such container"}}, "", RETAIN_HINT),
        ({"kind get nodes": {"exit": 1, "stderr": "ERROR: no daemon"}}, "", RETAIN_HINT),
        ({"kind get nodes": {"stderr": "No kind nodes found for cluster.\n"}}, "", RETAIN_HINT),
        ({"kind create cluster": {"stderr": f"{FAILED}error: {NO_INOTIFY}\n", "exit": 1}}, "", SYSCTL),
        ({"kind create cluster": {"exit": 0}, "docker logs": {"stdout": NO_INOTIFY}}, NO_INOTIFY, SYSCTL),
    ],
)
def test_known_causes_in_the_logs_of_nodes_are_named(
    standins: StandIns, options: UpOptions, answers: dict[str, dict[str, object]], line: str, hint: str
) -> None:
    standins.override(answers)
    with pytest.raises(NodefallError) as raised:
        up(options, Tools("docker"), lambda _: None)
    assert raised.value.hint.endswith(hint)
    assert raised.value.message.endswith(line)
    assert len(standins.calls("kind delete cluster --name=x")) == 1


@pytest.mark.parametrize(
    ("answers", "deleted", "hint"),
    [
        (
            {},
            0,
            "look at it with kind export logs --name x, and remove it with nodefall kind down --name x --out {out}",
        ),
        (
            {"docker logs": {"stdout": NO_INOTIFY}},
            0,
            f"{SYSCTL}; look at it with kind export logs --name x, and remove",
        ),
        ({"kind get nodes": {"exit": 1, "stderr": "ERROR: no daemon"}}, 0, "look at it with kind export logs"),
        ({"kind get nodes": {"stderr": "No kind nodes found for cluster.\n"}}, 1, ""),
        ({"kind create cluster": {"stderr": CLASH, "exit": 1}}, 0, "run nodefall kind down --name x, or choose"),
    ],
)
def test_a_failed_cluster_is_retained_on_request(
    standins: StandIns, options: UpOptions, answers: dict[str, dict[str, object]], deleted: int, hint: str
) -> None:
    standins.override(answers)
    output: list[str] = []
    with pytest.raises(NodefallError) as raised:
        up(replace(options, retain=True), Tools("docker"), output.append)
    assert len(standins.calls("kind delete cluster")) == deleted
    assert hint.format(out=options.out) in raised.value.hint
    assert bool(raised.value.hint) == bool(hint)
    is_retained = "the incomplete cluster is kept, because of --retain" in output
    assert is_retained == (not deleted and "choose" not in hint)


def test_down_removes_the_kubeconfig_of_a_retained_cluster(standins: StandIns, options: UpOptions) -> None:
    standins.answers["kind get clusters"] = {"stdout": "x\n"}
    standins.save()
    for text, remains in [("apiVersion: v1\nkind: Config\n", False), (with_context(ADMIN_OF_OTHERS, "mine"), True)]:
        options.kubeconfig.write_text(text)
        options.kubeconfig.chmod(0o600)
        assert down(options, Tools("docker"))
        assert options.kubeconfig.exists() == remains


@pytest.mark.parametrize(("engine", "base"), [("docker", "kindest/node"), ("podman", "docker.io/kindest/node")])
def test_another_base_image_with_the_same_name_is_built_again(
    standins: StandIns, options: UpOptions, engine: str, base: str
) -> None:
    """The base image is pulled only if it is missing."""
    standins.install("podman")
    standins.answers = {start.replace("docker", engine): each for start, each in standins.answers.items()}
    inspect = f"{engine} image inspect --format {{{{.Id}}}}"
    for number, image in enumerate(("sha256:1", "sha256:2", "sha256:2")):
        standins.override({f"{inspect} localhost/": NO_IMAGE, inspect: {"stdout": f"{image}\n"}})
        with pytest.raises(NodefallError, match="failed to init node"):
            up(options, Tools(engine), lambda _: None)
        assert len(standins.calls(f"{engine} build")) == number + 1
    builds = standins.calls(f"{engine} build")
    assert all(f"--build-arg=NODE={base}:v1.36.2" in build for build in builds)
    tags = [word for build in builds for word in build if word.startswith("--tag=localhost/nodefall-kind:v1.36.2-")]
    assert tags[0] != tags[1] == tags[2]
    assert standins.calls(f"{engine} pull") == []


@pytest.mark.parametrize(
    ("out", "inventory"), [(None, "x.yaml"), ("my clusters/x.yaml", "'my clusters/x.yaml'")], ids=["default", "given"]
)
def test_the_next_command_works_outside_of_a_checkout(
    monkeypatch: pytest.MonkeyPatch, standins: StandIns, out: str | None, inventory: str
) -> None:
    monkeypatch.chdir(standins.folder)
    monkeypatch.setattr(chaos.cli.kind.up, "up", lambda *_: {"nodes": NODES})
    done = CliRunner().invoke(cli, ["kind", "up", "--name", "x", *(["--out", out] if out else [])])
    *_, command = done.stdout.splitlines()
    assert command.strip() == f"nodefall run partition-ridden-out --inventory {inventory} --yes"
    assert experiment_path(command.split()[2]).is_file()


def test_the_error_of_kind_survives_an_output_of_any_length(standins: StandIns, options: UpOptions) -> None:
    lines = "[wait-control-plane] Waiting\n" * 12_000
    output = f"{CREATING}{FAILED}{lines}{'x' * 9000}\nerror: why\n"
    standins.override({"kind create cluster": {"stderr": output, "exit": 1}})
    with pytest.raises(NodefallError) as raised:
        up(options, Tools("docker"), lambda _: None)
    assert raised.value.message.endswith(f"--retain: {FAILED.strip()}; error: why")


def test_an_interruption_of_the_deletion_says_how_to_finish(standins: StandIns, options: UpOptions) -> None:
    standins.override({"kind delete cluster": {"stays": True}})
    command = [sys.executable, "-m", "chaos", "kind", "up", "--name", "x", "--out", str(options.out)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        assert any("deleting the incomplete cluster" in line for line in process.stderr)
        until(lambda: standins.calls("kind delete cluster"))
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(60) == 130, rest
    assert f"was deleted: run nodefall kind down --name x --out {options.out}" in rest


def test_nodes_of_the_cluster_can_shut_down() -> None:
    """logind waits at least as long as the kubelet; the cluster is dual-stack."""
    folder = ROOT / "hosts" / "kind"
    cluster = yaml.safe_load((folder / "cluster.yaml").read_text())
    assert [node["role"] for node in cluster["nodes"]] == ["control-plane", *["worker"] * 3]
    assert cluster["networking"]["ipFamily"] == "dual"
    (patch,) = map(yaml.safe_load, cluster["kubeadmConfigPatches"])
    assert patch["kind"] == "KubeletConfiguration"
    delay = (folder / "files/etc/systemd/logind.conf.d/10-nodefall.conf").read_text().rpartition("InhibitDelayMaxSec=")
    assert 0 < parse_duration(patch["shutdownGracePeriod"]) <= float(delay[2])


ADMIN_OF_OTHERS = "apiVersion: v1\nkind: Config\ncontexts: [{name: a, context: {cluster: a}}]\n"
ADMIN = """apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: AAAA
    server: https://x-control-plane:6443
  name: x
kind: Config
"""


def test_an_existing_cluster_is_described(standins: StandIns, tmp_path: Path) -> None:
    """As ``pytest -m kind`` does with NODEFALL_KIND_CLUSTER."""
    containers = ("x-worker2", "x-worker", "other", "xx-worker", "x-control-plane", "x-external-load-balancer")
    standins.answers = {
        "docker ps": {"stdout": "".join(f"{name}\n" for name in containers)},
        "docker port x-control-plane 6443/tcp": {"stdout": "127.0.0.1:37845\n"},
        "docker exec x-control-plane cat /etc/kubernetes/admin.conf": {"stdout": ADMIN},
    }
    standins.save()
    inventory = described("x", "docker", tmp_path)
    assert sorted(inventory.hosts) == ["x-control-plane", "x-worker", "x-worker2"]
    assert inventory.defaults.transport == "docker"
    assert inventory.cluster is not None
    kubeconfig = yaml.safe_load(Path(inventory.cluster.kubeconfig).read_text())
    assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:37845"


def test_machines_of_an_inventory_need_not_be_containers(standins: StandIns, tmp_path: Path) -> None:
    """As with NODEFALL_KIND_INVENTORY: nothing is asked of an engine that happens to be here."""
    document = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Inventory", "metadata": {"name": "x"}}
    given = {"cluster": {"kubeconfig": "kubeconfig"}, "defaults": {"transport": "ssh"}}
    cluster = KindCluster(Inventory.model_validate(document | given), tmp_path)
    assert (cluster.no_logind(), cluster.no_ssh()) == ("", "the inventory has ssh already")
    assert standins.calls("") == []


@pytest.mark.parametrize("name", ["", "X", "-x", "x_y", "x" * 41])
def test_invalid_names(options: UpOptions, name: str) -> None:
    with pytest.raises(UsageError, match="invalid cluster name"):
        up(UpOptions(name, options.out), Tools("docker"), lambda _: None)


@pytest.mark.parametrize("retain", [False, True])
def test_an_interrupted_creation_leaves_nothing_unless_it_is_retained(
    standins: StandIns, options: UpOptions, retain: bool
) -> None:
    standins.answers["kind create cluster"] = {"stderr": CREATING, "stays": True}
    standins.save()
    command = [sys.executable, "-m", "chaos", "kind", "up", "--name", "x", "--out", str(options.out)]
    command += ["--retain"] if retain else []
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        assert any("Ensuring node image" in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
        assert process.wait(60) == 143, rest
    assert ("deleting the incomplete cluster" in rest) == (not retain)
    assert ("remove it with nodefall kind down --name x --out" in rest) == retain
    assert len(standins.calls("kind delete cluster --name=x")) == (not retain)
    assert standins.calls("docker logs") == [], "nothing failed"
    pid = standins.folder / "pid"
    with pytest.raises(ProcessLookupError):  # the process has ended
        os.kill(int(pid.read_text()) if pid.exists() else 2**22 + 1, 0)
    assert existing_files(options) == [False, False]
