"""Sessions by the ssh program on a real sshd: its user's configuration, the life of the master, and attacks."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from time import monotonic

import pytest

from chaos.core.command import Delivery
from chaos.core.errors import Unreachable
from chaos.machines.openssh.session import MAX_CLIENTS, OpensshSession
from tests.kit.openssh import RELAY, TRUE, command, openssh_session, ssh_config
from tests.kit.processes import has_ended, until
from tests.kit.sshd import SSHD, Server, serving

pytestmark = [
    pytest.mark.skipif(not SSHD.exists(), reason="openssh-server is not installed"),
    pytest.mark.usefixtures("folders"),
]


@pytest.fixture
def session(server: Server) -> Iterator[OpensshSession]:
    with closing(openssh_session(server)) as found:
        yield found


def master_pid(session: OpensshSession) -> int:
    return _pid(session.connect().client_argv("-O", "check", "--", "host"))


def _pid(argv: list[str]) -> int:
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stderr
    found = re.search(r"pid=(\d+)", said)
    assert found, said
    return int(found[1])


def test_one_connection_serves_many_commands_and_leaves_nothing(server: Server, folders: Path) -> None:
    session = openssh_session(server)
    pid = master_pid(session)
    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(lambda n: session.run(command("sh", "-c", f"sleep 0.1; echo {n}")), range(20)))
    assert [(o.delivery, o.stdout) for o in outcomes] == [(Delivery.ANSWERED, f"{n}\n") for n in range(20)]
    assert master_pid(session) == pid
    (folder,) = folders.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    session.close()
    until(lambda: has_ended(pid))


@pytest.mark.slow
def test_rejected_sessions_do_not_end_the_connection(tmp_path: Path) -> None:
    with serving(tmp_path, settings="MaxSessions 2\n") as server, closing(openssh_session(server)) as session:
        pid = master_pid(session)
        for seconds, known in ((0.2, {Delivery.ANSWERED}), (4, {Delivery.ANSWERED, Delivery.NOT_SENT})):
            with ThreadPoolExecutor(MAX_CLIENTS) as pool:
                found = list(pool.map(lambda _, s=seconds: session.run(command("sleep", str(s))), range(MAX_CLIENTS)))
            assert {o.delivery for o in found} == known, [o.error for o in found]
            assert all("MaxSessions" in o.error for o in found if o.delivery is Delivery.NOT_SENT)
        assert master_pid(session) == pid


def test_the_death_of_the_master_is_found_at_once(session: OpensshSession, tmp_path: Path) -> None:
    pid, count, flag = master_pid(session), tmp_path / "count", tmp_path / "flag"
    armed = session.arm(command("touch", str(tmp_path / "armed")))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.run, command("sh", "-c", f"echo x >> {count}; : > {flag}; exec sleep 9"))
        until(flag.exists)
        begin = monotonic()
        os.kill(pid, signal.SIGKILL)
        outcome = running.result(5)
        assert monotonic() - begin < 2
    assert (outcome.delivery, outcome.exit) == (Delivery.LOST, None)
    until(lambda: not armed._process.is_running)
    assert armed.wait().delivery is Delivery.NOT_SENT
    assert session.run(command("cat", str(count))).stdout == "x\n"  # on another master; it was not sent again
    assert not (tmp_path / "armed").exists()
    assert master_pid(session) != pid


KILLED = """
import sys, time
from pathlib import Path
import chaos.machines.openssh.master as master
from tests.kit.openssh import openssh_host, transport_of
master.OPTIONS = tuple(option.replace("ControlPersist=15", "ControlPersist=1") for option in master.OPTIONS)
host = openssh_host(Path(sys.argv[1]))
session = transport_of(host).open_session(host)
time.sleep(3)  # longer than ControlPersist
print(" ".join(session.connect().client_argv("-O", "check", "--", "host")), flush=True)
time.sleep(99)
"""


@pytest.mark.slow
def test_a_master_whose_nodefall_is_killed_ends_by_itself(server: Server, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", KILLED, str(ssh_config(server))]
    root = Path(__file__).parents[3]
    env = {**os.environ, "TMPDIR": tempfile.mkdtemp(dir="/tmp", prefix="m")}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env, cwd=root) as process:
        assert process.stdout is not None
        pid = _pid(process.stdout.readline().split())
        process.kill()
    until(lambda: has_ended(pid))
    shutil.rmtree(env["TMPDIR"])


def test_a_connection_that_the_host_cuts_is_replaced(server: Server, session: OpensshSession) -> None:
    pid = master_pid(session)
    server.cut()
    assert session.run(TRUE).exit == 0
    until(lambda: has_ended(pid))


@pytest.mark.slow
def test_deliveries_are_true_whatever_is_killed(server: Server, tmp_path: Path) -> None:
    """What was not sent has not run, what was answered has run once, and nothing has run twice."""
    random = Random(1)  # noqa: S311 - repeatable
    (tmp_path / "relay.py").write_text(RELAY, encoding="utf-8")
    over = threading.Event()

    def kill() -> None:
        while not over.wait(random.uniform(0.1, 0.6)):
            with suppress(OSError, AssertionError, subprocess.CalledProcessError, Unreachable):  # it has just ended
                if random.random() < 0.5:
                    server.cut()
                else:
                    os.kill(master_pid(session), random.choice([signal.SIGKILL, signal.SIGTERM]))

    def run(number: int) -> tuple[Delivery, str]:
        each = command("sh", "-c", f"echo x >> {tmp_path}/{number}; sleep 0.0{number % 9}")
        if number % 2:
            outcome = session.run(each)
            return outcome.delivery, outcome.error
        try:
            armed = session.arm(each)
        except Unreachable as error:
            return Delivery.NOT_SENT, error.message
        over.wait(random.uniform(0, 0.1))
        return armed.wait().delivery, ""

    with closing(openssh_session(server, f"ProxyCommand {sys.executable} {tmp_path}/relay.py %h %p")) as session:
        killer = threading.Thread(target=kill)
        killer.start()
        with ThreadPoolExecutor(MAX_CLIENTS) as pool:
            found = list(pool.map(run, range(100)))
        over.set()
        killer.join()
    times = [len(path.read_text()) // 2 if (path := tmp_path / str(number)).exists() else 0 for number in range(100)]
    allowed = {Delivery.NOT_SENT: {0}, Delivery.ANSWERED: {1}, Delivery.LOST: {0, 1}}
    wrong = [
        (number, each, times[number]) for number, each in enumerate(found) if times[number] not in allowed[each[0]]
    ]
    assert wrong == []
    assert {each for each, _ in found} >= {Delivery.ANSWERED, Delivery.LOST}
    assert not any("sudo" in error for _, error in found)


def test_a_socket_that_somebody_removes_and_a_log_that_would_grow(session: OpensshSession, folders: Path) -> None:
    for name in ("s", "log", ""):
        pid = master_pid(session)
        (folder,) = folders.iterdir()
        for number in range(9):
            assert session.run(command("echo", str(number))).stdout == f"{number}\n"
        assert (folder / "log").stat().st_size < 9000  # of one command
        shutil.rmtree(folder) if name == "" else (folder / name).unlink()
        assert session.run(TRUE).exit == 0
        assert (master_pid(session) == pid) is (name == "log")
        if name == "log":
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: has_ended(pid))  # type: ignore[misc]


def test_a_host_that_answers_no_more_costs_no_longer_than_the_command_may_take(session: OpensshSession) -> None:
    pid = master_pid(session)
    os.kill(pid, signal.SIGSTOP)
    begin = monotonic()
    outcome = session.run(command("true", timeout=0.5))
    assert (outcome.delivery, monotonic() - begin < 5) == (Delivery.NOT_SENT, True)
    assert "started no command within 0.5 s" in outcome.error
    os.kill(pid, signal.SIGCONT)


def test_a_command_that_no_line_can_hold(session: OpensshSession) -> None:
    for text in ("x" * 200_000, "a\0b"):
        outcome = session.run(command("printf", text))
        assert outcome.delivery is Delivery.NOT_SENT
        assert "cannot be sent" in outcome.error
        assert len(outcome.error) < 500
