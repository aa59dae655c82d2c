"""[Console], [Environment], [Text.Encoding], [Convert], [Math], [string]."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from functools import partial

from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.pwsh.values import Method, NetObject, Value, call_error, to_bool, to_number, to_text

_ENCODINGS = {"unicode": "utf-16-le", "utf8": "utf-8", "ascii": "ascii", "default": "cp1252"}


def _reader(process: WinProcess) -> NetObject:
    async def read_to_end() -> str:
        parts = []
        while line := await process.read_line():
            parts.append(line)
        return "".join(parts)

    async def read_line() -> str | None:
        line = await process.read_line()
        return line.rstrip("\r\n") if line else None

    return NetObject("System.IO.TextReader", {}, {"ReadToEnd": read_to_end, "ReadLine": read_line})


def _writer(write: Callable[[str], None]) -> NetObject:
    methods: dict[str, Method] = {
        "Write": lambda value: write(to_text(value)),
        "WriteLine": lambda value="": write(to_text(value) + "\r\n"),
        "Flush": lambda: None,
    }
    return NetObject("System.IO.TextWriter", {}, methods)


def _encoding(name: str, _: WinProcess) -> NetObject:
    codec = _ENCODINGS[name]
    methods: dict[str, Method] = {
        "GetString": lambda data: bytes(data).decode(codec, "replace"),
        "GetBytes": lambda text: list(to_text(text).encode(codec, "replace")),
    }
    return NetObject(f"System.Text.{name}Encoding", {}, methods)


def _from_base64(_: WinProcess, text: Value) -> list[int]:
    try:
        return list(base64.b64decode(to_text(text), validate=True))
    except binascii.Error as error:
        inner = "The input is not a valid Base-64 string as it contains a non-base 64 character."
        raise call_error("FromBase64String", 1, inner, "FormatException") from error


def _environment_variable(process: WinProcess, name: Value) -> str | None:
    return process.environment.get(to_text(name))


PROPERTIES: dict[str, dict[str, Callable[[WinProcess], Value]]] = {
    "console": {
        "in": _reader,
        "out": lambda process: _writer(process.out),
        "error": lambda process: _writer(process.err),
        "outputencoding": partial(_encoding, "utf8"),
    },
    "environment": {
        "machinename": lambda process: process.machine.computer,
        "username": lambda process: process.user.rpartition("\\")[2],
        "newline": lambda _: "\r\n",
        "systemdirectory": lambda _: r"C:\Windows\system32",
    },
    "text.encoding": {name: partial(_encoding, name) for name in _ENCODINGS},
    "string": {"empty": lambda _: ""},
}
METHODS: dict[str, dict[str, Callable[..., Value]]] = {
    "console": {
        "write": lambda process, value: process.out(to_text(value)),
        "writeline": lambda process, value="": process.line(to_text(value)),
    },
    "environment": {"getenvironmentvariable": _environment_variable},
    "convert": {
        "frombase64string": _from_base64,
        "tobase64string": lambda _, data: base64.b64encode(bytes(data)).decode(),
        "tostring": lambda _, value: to_text(value),
        "toint64": lambda _, value: int(to_number(value)),
    },
    "math": {
        "round": lambda _, value, digits=0: round(to_number(value), int(to_number(digits)) or None),
        "floor": lambda _, value: math.floor(to_number(value)),
        "abs": lambda _, value: abs(to_number(value)),
        "max": lambda _, one, other: max(to_number(one), to_number(other)),
        "min": lambda _, one, other: min(to_number(one), to_number(other)),
    },
    "string": {
        "isnullorempty": lambda _, value: not to_text(value),
        "join": lambda _, separator, items: to_text(separator).join(to_text(item) for item in items),
    },
    "bool": {"parse": lambda _, value: to_bool(to_text(value).lower() == "true")},
}
CONSTRUCTORS: dict[str, Callable[..., Value]] = {}
