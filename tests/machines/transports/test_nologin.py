"""Logins that a host refuses to all users but root, as while a shutdown is scheduled (pam_nologin)."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.core.command import Delivery, HostCommand
from chaos.core.errors import Unreachable
from chaos.machines.transports.ssh import SshSession, open_session
from tests.kit.openssh import openssh_session
from tests.kit.sshd import SSHD, Server, keygen, serving

TEXT = "System is going down. Unprivileged users are not permitted to log in anymore."
# In a separate mount namespace: logins to this machine are not concerned.
_PRIVATE_RUN = 'mount -t tmpfs none /run && mkdir -p /run/sshd && echo "$0" > /run/nologin && exec "$@"'
PREFIX = ("unshare", "--mount", "sh", "-c", _PRIVATE_RUN, TEXT)
pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that another user can read: sshd reads authorized_keys as the login user."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    if not SSHD.exists() or os.getuid() != 0 or subprocess.run([*PREFIX, "true"], check=False).returncode:
        pytest.skip("needs openssh-server, root and mount namespaces")
    if not Path("/etc/pam.d/sshd").exists():
        pytest.skip("needs PAM")
    with serving(folder, settings="UsePAM yes\n", prefix=PREFIX) as found:
        yield found


def test_the_text_of_nologin_is_quoted_and_no_key_is_blamed(server: Server) -> None:
    with pytest.raises(Unreachable) as caught:
        open_session(server.settings(user="daemon"))
    assert TEXT in caught.value.message
    assert "wait, or log in as root" in caught.value.hint
    assert "authorized_keys" not in caught.value.hint
    outcome = SshSession(server.settings(user="daemon")).run(HostCommand(("true",)))
    assert outcome.delivery == Delivery.NOT_SENT
    assert TEXT in outcome.error


def test_the_ssh_of_this_machine_quotes_it_too(server: Server) -> None:
    with pytest.raises(Unreachable, match=TEXT.partition(".")[0]) as caught:
        openssh_session(server, "User daemon")
    assert "run it by hand" in caught.value.hint


def test_root_may_log_in(server: Server) -> None:
    session = open_session(server.settings())
    assert session.run(HostCommand(("echo", "in"))).stdout == "in\n"
    session.close()


def test_a_key_that_is_not_authorized_is_blamed(server: Server, tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="rejected the login of daemon"):
        open_session(server.settings(user="daemon", identity_file=keygen(tmp_path / "other")))
