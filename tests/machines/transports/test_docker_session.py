"""Sessions of docker: identity of a container, commands that cannot be sent, and errors of the engine."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from chaos.core.command import Delivery, HostCommand
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.machines.transports.docker import Container, ContainerState, DockerSession, engine_error, find_engine
from tests.kit.machines import Docker
from tests.kit.processes import until

MARK = HostCommand(("touch", "/var/tmp/mark"))


@pytest.mark.root
def test_a_recreated_container_is_another_host(docker: Docker, box: str) -> None:
    name = f"{box}-twin"
    image = docker("inspect", "--format", "{{.Config.Image}}", box)
    again = ("run", "--detach", "--name", name, "--network", "none", image, "sleep", "infinity")
    docker(*again)
    try:
        container = Container(name, "docker")
        session = DockerSession(container)
        assert session.run(MARK).exit == 0
        docker("rm", "--force", name)
        docker(*again)
        outcome = session.run(MARK)
        assert outcome.delivery == Delivery.NOT_SENT
        assert "was recreated" in outcome.error
        with pytest.raises(Refused, match="was recreated") as caught:
            session.arm(MARK)
        assert caught.value.hint
    finally:
        docker("rm", "--force", name)


@pytest.mark.root
def test_a_stopped_container_gets_no_command_and_is_the_same_host_after_a_restart(docker: Docker, box: str) -> None:
    session = DockerSession(Container(box, "docker"))
    armed = session.arm(MARK)
    docker("exec", box, "rm", "-f", "/var/tmp/mark")
    docker("kill", box)
    until(lambda: not armed._process.is_running)
    assert armed.wait().delivery == Delivery.NOT_SENT
    outcome = session.run(MARK)
    assert (outcome.delivery, "does not run: it is exited" in outcome.error) == (Delivery.NOT_SENT, True)
    docker("start", box)
    assert session.run(HostCommand(("test", "-e", "/var/tmp/mark"))).exit == 1


@pytest.mark.root
def test_a_container_without_a_shell_is_an_error(docker: Docker, box: str) -> None:
    docker("exec", box, "mv", "/bin/sh", "/bin/sh.away")
    try:
        outcome = DockerSession(Container(box, "docker")).run(MARK)
    finally:
        docker("exec", box, "mv", "/bin/sh.away", "/bin/sh")
    assert outcome.delivery == Delivery.NOT_SENT
    assert "no such file or directory" in outcome.error


@pytest.mark.root
def test_armed_commands_end_with_the_session(docker: Docker, box: str) -> None:
    session = DockerSession(Container(box, "docker"))
    armed = session.arm(MARK)
    session.close()
    assert armed.wait().delivery == Delivery.NOT_SENT
    for _ in range(50):
        if "nodefall-" not in docker("exec", box, "ps", "-e", "-o", "args"):
            return
        threading.Event().wait(0.1)
    raise AssertionError("the shell is still waiting in the container")


@pytest.mark.root
def test_there_is_no_such_container(docker: Docker) -> None:
    with pytest.raises(Refused, match=r"no-such-container-here.*[Nn]o such"):
        DockerSession(Container("no-such-container-here", "docker")).arm(MARK)


def test_a_daemon_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho Cannot connect to the Docker daemon at unix:///x. >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(Unreachable, match="Cannot connect") as caught:
        Container("n", str(program)).state()
    assert "DOCKER_HOST" in caught.value.hint


@pytest.mark.parametrize(
    ("script", "error"),
    [("echo hello", "cannot be parsed"), ("exec sleep 30", "timed out after 0.3 s"), ("exit 3", "it failed")],
)
def test_unusable_output_of_an_engine(tmp_path: Path, script: str, error: str) -> None:
    program = tmp_path / "docker"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(NodefallError, match=error):
        Container("n", str(program), timeout=0.3 if "sleep" in script else 20).state()


@pytest.mark.parametrize(
    ("status", "power"),
    [("running", "on"), ("paused", "on"), ("exited", "off"), ("created", "off"), ("dead", "off"),
     ("restarting", "off"), ("removing", None), ("", None)],
)  # fmt: skip
def test_states(status: str, power: str | None) -> None:
    assert ContainerState("id", status, "no", 0).power == power


@pytest.mark.parametrize(
    ("policy", "retries", "text"),
    [("", 0, "no"), ("no", 0, "no"), ("always", 0, "always"), ("unless-stopped", 0, "unless-stopped"),
     ("on-failure", 0, "on-failure"), ("on-failure", 3, "on-failure:3")],
)  # fmt: skip
def test_restart_policies(policy: str, retries: int, text: str) -> None:
    assert ContainerState("id", "running", policy, retries).restart_policy == text


@pytest.mark.parametrize(
    ("engine", "installed", "found"),
    [(None, {"docker", "podman"}, "docker"), (None, {"podman"}, "podman"), ("podman", {"docker", "podman"}, "podman"),
     ("podman", {"docker"}, ""), (None, set(), "")],
)  # fmt: skip
def test_which_engine(engine: str | None, installed: set[str], found: str) -> None:
    def which(name: str) -> str | None:
        return f"/usr/bin/{name}" if name in installed else None

    if found:
        assert find_engine(engine, which) == found
    else:
        with pytest.raises(Refused, match=f"program {engine or 'docker nor podman'} is not installed"):
            find_engine(engine, which)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", Unreachable),
        ("Got permission denied while trying to connect to the Docker daemon socket", Unreachable),
        ("Error: No such container: n", Refused),
        ("Error: no such container n", Refused),
        ("OCI runtime exec failed", NodefallError),
    ],
)
def test_errors_of_the_engine(text: str, kind: type[NodefallError]) -> None:
    error = engine_error("docker exec n", text)
    assert type(error) is kind
    assert text in error.message
    assert error.hint
