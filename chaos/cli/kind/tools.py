"""The programs kind and docker or podman, found on PATH and run without a shell."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from chaos.cli.kind.diagnosis import failure_lines, last_lines
from chaos.core.errors import NodefallError, Refused
from chaos.core.text import printable
from chaos.machines.local import run_program
from chaos.machines.transports.docker import engine_error, find_engine

PROVIDER = "KIND_EXPERIMENTAL_PROVIDER"  # read by kind, too
Echo = Callable[[str], None]
Explain = Callable[[Sequence[str]], list[str]]
_QUERY_TIMEOUT, _DELETE_TIMEOUT = 60.0, 300.0  # seconds
_STOP_TIMEOUT = 10.0
_OTHER_IMAGE = "give a --kubernetes that hub.docker.com/r/kindest/node/tags has, or a node image with --image"
_BY_HAND = "run this command by hand, as this user"
_LOG_TIMEOUT, _LOG_LINES = 20.0, 500
_FIRST_LINES, _LAST_LINES, _MAX_LINE = 1000, 10_000, 4000  # kubeadm logs a thousand lines while it waits


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs. ``engine``: docker or podman, which kind uses, too."""

    engine: str

    @property
    def _program(self) -> tuple[str, ...]:
        return ("env", f"{PROVIDER}={self.engine}", "kind")

    @property
    def shown(self) -> str:
        """The program kind on a command line of a user."""
        return "kind" if self.engine == "docker" else f"{PROVIDER}={self.engine} kind"

    def clusters(self) -> list[str]:
        """The names of kind clusters. Raises NodefallError."""
        return self._kind("get", "clusters").split()

    def nodes(self, name: str) -> list[str]:
        """The containers of a cluster, whose names are those of its nodes. Raises NodefallError."""
        return sorted(self._kind("get", "nodes", "--name", name).split())

    def image_id(self, name: str) -> str:
        """The ID of an image, "" if the engine does not have it. Another image with the same name has another ID."""
        done = run_program((self.engine, "image", "inspect", "--format", "{{.Id}}", name), _QUERY_TIMEOUT)
        return "" if done.exit else done.stdout.strip()

    def log(self, container: str) -> list[str]:
        """The end of a container's log and of its kubelet's. Raises NodefallError if the engine does not respond."""
        console = (self.engine, "logs", f"--tail={_LOG_LINES}", container)
        journal = ("journalctl", "--unit=kubelet", "--no-pager", "--quiet", f"--lines={_LOG_LINES}")
        results = [run_program(argv, _LOG_TIMEOUT) for argv in (console, (self.engine, "exec", container, *journal))]
        return [line for done in results for line in f"{done.stdout}\n{done.stderr}".splitlines()]

    def check_engine(self) -> None:
        """Raises NodefallError if the engine does not respond."""
        done = run_program((self.engine, "ps", "--quiet"), _QUERY_TIMEOUT)
        if done.exit:
            raise engine_error(f"{self.engine} ps", done.output)

    def pull(self, image: str, echo: Echo) -> None:
        """Pull an image. Raises NodefallError with the end of the output."""
        self._stream([self.engine, "pull", image], echo, hint=_OTHER_IMAGE)

    def build(self, tag: str, context: str, arguments: Mapping[str, str], echo: Echo) -> None:
        """Build an image. Raises NodefallError with the end of the output."""
        given = [f"--build-arg={name}={value}" for name, value in arguments.items()]
        self._stream([self.engine, "build", f"--tag={tag}", *given, context], echo)

    def create(self, name: str, config: str, image: str, kubeconfig: str, echo: Echo) -> None:
        """Create a cluster. Raises NodefallError with the lines that say why; the containers remain for their logs."""
        options = [f"--config={config}", f"--image={image}", f"--kubeconfig={kubeconfig}", "--wait=5m", "--retain"]
        self._stream([*self._program, "create", "cluster", f"--name={name}", *options], echo, failure_lines, hint="")

    def delete(self, name: str, kubeconfig: str) -> None:
        """Delete a cluster, also an incomplete one. Idempotent. Raises NodefallError."""
        self._kind("delete", "cluster", f"--name={name}", f"--kubeconfig={kubeconfig}", timeout=_DELETE_TIMEOUT)

    def disable_restart(self, container: str) -> str:
        """Set the restart policy of a container to "no"; the error, or ""."""
        done = run_program((self.engine, "update", "--restart=no", container), _QUERY_TIMEOUT)
        return done.output if done.exit else ""

    def _kind(self, *arguments: str, timeout: float = _QUERY_TIMEOUT) -> str:
        done = run_program((*self._program, *arguments), timeout)
        if done.exit:
            raise NodefallError(f"kind {arguments[0]} {arguments[1]}: {done.output}", hint=_BY_HAND)
        return done.stdout

    def _stream(self, argv: Sequence[str], echo: Echo, explain: Explain = last_lines, *, hint: str = _BY_HAND) -> None:
        """Run a program and forward its output. An exception, as of Ctrl-C, stops the program.

        ``explain`` chooses the lines of the output that the error of a failed program has.
        """
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C must not reach it: _stop() ends it
        )
        assert process.stdout is not None  # noqa: S101 - a pipe
        try:
            lines = _forward_output(process.stdout, echo)
            code = process.wait()
        except BaseException:
            _stop(process)
            raise
        finally:
            process.stdout.close()
        if code:
            output = "; ".join(explain(lines)) or f"exit code {code}"
            raise NodefallError(f"{shlex.join(argv)}: {output}", hint=hint)


def find_tools(environ: Mapping[str, str], which: Callable[[str], str | None] = shutil.which) -> Tools:
    """The programs on PATH. Raises Refused if one is missing."""
    if which("kind") is None:
        raise Refused(
            "cannot find the program kind on PATH",
            hint="install it from kind.sigs.k8s.io or the package kind of Debian 13; nodefall lab up needs neither",
        )
    provider = environ.get(PROVIDER) or None
    if provider not in (None, "docker", "podman"):
        raise Refused(f"unsupported {PROVIDER}={provider}: nodefall uses docker or podman")
    return Tools(find_engine(provider, which))


def _forward_output(stream: IO[bytes], echo: Echo) -> list[str]:
    """Echo each line; the first lines, which have kind's error, and the last ones, with their indentation."""
    first: list[str] = []
    last: deque[str] = deque(maxlen=_LAST_LINES)
    while raw := stream.readline(_MAX_LINE):
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        (last if len(first) == _FIRST_LINES else first).append(line)
        if shown := printable(line).strip():
            echo(shown)
    return [*first, *last]


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a program with all processes of its session."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_TIMEOUT)
            return
