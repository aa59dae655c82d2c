"""Facts of Windows services: sc.exe in several languages, and values of the registry."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.core.fact import find_fact
from chaos.engine.registry import load_windows_facts

FACTS = load_windows_facts()
RUNNING = """
SERVICE_NAME: kubelet
        TYPE               : 10  WIN32_OWN_PROCESS
        STATE              : 4  RUNNING
                                (STOPPABLE, NOT_PAUSABLE, ACCEPTS_PRESHUTDOWN)
        WIN32_EXIT_CODE    : 0  (0x0)
        SERVICE_EXIT_CODE  : 0  (0x0)
        CHECKPOINT         : 0x0
        WAIT_HINT          : 0x0
        PID                : 2412
        FLAGS              : \r
"""
KOREAN = """
SERVICE_NAME: kubelet
        종류               : 10  WIN32_OWN_PROCESS
        상태              : 3  STOP_PENDING
                                (NOT_STOPPABLE, NOT_PAUSABLE, IGNORES_SHUTDOWN)
        WIN32_종료_코드    : 0  (0x0)
        서비스_종료_코드  : 0  (0x0)
        검사점         : 0x1
        WAIT_HINT          : 0x1388
        PID                : 0
        플래그              :
"""
STOPPED = RUNNING.replace("4  RUNNING", "1  STOPPED").replace("2412", "0")
UNKNOWN = "[SC] EnumQueryServicesStatus:OpenService FAILED 1060:\n\nThe specified service does not exist.\n"
KEY = "\r\nHKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\kubelet\r\n"
GOOD: list[tuple[str, str, int, Any]] = [
    ("kubelet-state", RUNNING, 0, "active"),
    ("kubelet-state", KOREAN, 0, "deactivating"),
    ("runtime-state", STOPPED, 0, "inactive"),
    ("service-state?service=w32time", STOPPED, 0, "inactive"),
    ("kubelet-process", RUNNING, 0, {"pid": 2412}),
    ("kubelet-process", RUNNING.replace("\n", "\r\n"), 0, {"pid": 2412}),
    ("kubelet-process", KOREAN, 0, {}),
    ("runtime-unit", RUNNING, 0, "containerd"),
    ("kubelet-dependencies", "", 1, []),
    ("kubelet-dependencies", f"{KEY}    DependOnService    REG_MULTI_SZ    containerd\r\n\r\n", 0, ["containerd"]),
    (
        "kubelet-dependencies",
        f"{KEY}    DependOnService    REG_MULTI_SZ    HNS\\0Containerd\r\n\r\n",
        0,
        ["containerd", "hns"],
    ),
]
BAD = [
    ("kubelet-state", UNKNOWN, 1060, "no such service"),
    ("kubelet-state", "", 0, "cannot parse"),
    ("kubelet-process", UNKNOWN, 1060, "no such service"),
    ("kubelet-process", "PID : x", 0, "cannot parse"),
    ("kubelet-process", "\n  A : x\n  B : y\n", 0, "cannot parse"),
    ("kubelet-process", RUNNING, 5, "cannot parse"),
    ("runtime-unit", UNKNOWN, 1060, "no service containerd"),
    ("runtime-unit", "", 5, "cannot parse"),
    ("kubelet-dependencies", KEY, 0, "no value DependOnService"),
]


@pytest.mark.parametrize(("reference", "stdout", "code", "value"), GOOD)
def test_parsed(reference: str, stdout: str, code: int, value: Any) -> None:
    assert find_fact(FACTS, reference).parse(stdout, code) == value


@pytest.mark.parametrize(("reference", "stdout", "code", "why"), BAD)
def test_output_that_is_not_understood(reference: str, stdout: str, code: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        find_fact(FACTS, reference).parse(stdout, code)


@pytest.mark.parametrize("service", ["", "-x", "a b", "a&calc", "..\\x"])
def test_a_service_has_a_plain_name(service: str) -> None:
    with pytest.raises(ValueError, match="service-state"):
        find_fact(FACTS, f"service-state?service={service.replace('&', '%26')}")
