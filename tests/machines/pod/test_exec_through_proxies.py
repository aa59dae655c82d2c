"""Helper pods behind a proxy: their WebSockets carry what they carry without one, and notice what breaks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import pytest

from chaos.cluster.access import Access, Pem
from chaos.cluster.client import ApiClient
from chaos.cluster.kubeconfig import UserEntry
from chaos.cluster.proxies import find_proxy
from chaos.core.clock import SystemClock
from chaos.core.command import Delivery, HostCommand
from chaos.machines.pod.helpers import HelperPods
from chaos.machines.pod.manifest import PodOptions
from chaos.machines.pod.session import HelperSlot, PodSession
from tests.kit.exec_server import ExecServer, exec_server
from tests.kit.processes import until
from tests.kit.recording_server import Recorder, proxying
from tests.kit.tls_authority import Authority
from tests.kit.tls_front import tls_front

SCHEMES = ("http", "https", "socks5", "socks5h")
LOGIN = "ada:p%40ss"


@dataclass
class Link:
    server: ExecServer
    recorder: Recorder
    session: PodSession


@contextmanager
def linked(scheme: str, folder: Path) -> Iterator[Link]:
    """A session to a host behind a proxy of this scheme."""
    with ExitStack() as stack:
        server = stack.enter_context(exec_server())
        recorder = Recorder(port=urlsplit(server.url).port or 0)
        port = stack.enter_context(proxying(recorder))
        authority = Authority(folder, "proxy")
        if scheme == "https":
            port = stack.enter_context(tls_front(port, authority.server()))
        proxy = find_proxy(server.url, f"{scheme}://{LOGIN}@127.0.0.1:{port}", "kubeconfig")
        ca = Pem("ca", data=server.ca + authority.file.read_bytes())
        access = Access(server.url, ca=ca, user=UserEntry(token="secret"), proxy=proxy)
        api = stack.enter_context(closing(ApiClient(lambda: access)))
        pods = HelperPods(api, stack.enter_context(closing(SystemClock())), "kube-system")
        session = PodSession(HelperSlot("worker-1", pods, PodOptions()), api)
        stack.callback(pods.remove)
        stack.callback(session.close)
        yield Link(server, recorder, session)


@pytest.fixture(params=SCHEMES)
def link(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Link]:
    with linked(request.param, tmp_path) as found:
        yield found
    assert set(found.recorder.proxied) == {"ada:p@ss"}


def test_input_and_output_arrive_whole_in_both_directions(link: Link) -> None:
    text = "".join(f"{number}\n" for number in range(100_000))
    outcome = link.session.run(HostCommand(("sh", "-c", "sleep 0.3; cksum; echo err >&2; exit 3"), stdin=text))
    assert (outcome.delivery, outcome.exit, outcome.stderr) == (Delivery.ANSWERED, 3, "err\n")
    assert outcome.stdout.split()[1] == str(len(text))
    again = link.session.run(HostCommand(("cat",), stdin=text))
    assert again.stdout == text


def test_nothing_waits_for_what_has_arrived(link: Link) -> None:
    """Several messages may be in one record of the proxy's TLS."""
    link.session.run(HostCommand(("true",)))  # makes the pod
    begin = monotonic()
    for number in range(20):
        outcome = link.session.run(HostCommand(("sh", "-c", f"printf {number}; printf e >&2"), timeout=5))
        assert (outcome.stdout, outcome.stderr, outcome.exit) == (str(number), "e", 0)
    assert monotonic() - begin < 10
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: link.session.run(HostCommand(("echo", str(n)))).stdout, range(16)))
    assert found == [f"{number}\n" for number in range(16)]


def test_an_armed_command_runs_once_or_is_known_not_to_have(link: Link, tmp_path: Path) -> None:
    armed = link.session.arm(HostCommand(("touch", str(tmp_path / "armed"))))
    assert not (tmp_path / "armed").exists()
    armed.release()
    assert armed.wait().delivery is Delivery.ANSWERED
    assert (tmp_path / "armed").exists()
    lost = HostCommand(("sh", "-c", f"echo > {tmp_path}/flag; exec sleep 9"), timeout=20)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(link.session.run, lost)
        until((tmp_path / "flag").exists)
        link.server.cut()
        assert running.result(10).delivery is Delivery.LOST
