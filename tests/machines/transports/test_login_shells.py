"""Login shells, their start-up files and greetings, on a real sshd."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.core.command import Delivery, HostCommand
from chaos.core.errors import Unreachable
from chaos.core.ports import Session
from chaos.machines.transports.ssh import SshSession, open_session
from tests.kit.openssh import openssh_session
from tests.kit.sshd import SSHD, Server, public, serving

pytestmark = pytest.mark.slow
NOISE = "*** System restart required ***"
# Files that the shells read for a command, and text that they print there.
FILES = {
    "bash": (".bashrc", f"echo '{NOISE}'; printf 'no line end'; echo warning >&2\n"),
    "dash": ("", ""),  # reads none
    "zsh": (".zshenv", f"echo '{NOISE}'; printf '\\033]0;title\\007'; setopt interactive_comments\n"),
    "fish": (".config/fish/config.fish", f"echo '{NOISE}'; echo warning >&2\n"),
    "tcsh": (".tcshrc", f"echo '{NOISE}'; set echo; set verbose; set histchars='!^'\n"),
    "csh": (".cshrc", f"echo '{NOISE}'\n"),
}
WORDS = ("a b", "", "it's", "$HOME", "`id`", "!!", "!x", "line\nbreak", "\\", "\\n", "%s", "é", "*", '"')


@contextmanager
def session_of(folder: Path, settings: str, authorized: str = "") -> Iterator[SshSession]:
    """``authorized``: options of the key in authorized_keys."""
    with server_of(folder, settings) as server:
        if authorized:
            (folder / "authorized_keys").write_text(f"{authorized} {public(folder / 'user')}\n", encoding="utf-8")
        with closing(open_session(server.settings())) as session:
            yield session


@contextmanager
def server_of(folder: Path, settings: str) -> Iterator[Server]:
    if not SSHD.exists():
        pytest.skip("openssh-server is not installed")
    with serving(folder, more_settings=settings) as server:
        yield server


@pytest.fixture(scope="module", params=[*FILES, "openssh tcsh", "openssh fish"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A login whose shell is the parameter: sshd gives it the command line as it would if passwd(5) named the shell."""
    transport, _, program = request.param.rpartition(" ")
    shell = shutil.which(program)
    if shell is None:
        pytest.skip(f"{program} is not installed")
    folder = tmp_path_factory.mktemp(program)
    name, text = FILES[program]
    if name:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    with ExitStack() as stack:
        server = stack.enter_context(server_of(folder, f'ForceCommand exec {shell} -c "$SSH_ORIGINAL_COMMAND"\n'))
        opened = openssh_session(server) if transport else open_session(server.settings())
        yield stack.enter_context(closing(opened))


def test_values_are_those_of_the_command_alone(session: Session) -> None:
    outcome = session.run(HostCommand(("printf", "%s\\0", *WORDS)))
    assert (outcome.delivery, outcome.exit, outcome.stderr, outcome.error) == (Delivery.ANSWERED, 0, "", "")
    assert outcome.stdout == "".join(f"{word}\0" for word in WORDS)


def test_scripts_input_and_exit_codes(session: Session) -> None:
    script = 'if true; then\n  cat; echo "$1" >&2\nfi\nexit 9'
    outcome = session.run(HostCommand(("sh", "-c", script, "sh", "a!b"), stdin="1\n2"))
    assert (outcome.exit, outcome.stdout, outcome.stderr) == (9, "1\n2", "a!b\n")


def test_armed_commands(session: Session) -> None:
    armed = session.arm(HostCommand(("sh", "-c", 'cat; printf "%s" "$0"', "x!\ny"), stdin="input\n"))
    outcome = armed.wait()
    assert (outcome.delivery, outcome.exit, outcome.stdout) == (Delivery.ANSWERED, 0, "input\nx!\ny")
    assert outcome.began is not None


REFUSED = [
    ("ForceCommand echo This account is closed.; exit 1\n", "This account is closed."),
    ("ForceCommand /usr/sbin/nologin\n", "This account is currently not available."),
    ("ForceCommand /bin/false\n", "the host printed nothing"),
    ('ForceCommand echo "$SSH_ORIGINAL_COMMAND is not allowed"\n', "exec /bin/sh -c"),
    ('ForceCommand echo "$SSH_ORIGINAL_COMMAND" >&2; kill -9 $$\n', "exec /bin/sh -c"),
]


@pytest.mark.parametrize(("settings", "quoted"), REFUSED, ids=[str(number) for number in range(len(REFUSED))])
def test_a_login_that_runs_no_command_is_quoted(tmp_path: Path, settings: str, quoted: str) -> None:
    with session_of(tmp_path, settings) as session:
        outcome = session.run(HostCommand(("touch", str(tmp_path / "mark"))))
        assert outcome.delivery == Delivery.NOT_SENT
        assert quoted in outcome.error
        assert "ForceCommand" in outcome.error
        with pytest.raises(Unreachable, match="did not start") as caught:
            session.arm(HostCommand(("touch", str(tmp_path / "mark"))))
        assert quoted in caught.value.message
        assert not (tmp_path / "mark").exists()


def test_a_key_that_may_run_one_command_only_is_quoted(tmp_path: Path) -> None:
    with session_of(tmp_path, "", 'command="echo only backups"') as session:
        outcome = session.run(HostCommand(("touch", str(tmp_path / "mark"))))
        assert outcome.delivery == Delivery.NOT_SENT
        assert "the host printed 'only backups'" in outcome.error
        assert "command=" in outcome.error


def test_a_login_that_does_not_answer_may_run_it_later(tmp_path: Path) -> None:
    with session_of(tmp_path, "ForceCommand echo ready; sleep 9\n") as session:
        outcome = session.run(HostCommand(("true",), timeout=1.5))
        assert (outcome.delivery, outcome.exit) == (Delivery.LOST, None)
        assert "no answer within 1.5 s" in outcome.error
        assert "the host printed 'ready'" in outcome.error
        session.settings = replace(session.settings, connect_timeout=1.5)
        with pytest.raises(Unreachable, match=r"could not be armed.* 1\.5 s; the host printed 'ready'"):
            session.arm(HostCommand(("true",)))
