"""Everything that nodefall sends to Windows is answered by the lab; and what answers its PowerShell scripts."""

from __future__ import annotations

import base64
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.encoded_script import SCRIPTS as PACKAGE
from chaos.core.encoded_script import decode_script, read_script
from chaos.core.windows import powershell
from chaos.engine.registry import load_windows_facts
from chaos.lab.winshell.powershell import SCRIPTS, digest
from chaos.lab.winshell.programs import PROGRAMS
from chaos.lab.winshell.service_scripts import Script
from tests.kit.actionkit import WINDOWS_ACTIONS
from tests.kit.win_host import WindowsHost, script_line
from tests.kit.winrm_exchanges import read

NAMES = sorted(Path(str(item)).stem for item in files(PACKAGE).iterdir() if item.name.endswith(".ps1"))
SOURCES = [
    path
    for folder in ("faults/actions/windows", "faults/readings/windows", "engine", "core", "machines")
    for path in (Path(__file__).parents[3] / "chaos" / folder).rglob("*.py")
]


@pytest.mark.parametrize("name", sorted({*NAMES, *SCRIPTS}))
def test_every_script_has_a_handler_that_was_written_for_its_text(name: str) -> None:
    assert name in NAMES, "the lab answers a script that is not there any more"
    expected = digest(read_script(name))
    assert SCRIPTS.get(name, Script("", lambda *_: None)).digest == expected, (  # type: ignore[arg-type]
        f"compare chaos/lab/winshell/powershell.py with {name}.ps1, then write its digest there: {expected}"
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_script_says_what_it_does_and_is_used(name: str) -> None:
    text = (files(PACKAGE) / f"{name}.ps1").read_text(encoding="ascii")
    assert re.match(r"# \w", text)
    parameters = set(re.findall(r"\$p\.(\w+)", text))
    (described,) = re.findall(r"(?m)^# Parameters: (.*)$", text) or [""]
    assert parameters == set(re.findall(r"(?:^|, )(\w+)", re.sub(r"\([^)]*\)", "", described)))
    assert any(f'powershell("{name}"' in re.sub(r"\(\s+", "(", path.read_text(encoding="utf-8")) for path in SOURCES)
    assert len(" ".join(powershell(name))) < 4000, "cmd.exe takes 8,191 characters, with the parameters"


def test_every_program_has_a_handler() -> None:
    """By their names in the sources; and each of the lab's is sent, notmyfault64 by the inventory."""
    named = {name for path in SOURCES for name in re.findall(r'system_program\("(\w+)"\)', path.read_text("utf-8"))}
    inside = {name for script in NAMES for name in re.findall(r"System32\\(\w+)\.exe", read_script(script))}
    assert named | inside - {"w32tm"} <= PROGRAMS.keys()  # resynchronization is part of the scripts' handlers
    assert PROGRAMS.keys() == named | {"powershell", "notmyfault64"}


def test_every_fact_without_needs_is_read_in_the_lab() -> None:
    host = WindowsHost()
    for name, fact in load_windows_facts().items():
        if not fact.needs and not fact.params and not name.startswith("kubelet-gates"):
            line = " ".join(f'"{word}"' if " " in word else word for word in fact.command_for({}).argv)
            code, stdout, stderr = host.run(line, cmd=False)
            assert "not simulated" not in stderr, name
            assert "The lab" not in stderr, name
            if name != "connection-peers":  # no SSH connection
                fact.parse(stdout.replace("\r\n", "\n"), code)


def test_there_are_windows_actions() -> None:
    """What they send is run in tests/faults/actions/windows and tests/e2e."""
    assert len(WINDOWS_ACTIONS) > 10


@given(st.dictionaries(st.text(st.characters(codec="ascii", categories=["Ll"]), min_size=1), st.text()))
def test_parameters_are_data(parameters: dict[str, str]) -> None:
    """Whatever is in them, it neither ends the literal nor is a quotation mark of PowerShell."""
    argv = powershell("read-time", **{f"x{name}": value for name, value in parameters.items()})
    text = base64.b64decode(argv[-1]).decode("utf-16-le")
    assert text.isascii()
    assert text.count("'") == 4 + 2 * bool(parameters)  # four of the preferences
    name, _, decoded = decode_script(argv).partition(" ")
    assert (name, json.loads(decoded or "{}")) == ("read-time", {f"x{key}": text for key, text in parameters.items()})


def _encoded(text: str) -> str:
    encoded = base64.b64encode(text.encode("utf-16-le")).decode()
    return f"powershell.exe -NoProfile -NonInteractive -EncodedCommand {encoded}"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("powershell.exe -Command Get-Date", "it answers scripts of -NoProfile"),
        ("powershell.exe", "it answers scripts of -NoProfile"),
        ("powershell.exe -NoProfile -NonInteractive -EncodedCommand !", "not properly encoded"),
        (_encoded("Get-Date"), "it does not know this script: Get-Date"),
        (_encoded(base64.b64decode(powershell("read-time")[-1]).decode("utf-16-le") + "\nexit 0"), "another text of"),
    ],
)
def test_what_is_no_script_of_the_set_is_refused(line: str, why: str) -> None:
    code, stdout, stderr = WindowsHost().run(line)
    assert (code, stdout, why in stderr) == (1, "", True)


