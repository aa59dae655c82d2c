"""Both transports over SSH do what `ssh HOST true` does with a user's files, on generated servers and configurations.

Openssh always: it runs the command where ssh does. Paramiko wherever it has all that ssh uses, and nowhere else than
ssh does.
"""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random

import pytest

from tests.kit.ssh_setups import SECRET, Keys, Setup, built, by_openssh, by_paramiko, by_ssh
from tests.kit.sshd import SSHD

pytestmark = pytest.mark.skipif(not SSHD.exists(), reason="openssh-server is not installed")
ALWAYS, ALL = 8, 120


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys") / "pool")


def seeds() -> list[object]:
    return [seed if seed < ALWAYS else pytest.param(seed, marks=pytest.mark.slow) for seed in range(ALL)]


@pytest.mark.parametrize("seed", seeds())
def test_as_ssh_does(
    seed: int, keys: Keys, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = Setup.draw(Random(seed))  # noqa: S311 - seeded on purpose
    compare(setup, keys, tmp_path, caplog, monkeypatch)


def compare(
    setup: Setup, keys: Keys, folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "")
    with caplog.at_level(logging.DEBUG), built(setup, keys, folder / "sshd") as (config, host):
        expected = by_ssh(config)
        openssh, paramiko = by_openssh(config), by_paramiko(config, host)
    assert openssh.ran == expected.ran, (setup, expected, openssh)
    if setup.is_common:
        assert paramiko.ran == expected.ran, (setup, expected, paramiko)
    elif setup.has_order and setup.path != "broken relay":  # which paramiko does not use
        assert expected.ran or not paramiko.ran, (setup, expected, paramiko)
    assert SECRET not in f"{openssh.error} {paramiko.error} {caplog.text}"
    for answer in (openssh, paramiko):
        assert answer.ran or "w1" in answer.error, (setup, answer)
