"""vcsim, govmomi's simulator of a vCenter Server, built from Debian's packages (golang-go, ...govmomi-dev)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from chaos.machines.driver import power_control_of
from chaos.machines.power.vsphere import VsphereControl
from tests.kit.clouds import host_context
from tests.kit.tls_authority import Authority

USER, PASSWORD = "ops@vsphere.local", "hunter2-secret"
_GOPATH = Path("/usr/share/gocode")


@dataclass(frozen=True, slots=True)
class Vcenter:
    """A server with its authority's file. Its machine DC0_C0_RP0_VM0 is in the cluster DC0_C0."""

    port: int
    ca: Path

    def control(self, vm: str | None = None, provider_id: str = "", **settings: Any) -> VsphereControl:
        power = {"kind": "vsphere", "address": "127.0.0.1", "port": self.port, "user": USER, "vm": vm}
        power |= {"password": {"env": "VSPHERE"}, "caFile": str(self.ca)} | settings
        made = power_control_of(host_context(power, provider_id, environ={"VSPHERE": PASSWORD}))
        assert isinstance(made, VsphereControl)
        return made


@cache
def vcsim_program() -> Path:
    """The built program, which Go keeps for later. Skips the test where it cannot be built."""
    if not shutil.which("go") or not (_GOPATH / "src/github.com/vmware/govmomi").is_dir():
        pytest.skip("no vcsim: golang-go and golang-github-vmware-govmomi-dev are not installed")
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "nodefall-tests")
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"vcsim-{os.getpid()}"
    environ = os.environ | {"GO111MODULE": "off", "GOPATH": str(_GOPATH), "GOCACHE": str(folder / "go")}
    source = Path(__file__).parent / "vcsim" / "main.go"
    subprocess.run(["go", "build", "-p", "2", "-o", str(program), str(source)], env=environ, check=True)
    return program.replace(folder / "vcsim")


@contextmanager
def vcsim(folder: Path) -> Iterator[Vcenter]:
    authority = Authority(folder, "vcenter")
    authority.server()
    pem = str(folder / "server.pem")
    argv = [str(vcsim_program()), pem, pem, USER, PASSWORD]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        yield Vcenter(int(process.stdout.readline().rpartition(":")[2]), authority.file)
        process.stdin.close()
