"""What doctor says of ssh on this machine, by the real ssh and by programs in its place."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from chaos.core.errors import NodefallError, Refused
from chaos.engine.local_identity import transport_problems
from chaos.machines.driver import transport_of
from tests.kit.openssh import HOST, host_with, openssh_host
from tests.kit.other_users import MALLORY

SSH = shutil.which("ssh")
pytestmark = pytest.mark.skipif(not SSH, reason="ssh is not installed")


def a_config(folder: Path, *lines: str) -> Path:
    """A configuration with a known host, and ``lines`` before that."""
    (folder / "known_hosts").write_text("w1 ssh-ed25519 AAAA\n", encoding="utf-8")
    path = folder / "ssh_config"
    known = (f"UserKnownHostsFile {folder}/known_hosts", "GlobalKnownHostsFile none")
    path.write_text("\n".join([*lines, *known]) + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def problems(config: Path) -> list[NodefallError]:
    context = openssh_host(config)
    return list(transport_of(context).local_problems(context) or ())


def instead_of_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_what_people_have_in_their_configuration_is_no_problem(tmp_path: Path) -> None:
    assert problems(a_config(tmp_path, "StrictHostKeyChecking no", "BatchMode no", "ControlPath /nowhere/%C")) == []


@pytest.mark.parametrize(
    ("script", "message", "hint"),
    [
        (f'exec {SSH} -o StrictHostKeyChecking=no "$@"', "ssh ignores StrictHostKeyChecking=yes for w1", "in PATH"),
        (f'exec {SSH} -o BatchMode=no "$@"', "ssh ignores BatchMode=yes for w1: `ssh -G` says no", "in PATH"),
        (f'test "$1" != -V && exec {SSH} "$@"; echo OpenSSH_7.2p2 Ubuntu, OpenSSL 1.0 >&2', "is OpenSSH 7.2", "update"),
        (f'test "$1" != -V && exec {SSH} "$@"; echo Dropbear v2022.83 >&2', "it says 'Dropbear v2022.83'", "install"),
        ("exit 1", "program ssh is not OpenSSH: it says ''", "install openssh-client"),
    ],
)
def test_a_program_in_the_place_of_ssh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str, hint: str
) -> None:
    config = a_config(tmp_path)
    instead_of_ssh(tmp_path, monkeypatch, script)
    found = problems(config)
    assert message in found[0].message
    assert hint in found[0].hint


def test_each_thing_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = a_config(tmp_path, "NoSuchOption yes")
    assert "does not accept its configuration for w1" in problems(config)[0].message
    (unknown,) = problems(a_config(tmp_path, "UserKnownHostsFile /dev/null"))
    assert "knows no host key for w1: /dev/null has none" in unknown.message
    assert "known_hosts" in unknown.hint
    config.chmod(0o666)
    assert "any user may write this file" in problems(config)[0].message
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "program ssh cannot be run" in problems(a_config(tmp_path))[0].message


def test_a_place_without_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory whose path is too long is replaced; one that does not exist, or is another user's, is named."""
    config = a_config(tmp_path)
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    given = tmp_path / "given"
    given.mkdir()
    if os.geteuid() == 0:
        os.chown(given, MALLORY, MALLORY)
    for place, is_problem in ((deep, False), (tmp_path / "none", True), (given, os.geteuid() == 0)):
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        assert [f"control socket in {place}" in each.message for each in problems(config)] == [True] * is_problem
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    context = openssh_host(config)
    with pytest.raises(Refused, match=r"cannot have a control socket in .*: No such file"):
        transport_of(context).open_session(context)


def test_the_engine_asks_for_the_hosts_with_openssh_only(tmp_path: Path) -> None:
    context = openssh_host(a_config(tmp_path, "UserKnownHostsFile none"))
    found = transport_problems(context.inventory, {HOST: "10.0.0.1", "other": "10.0.0.2"})
    assert list(found) == [HOST]
    assert "knows no host key" in found[HOST][0].message
    assert transport_problems(host_with({}).inventory, {HOST: "10.0.0.1"}) == {}
