"""Events of the System log: who has requested a shutdown, and how the machine stopped before its boot."""

from __future__ import annotations

import json
from contextlib import suppress
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.encoded_script import decode_script, read_script
from chaos.core.fact import find_fact
from chaos.core.windows import system_program
from chaos.engine.registry import load_windows_facts
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED, NOT_PREPARING
from chaos.faults.readings.windows.restarts import parse_events, query_events
from chaos.faults.readings.windows.shutdown_requests import NEWEST_REQUESTS, abort_own_words
from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.programs import PROGRAMS
from chaos.machines.windows_command_line import quote_argument
from tests.kit.win_host import WindowsHost

GENERAL, POWER = "Microsoft-Windows-Kernel-General", "Microsoft-Windows-Kernel-Power"


def event(source: str, number: int, *data: tuple[str, str]) -> str:
    """As wevtutil.exe prints one, with the attributes that real events have and the lab's have not."""
    rows = "".join(
        f"<Data Name='{name}'>{escape(value)}</Data>" if name else f"<Data>{value}</Data>" for name, value in data
    )
    return (
        "<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System><Provider Name='"
        f"{source}' Guid='{{b0aa8734-56f7-41cc-b2f4-de228e98b946}}' EventSourceName='{source}'/>"
        f"<EventID Qualifiers='32768'>{number}</EventID><Version>0</Version><Level>4</Level><Correlation/>"
        f"<Channel>System</Channel></System><EventData>{rows}</EventData></Event>\r\n"
    )


def request(comment: str, process: str = r"C:\Windows\System32\shutdown.exe (WIN1)") -> str:
    """User32 1074, with German texts."""
    values = (process, "WIN1", "Anwendung: Wartung", "0x80040001", "Neustart", comment, r"WIN1\Administrator")
    return event("User32", 1074, *((f"param{number}", value) for number, value in enumerate(values, 1)))


def read(fact: str, stdout: str, exit_code: int = 0) -> object:
    return find_fact(load_windows_facts(), fact).parse(stdout, exit_code)


ABORTED = event("User32", 1075, ("param1", "WIN1"))
OWN = r"shutdown.exe for WIN1\Administrator: nodefall r1-off"
PENDING = [
    (request("nodefall r1-off"), OWN, True),
    (request("nodefall r1-off-2"), r"shutdown.exe for WIN1\Administrator: nodefall r1-off-2", True),
    (request("updates") + request("nodefall r1-off"), r"shutdown.exe for WIN1\Administrator: updates", True),
    (request("updates") + ABORTED + request("nodefall r1-off"), r"shutdown.exe for WIN1\Administrator: updates", False),
    (request("nodefall r11-off"), r"shutdown.exe for WIN1\Administrator: nodefall r11-off", False),
    (request("not nodefall r1-off"), r"shutdown.exe for WIN1\Administrator: not nodefall r1-off", False),
    (request("", "wininit.exe"), r"wininit.exe for WIN1\Administrator: ", False),
    (request("<&'\">"), "shutdown.exe for WIN1\\Administrator: <&'\">", False),
]
NONE_PENDING = [
    ABORTED,
    ABORTED + request("nodefall r1-off"),
    event(GENERAL, 12, ("StartTime", "2026-11-18T11:06:40.0000000Z")),
]


@pytest.mark.parametrize(("stdout", "text", "is_own"), PENDING)
def test_a_pending_shutdown(stdout: str, text: str, is_own: bool) -> None:
    assert read("scheduled-shutdown", stdout) == text
    assert read("preparing-for-shutdown", stdout) == "b true"
    assert read("nodefall-shutdown?run=r1", stdout) is is_own


@pytest.mark.parametrize("stdout", NONE_PENDING)
def test_none_pending(stdout: str) -> None:
    assert read("scheduled-shutdown", stdout) == NO_SHUTDOWN_SCHEDULED
    assert read("preparing-for-shutdown", stdout) == NOT_PREPARING
    assert read("nodefall-shutdown?run=r1", stdout) is False


