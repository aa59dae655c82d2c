"""Labs that stay, as their users meet them."""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from chaos.core.clock import SystemClock
from tests.kit.processes import nodefall

PATIENCE = 30.0


@dataclass(frozen=True)
class Labs:
    """All labs that are kept below ``cwd``."""

    cwd: Path

    @property
    def directory(self) -> Path:
        return self.cwd / "state" / "nodefall" / "labs"

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """``nodefall lab ...``."""
        done = nodefall("lab", *arguments, cwd=self.cwd)
        assert "Traceback" not in done.stdout + done.stderr
        return done

    def up(self, *arguments: str | Path) -> dict[str, Any]:
        """The output of ``lab up --json``."""
        done = self.run("up", *arguments, "--json")
        assert done.returncode == 0, done.stderr
        output: dict[str, Any] = json.loads(done.stdout)
        return output

    def status(self, name: str = "lab") -> dict[str, Any]:
        done = self.run("status", "--json")
        labs = [lab for lab in json.loads(done.stdout)["labs"] if lab["name"] == name]
        assert labs, f"no lab {name}: {done.stdout}"
        return dict(labs[0])

    def processes(self) -> list[int]:
        """Every process that serves one of them."""
        wanted = f"--directory={self.directory}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if wanted in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:  # it has just ended
                continue
        return found

    def left(self) -> list[str]:
        """What is there of them: nothing, after the end."""
        return [*map(str, self.processes()), *(str(path) for path in self.directory.glob("*"))]


@contextmanager
def labs_below(cwd: Path) -> Iterator[Labs]:
    """Labs that are ended afterwards, whatever happened."""
    labs = Labs(cwd)
    try:
        yield labs
    finally:
        for pid in labs.processes():
            os.kill(pid, signal.SIGKILL)


def until(what: Callable[[], bool]) -> None:
    with closing(SystemClock()) as clock:
        end = clock.now() + PATIENCE
        while not what():
            assert clock.now() < end, "it never came true"
            clock.sleep(0.05)


def get(lab: dict[str, Any], path: str) -> Any:
    """GET by plain HTTPS, with what the kubeconfig says and nothing else."""
    config = json.loads(Path(lab["kubeconfig"]).read_text(encoding="utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    server = urlsplit(cluster["server"])
    context = ssl.create_default_context(cafile=cluster["certificate-authority"])
    with closing(http.client.HTTPSConnection(str(server.hostname), server.port, timeout=10, context=context)) as line:
        line.request("GET", path, headers={"Authorization": f"Bearer {user['token']}"})
        answer = line.getresponse()
        assert answer.status == 200, answer.read()
        return json.loads(answer.read())
