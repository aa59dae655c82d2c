"""The lab's WinRM answers recorded requests as the recorded Windows did: elements, namespaces, faults, HTTP status."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

from chaos.lab.sim.lockstep import Lockstep
from chaos.lab.winrm.service import Client, WsmanService
from chaos.lab.winshell.process import WinHost, WinProcess
from chaos.lab.winshell.programs import PROGRAMS
from tests.kit.win_host import WindowsHost
from tests.kit.winrm_exchanges import Exchange, load, namespaces, read, shape

_ID = re.compile(r'(?:ShellId"?>|CommandId>|CommandId=")([0-9A-F-]{36})')
# What the recorded programs wrote, and after how many seconds, by command line: the lab has neither shell.
_PLAYED: dict[str, list[tuple[str, str, float]]] = {
    "cmd.exe /c echo hi": [("out", "hi\r\n", 0.0)],
    "cmd.exe /c echo out && echo err>&2 && exit 1": [("out", "out \r\n", 0.0), ("err", "err \r\n", 0.0)],
    "cmd.exe /c set": [("out", "A=B\r\n", 0.0)],  # the environment, which is not simulated
    "powershell.exe (pwd).Path": [("out", "C:\\Windows\r\n", 0.0)],
    "powershell.exe Write-Host hi; Start-Sleep 30; Write-Host hi again": [
        *(("out", "hi\n", 0.0), ("out", "hi again\n", 30.0)),
    ],
    "powershell.exe Write-Host こんにちは": [("out", "こんにちは\n", 0.0)],
    "powershell.exe -": [("out", "output 1\n", -1.0), ("out", "output 2\n", -1.0)],  # -1: after a line of stdin
    "cmd": [("out", "hello world \r\n", -1.0)],
    "Write-Host hi": [("out", "hi\n", 0.0)],
}

_PYWINRM = [  # request, answer
    ("run_cmd_req_input", "run_cmd_req_input_response"),
    ("run_cmd_send_input", "run_cmd_send_input_response"),
    ("run_cmd_send_input_get_output", "run_cmd_send_input_get_output_response"),
    ("stdin_cmd_cleanup", "stdin_cmd_cleanup_response"),
    ("close_shell_request", "close_shell_response"),
]

Post = Callable[[str], tuple[int, str]]


def _no_output(_: str) -> str:
    return "OUTPUT"


async def _play(process: WinProcess, line: str) -> int:
    """A shell that plays what a recording has, and fails where the recorded command did."""
    for stream, text, seconds in _PLAYED[line]:
        if seconds < 0:
            await process.read_line()
        elif seconds:
            await process.sleep(seconds)
        (process.out if stream == "out" else process.err)(text)
    return int(line.endswith("exit 1"))


async def _play_powershell(process: WinProcess, arguments: list[str]) -> int:
    return await _play(process, " ".join(arguments))


class _Waits(Lockstep):
    """Waits end when simulated time comes to them, whoever moves it."""

    async def wait_until(self, until: float, *, background: bool = False) -> None:
        reached = asyncio.Event()
        self.sim.after(until - self.sim.now, reached.set)
        await reached.wait()


class Service:
    """WS-Management of one Windows node, with time that moves while it waits for something."""

    def __init__(self) -> None:
        self._host, self._loop = WindowsHost(), asyncio.new_event_loop()
        self._service = self._loop.run_until_complete(self._make())

    async def _make(self) -> WsmanService:
        programs = PROGRAMS | {"powershell": _play_powershell}
        host = WinHost(self._host.machine, self._host.sim, _Waits(self._host.sim), programs)
        return WsmanService(host, run_shell_line=_play)

    def __call__(self, envelope: str) -> tuple[int, str]:
        """Status and body of the answer."""
        return self._loop.run_until_complete(self._answer(envelope))

    async def _answer(self, envelope: str) -> tuple[int, str]:
        host = ElementTree.fromstring(envelope).findtext(".//{*}To") if envelope.startswith("<s") else ""  # noqa: S314
        client = Client("Administrator", "127.0.0.1", urlsplit(host or "").hostname or "")
        task = asyncio.create_task(self._service.handle(envelope.encode(), client))
        while not task.done():
            for _ in range(20):
                await asyncio.sleep(0)
            if not task.done() and (due := self._host.sim.next_due()) is not None:
                self._host.sim.run_until(due)
        return task.result()

    def close(self) -> None:
        self._service.stop()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()


@pytest.fixture(scope="module")
def post() -> Iterator[Post]:
    service = Service()
    yield service
    service.close()


def _replay(post: Post, exchanges: list[Exchange], output: Callable[[str], object]) -> Iterator[tuple[Any, Any]]:
    """(recorded, answered) of each exchange, with the identifiers of the lab in the place of those recorded."""
    ids: dict[str, str] = {}
    for exchange in exchanges:
        request, recorded = exchange.request, exchange.response
        for old, new in ids.items():
            request = request.replace(old, new)
        status, answer = post(request)
        for old, new in zip(_ID.findall(recorded), _ID.findall(answer), strict=False):
            ids.setdefault(old, new)
        for old, new in ids.items():
            recorded = recorded.replace(old, new)
        yield (
            (exchange.status, namespaces(recorded), shape(recorded, None, output)),
            (status, namespaces(answer), shape(answer, request, output)),
        )


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("winrs_standard.yml", str),
        ("winrs_stderr_rc.yml", str),
        ("winrs_unicode.yml", str),
        ("winrs_send.yml", str),
        ("winrs_environment.yml", _no_output),
        ("winrs_noprofile.yml", _no_output),
        ("winrs_extra_opts.yml", str),
        ("winrs_no_cmd_shell.yml", str),
        ("winrs_bad_cmd_id.yml", str),
        ("winrs_fail_poll_process.yml", str),
        ("winrs_operation_timeout.yml", str),
        ("winrs_open_already_opened.yml", str),
    ],
)
def test_pypsrp_recordings(post: Post, name: str, output: Callable[[str], object]) -> None:
    exchanges = load(name)
    pairs = list(_replay(post, exchanges, output))
    assert len(pairs) == len(exchanges) > 1
    for recorded, answered in pairs:
        assert answered == recorded


def test_config_has_the_recorded_values(post: Post) -> None:
    """All but CredSSP, which the recorded machine had switched on."""
    (exchange,) = [item for item in load("config_get.yml") if "config" in item.request]
    recorded = exchange.response.replace("<cfg:CredSSP>true", "<cfg:CredSSP>false")
    status, answer = post(exchange.request)
    assert (status, namespaces(answer)) == (exchange.status, namespaces(recorded))
    assert shape(answer, exchange.request) == shape(recorded, None)


@pytest.mark.parametrize("name", ["2150858767_bad_timeout_header", "2150858843_shell_gone_get"])
def test_recorded_faults(post: Post, name: str) -> None:
    request, recorded = read(f"faults/{name}.request.xml"), read(f"faults/{name}.response.xml")
    status, answer = post(request)
    assert (status, namespaces(answer)) == (500, namespaces(recorded))
    assert shape(answer, request) == shape(recorded, None)


def _requests() -> dict[str, str]:
    """Requests to which the recorded fault belongs; the requests themselves were not recorded."""
    create, command, receive = (load("winrs_standard.yml")[index].request for index in range(3))
    return {
        "pypsrp_unit_MustUnderstand": create.replace("wsman:ResourceURI", "wsman:ResourceUri"),
        "pypsrp_unit_2150858817_server2008": command.replace("rsp:Arguments", "rsp:Argument"),
        "pypsrp_unit_87_server2016": re.sub(r' CommandId="[^"]+"', "", receive),
        "masterzen_executeCommandResponseWithError": command.replace(">hi<", f">{'x' * 9000}<"),
        "masterzen_operationTimeoutResponse": receive.replace("PT20S", "PT1S"),
    }


@pytest.mark.parametrize("name", list(_requests()))
def test_faults_whose_requests_are_known(post: Post, name: str) -> None:
    """In a shell with a command that waits for its input."""
    create, command, *_, delete = load("winrs_send.yml")
    (old_shell,) = set(_ID.findall(create.response))
    shell = _ID.findall(post(create.request)[1])[0]
    running = _ID.findall(post(command.request.replace(old_shell, shell))[1])[0]
    request = re.sub(r'(Name="ShellId">)[0-9A-F-]{36}', rf"\g<1>{shell}", _requests()[name])
    request = re.sub(r'(CommandId=")[0-9A-F-]{36}', rf"\g<1>{running}", request)
    status, answer = post(request)
    recorded = re.sub(r"RelatesTo>[^<]+<", f"RelatesTo>{_message_id(request)}<", read(f"faults/{name}.xml"))
    assert status == 500
    assert namespaces(answer) == namespaces(recorded)
    assert shape(answer, request) == shape(recorded, None)
    assert post(delete.request.replace(old_shell, shell))[0] == 200


def _message_id(request: str) -> str:
    match = re.search(r"MessageID>([^<]+)<", request)
    assert match
    return match[1]


def test_pywinrm_requests_are_answered_as_recorded(post: Post) -> None:
    """Its mustUnderstand has no namespace, and its To is always the same. The recorded Create is of an old Windows."""
    status, answer = post(read("pywinrm/open_shell_request.xml"))
    assert (status, "http://windows-host:5985/wsman" in answer) == (200, True)
    ids = {"shell": _ID.findall(answer)[0]}
    for request_name, answer_name in _PYWINRM:
        request, recorded = read(f"pywinrm/{request_name}.xml"), read(f"pywinrm/{answer_name}.xml")
        request = re.sub(r'(Name="ShellId">)[^<]+', rf"\g<1>{ids.get('shell', '')}", request)
        request = re.sub(r'(CommandId=")[^"]+', rf"\g<1>{ids.get('command', '')}", request)
        status, answer = post(request)
        if "CommandId>" in answer:
            ids["command"] = _ID.findall(answer)[0]
        assert (status, set(namespaces(answer))) == (200, set(namespaces(recorded)))
        assert _without_ids(shape(answer, request, _no_output)) == _without_ids(shape(recorded, None, _no_output))


def _without_ids(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(_without_ids(item) for item in part)
    return re.sub(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", "ID", part) if isinstance(part, str) else part


@pytest.mark.parametrize(
    ("envelope", "code"),
    [("", "2150858817"), ("<html/>", "2150858817"), ("<a", "2150858817")],
)
def test_bodies_that_are_no_envelopes(post: Post, envelope: str, code: str) -> None:
    status, answer = post(envelope)
    assert status == 500
    assert f'Code="{code}"' in answer


def test_a_shell_that_does_not_exist(post: Post) -> None:
    command = load("winrs_standard.yml")[1].request
    status, answer = post(command)
    assert status == 500
    assert 'Code="2150858843"' in answer
    assert "4283CBDC-3706-415B-88BD-B385F3E51A53 failed because the shell was not found on the server" in answer