@pytest.mark.parametrize(
    ("reference", "is_own"), [("tag=r1-off", False), ("tag=r1-off-2", True), ("tag=r1", False), ("run=r1", True)]
)
def test_a_step_is_known_by_its_whole_name(reference: str, is_own: bool) -> None:
    assert read(f"nodefall-shutdown?{reference}", request("nodefall r1-off-2")) is is_own


@pytest.mark.parametrize("query", ["", "?tag=r1-off&run=r1", "?tag="])
def test_either_a_step_or_a_run_is_named(query: str) -> None:
    with pytest.raises(ValueError, match="give tag or run"):
        find_fact(load_windows_facts(), f"nodefall-shutdown{query}")


@pytest.mark.parametrize("fact", ["scheduled-shutdown", "preparing-for-shutdown", "nodefall-shutdown?run=r1"])
def test_a_log_without_any_start_leaves_it_unknown(fact: str) -> None:
    with pytest.raises(ValueError, match="it was cleared or overwritten"):
        read(fact, "")


STARTED, LOGGING = event(GENERAL, 12), event("EventLog", 6005)
LOG_STOPPED, STOPPING = event("EventLog", 6006), event(GENERAL, 13)
UNEXPECTED = event("EventLog", 6008, ("", "10:07:22"), ("", "18.11.2026"))


def unclean(code: str) -> str:
    return event(POWER, 41, ("BugcheckCode", code))


@pytest.mark.parametrize(
    ("newest_first", "stop"),
    [
        ([STARTED, LOG_STOPPED, STOPPING, STARTED], "clean"),
        ([STARTED, STOPPING, STARTED], "clean"),
        ([unclean("0"), UNEXPECTED, STARTED, STARTED], "unclean"),
        ([UNEXPECTED, STARTED, STARTED], "unclean"),
        ([unclean("209"), UNEXPECTED, STARTED, STARTED], "bug-check"),
        ([STARTED, LOG_STOPPED, STOPPING, unclean("209"), STARTED], "clean"),  # the crash was one boot earlier
        ([STARTED, unclean("0"), STARTED], "unknown"),
        ([LOG_STOPPED, STOPPING, STARTED], "unknown"),  # going down now; nothing is known of the stop before
        ([STARTED], "unknown"),
        ([LOG_STOPPED], "unknown"),
        ([], "unknown"),
    ],
)
def test_how_the_machine_stopped(newest_first: list[str], stop: str) -> None:
    assert read("last-stop", "".join(newest_first)) == stop


@pytest.mark.parametrize(
    ("stdout", "exit_code"),
    [
        (request("a"), 15007),
        ("The specified channel could not be found.", 0x3A9F),
        ("<Event", 0),
        ("<Event/>", 0),
        (request("a").replace(">1074<", ">many<"), 0),
    ],
)
def test_output_that_is_no_list_of_events(stdout: str, exit_code: int) -> None:
    for fact in ("scheduled-shutdown", "last-stop", "nodefall-shutdown?run=r1"):
        with pytest.raises(ValueError, match=r"\w"):
            read(fact, stdout, exit_code)


@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc"))), max_size=4))
def test_every_text_of_an_event_survives(comments: list[str]) -> None:
    found = parse_events("".join(map(request, comments)), 0)
    assert [item.value("param6") for item in found] == comments
    assert {item.key for item in found} <= {("User32", 1074)}


@given(st.text(), st.integers())
def test_any_other_output_gives_a_reason(text: str, exit_code: int) -> None:
    with suppress(ValueError):
        assert parse_events(text, exit_code) == []


@pytest.mark.parametrize("tag", ["", "-r1", "r1'", "r1 /a", "r" * 201])
def test_a_tag_that_could_be_something_else_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="tag"):
        find_fact(load_windows_facts(), f"nodefall-shutdown?tag={tag}")


