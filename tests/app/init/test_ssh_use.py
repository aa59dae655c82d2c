"""What the ssh configuration of a person sets for Nodes, by the ssh program itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chaos.app.discovery.machines import SshUse
from chaos.app.init import find_ssh_use

NODES = {"worker-1": "10.0.0.11", "worker-2": "10.0.0.12", "cp-1": "10.0.0.1"}
CONFIGS = [
    ("", None),
    ("Host bastion\n  User ops\n", None),
    ("Host *\n  ServerAliveInterval 9\n  Ciphers aes256-ctr\n  SendEnv LANG\n", None),
    ("Host worker-1\n  ProxyCommand ssm %h\n", None),  # one of three
    ("Host worker-*\n  HostName %h.example\n  User ops\n", SshUse("name", ("hostname", "user"))),
    ("Host 10.0.0.*\n  ProxyJump bastion\n", SshUse("address", ("proxyjump",))),
    ("Host 10.0.0.11\n  CertificateFile /c\n", SshUse("address", ("certificatefile",))),
    (
        "Host *\n  IdentityAgent /a\n  GlobalKnownHostsFile /g\n",
        SshUse("name", ("identityagent", "globalknownhostsfile")),
    ),
    ("NoSuchOption yes\n", None),
]


@pytest.mark.parametrize(("config", "expected"), CONFIGS, ids=[str(number) for number in range(len(CONFIGS))])
def test_find_ssh_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, expected: SshUse | None) -> None:
    """ssh reads the file in the home of passwd(5), whatever HOME is: the program that is found names another one."""
    ssh = shutil.which("ssh")
    if ssh is None:
        pytest.skip("ssh is not installed")
    (tmp_path / "config").write_text(config, encoding="utf-8")
    program = f'#!/bin/sh\ncase " $* " in *" -F "*) exec {ssh} "$@";; esac\nexec {ssh} -F {tmp_path}/config "$@"\n'
    (tmp_path / "ssh").write_text(program, encoding="utf-8")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert find_ssh_use(NODES) == expected


def test_without_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ssh_use(NODES) is None
