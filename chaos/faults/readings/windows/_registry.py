"""``reg.exe query`` of one value."""

from __future__ import annotations

import re

from chaos.core.command import HostCommand
from chaos.core.windows import system_program

_VALUE = re.compile(r"^    (?P<name>.+?)    (?P<kind>REG_\w+)    (?P<data>.*)$", re.MULTILINE)


# Form of what reg.exe prints: the key, and one value; nothing where there is no such value.
VALUE = r"\n*(?:HKEY_[^\n]+\n    [^\n]+    REG_\w+    [^\n]*\n)?\n*"


def query_value(key: str, name: str) -> HostCommand:
    r"""Command whose output :func:`parse_value` understands; ``key`` as ``HKLM\SYSTEM\...``."""
    return HostCommand((system_program("reg"), "query", key, "/v", name), accept=(0, 1))


def parse_value(stdout: str, exit_code: int, name: str) -> str:
    """The value's data as reg.exe prints it, as ``0x1f``. Raises ValueError where there is no such value."""
    found = next((match for match in _VALUE.finditer(stdout.replace("\r", "")) if match["name"] == name), None)
    if exit_code or found is None:
        raise ValueError(f"the registry has no value {name}")
    return found["data"].strip()


def is_missing(stdout: str, exit_code: int) -> bool:
    """Whether reg.exe found no such key or value: it prints nothing but an error then, in the language of Windows."""
    return exit_code == 1 and not stdout.strip()


def parse_number(stdout: str, exit_code: int, name: str) -> int:
    """Like :func:`parse_value`, for a REG_DWORD or REG_QWORD."""
    data = parse_value(stdout, exit_code, name)
    try:
        return int(data, 16)
    except ValueError as error:
        raise ValueError(f"the value {name} of the registry is not a number: {data}") from error


def parse_strings(stdout: str, exit_code: int, name: str) -> list[str]:
    """Like :func:`parse_value`, for a REG_MULTI_SZ."""
    return [text for text in parse_value(stdout, exit_code, name).split("\\0") if text]