def test_sources_and_ids_of_a_query() -> None:
    """Kernel-General has no 1074 and User32 no 12, so the two lists of the query are enough."""
    query = "/q:*[System[(Provider[@Name='A'] or Provider[@Name='B']) and (EventID=1 or EventID=2)]]"
    assert query_events((("A", 2), ("A", 1), ("B", 1)), 3).argv == (
        *(system_program("wevtutil"), "qe", "System", query, "/c:3", "/rd:true", "/f:xml"),
    )


def test_the_cancelling_script_is_short_enough_for_a_task() -> None:
    argv = abort_own_words("r" * 200)
    assert len(" ".join(argv)) < 8191
    query = json.loads(decode_script(argv).partition(" ")[2])["arguments"]
    assert tuple(query) == NEWEST_REQUESTS.argv[1:]
    assert NEWEST_REQUESTS.argv[0] in read_script("failsafe-cancel-shutdown")


def run(host: WindowsHost, argv: tuple[str, ...]) -> tuple[int, str, str]:
    return host.run(" ".join(map(quote_argument, argv)), cmd=False)


def read_from(host: WindowsHost, fact: str) -> object:
    found = find_fact(load_windows_facts(), fact)
    code, stdout, _ = run(host, found.command_for({}).argv)
    return found.parse(stdout, code)


def test_on_a_simulated_host() -> None:
    host = WindowsHost()
    shut_down = (system_program("shutdown"), "/s", "/f", "/t", "60", "/c")
    assert read_from(host, "last-stop") == "unknown"
    assert run(host, (*shut_down, "nodefall r1-off"))[0] == 0
    assert read_from(host, "scheduled-shutdown") == OWN
    assert run(host, abort_own_words("r1-of"))[0] == 0  # another step
    assert read_from(host, "nodefall-shutdown?tag=r1-off") is True
    assert run(host, abort_own_words("r1-off"))[0] == 0
    assert read_from(host, "preparing-for-shutdown") == NOT_PREPARING
    assert run(host, (*shut_down, "updates"))[0] == 0
    assert run(host, abort_own_words("r1-off"))[0] == 0  # its own is cancelled; this one is another's
    assert str(read_from(host, "scheduled-shutdown")).endswith(": updates")


def test_a_failsafe_task_that_cannot_read_the_log_has_not_done_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would delete itself."""
    host = WindowsHost()

    async def wevtutil(process: WinProcess, arguments: list[str]) -> int:
        return 1722

    monkeypatch.setitem(PROGRAMS, "wevtutil", wevtutil)
    assert run(host, abort_own_words("r1-off"))[0] == 1722


def test_a_request_that_windows_refused_does_not_hide_the_steps_own() -> None:
    host = WindowsHost()
    assert run(host, (system_program("shutdown"), "/s", "/f", "/t", "60", "/c", "nodefall r1-off"))[0] == 0
    host.machine.event_log.log_shutdown_request("a.exe", r"W\A", "restart", "Other|0x0", "updates")
    assert read_from(host, "nodefall-shutdown?tag=r1-off") is True
    assert run(host, abort_own_words("r1-off"))[0] == 0
    assert host.machine.power.scheduled is None


def test_a_cleared_log_of_a_simulated_host() -> None:
    host = WindowsHost()
    host.machine.event_log.records.clear()
    with pytest.raises(ValueError, match="it was cleared or overwritten"):
        read_from(host, "scheduled-shutdown")
    assert run(host, abort_own_words("r1-off"))[0] == 0


@pytest.mark.parametrize(
    ("stop", "expected"), [("crash", "bug-check"), ("power_off", "unclean"), ("request_shutdown", "clean")]
)
def test_stops_of_a_simulated_host(stop: str, expected: str) -> None:
    host = WindowsHost()
    getattr(host.machine, stop)(*(("reboot",) if stop == "request_shutdown" else ()))
    host.wait(60.0)
    host.machine.power_on()
    host.wait(60.0)
    assert read_from(host, "last-stop") == expected
    assert read_from(host, "preparing-for-shutdown") == NOT_PREPARING