def test_errors_have_the_recorded_form() -> None:
    """The recording has progress before the error, and what the error was in."""
    _, _, stderr = WindowsHost().script("stop-services", services=["nope"])
    head, _, rest = stderr.partition('<S S="Error">')
    assert rest == "Cannot find any service with service name 'nope'._x000D__x000A_</S></Objs>"
    recorded = read("clixml/pywinrm_stderr_error.txt").replace("\n", "\r\n").replace("\r\r", "\r")
    assert recorded.startswith(head)
    assert '<S S="Error">' in recorded
    assert recorded.rstrip().endswith("_x000D__x000A_</S></Objs>")


@pytest.mark.parametrize(
    ("services", "code", "why"),
    [
        (["kubelet", "containerd"], 0, ""),
        (["w32time", "w32time"], 0, ""),
        (["containerd"], 1, "because it has dependent services"),
        (["gpsvc"], 1, "cannot be stopped"),
        (["nope"], 1, "Cannot find any service"),
    ],
)
def test_stopping_services(services: list[str], code: int, why: str) -> None:
    host = WindowsHost()
    before = host.sim.now
    ran = host.script("stop-services", services=services)
    assert (ran[0], why in ran[2]) == (code, True)
    if code == 0:
        assert not any(host.machine.services.get(name).is_running for name in services)
        assert host.sim.now > before


def test_a_restart_waits_for_the_stop() -> None:
    host = WindowsHost()
    pid = host.machine.services.get("kubelet").pid
    assert host.script("restart-service", service="kubelet") == (0, "", "")
    assert host.machine.services.get("kubelet").is_running
    assert host.machine.services.get("kubelet").pid != pid


def test_a_disabled_service_does_not_start() -> None:
    host = WindowsHost()
    host.stop("kubelet")
    host.configure("kubelet", "disabled")
    code, _, stderr = host.script("start-service", service="kubelet")
    assert (code, "cannot be started" in stderr) == (1, True)


def test_names_are_resolved() -> None:
    host = WindowsHost()
    assert host.script("resolve-name", name="cp")[:2] == (0, "10.89.0.2\r\nfd00:10:89::2\r\n")
    assert host.script("resolve-name", name="10.1.2.3")[:2] == (0, "10.1.2.3\r\n")
    assert "No such host" in host.script("resolve-name", name="nope")[2]


def test_the_profiles_of_the_firewall() -> None:
    host = WindowsHost()
    host.machine.firewall.turn(on=False, profiles=("Domain",))
    lines = host.script("read-firewall")[1].splitlines()
    profiles = ["profile Domain False True", "profile Private True True", "profile Public True True"]
    assert lines == [*profiles, "network Public"]


@pytest.mark.parametrize("kubelet_service", ["service", "nssm"])
def test_the_kubelets_peer(kubelet_service: str) -> None:
    host = WindowsHost(kubelet_service=kubelet_service)
    network, family = host.machine.network, host.machine.kubelet.connection_family
    assert family is not None
    assert host.script("list-peers", ports=[443, 6443])[1] == f"{network.server_addresses[family]} 6443\r\n"
    assert host.script("list-peers", ports=[443])[1] == ""
    host.stop("kubelet")
    assert host.script("list-peers", ports=[443, 6443])[1] == ""


def test_a_program_that_is_not_there_ends_a_task_with_an_error() -> None:
    missing: dict[str, Any] = {"program": r"C:\nope.exe", "arguments": ["x"], "task": "t"}
    assert WindowsHost().run(script_line("failsafe-run", wait=0, **missing), cmd=False)[0] == 1


def test_every_script_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs/windows.md").read_text(encoding="utf-8")
    table = page.split("\n## Scripts\n")[1].split("\n## ")[0].split("|---|---|")[1]
    assert sorted(re.findall(r"`([a-z-]+)`", table)) == NAMES
