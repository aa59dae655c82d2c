r"""reg.exe: query, add, delete. Numbers are shown in hexadecimal; strings of a REG_MULTI_SZ are joined with \0."""

from __future__ import annotations

from chaos.lab.windows.registry import NUMBERS, Data, KeyPathError, Value, WindowsRegistry, full_path
from chaos.lab.winshell.process import WinProcess

_KINDS = ("REG_SZ", "REG_EXPAND_SZ", "REG_MULTI_SZ", "REG_DWORD", "REG_QWORD")
_NOT_FOUND = "ERROR: The system was unable to find the specified registry key or value."
_DONE = "The operation completed successfully."


class _SyntaxError(ValueError):
    """A bad option; the text is the verb."""


async def reg(process: WinProcess, arguments: list[str]) -> int:
    """``reg query KEY [/v NAME|/s|/f TEXT /d]``, ``reg add KEY /v NAME /t TYPE /d DATA /f``, ``reg delete KEY /f``."""
    verb = arguments[0].lower() if arguments else ""
    handler = {"query": _query, "add": _add, "delete": _delete}.get(verb)
    if handler is None or len(arguments) < 2:
        return process.fail('ERROR: Invalid syntax.\r\nType "REG /?" for usage.')
    try:
        full_path(arguments[1])
        return handler(process, process.machine.registry, arguments[1], _options(verb, arguments[2:]))
    except _SyntaxError:
        return process.fail(f'ERROR: Invalid syntax.\r\nType "REG {verb.upper()} /?" for usage.')
    except KeyPathError:
        return process.fail(f'ERROR: Invalid key name.\r\nType "REG {verb.upper()} /?" for usage.')


def _options(verb: str, words: list[str]) -> dict[str, str]:
    """Options in lower case; ``/ve`` is ``/v`` with an empty name. Raises _SyntaxError."""
    options: dict[str, str] = {}
    rest = list(words)
    with_value = ("/v", "/f") if verb == "query" else ("/v", "/t", "/d")
    while rest:
        word = rest.pop(0).lower()
        if word in with_value:
            if not rest:
                raise _SyntaxError(verb)
            options[word] = rest.pop(0)
        elif word in ("/d", "/f", "/s", "/va", "/ve"):
            options["/v" if word == "/ve" else word] = ""
        else:
            raise _SyntaxError(verb)
    return options


def _query(process: WinProcess, registry: WindowsRegistry, path: str, options: dict[str, str]) -> int:
    values = registry.values(path)
    if "/v" in options:
        found = registry.value(path, options["/v"])
        values = None if found is None else [found]
    if values is None:
        return process.fail(_NOT_FOUND)
    if "/f" in options:
        return _search(process, registry, path, options)
    _print_key(process, registry, path, values)
    if "/v" not in options:
        for subkey in registry.subkeys(path):
            if "/s" in options:
                _query(process, registry, subkey, options)
            else:
                process.line(subkey)
    return 0


def _search(process: WinProcess, registry: WindowsRegistry, path: str, options: dict[str, str]) -> int:
    """Values of one key whose data contains the text, in any case. Raises _SyntaxError for what is not simulated."""
    if "/d" not in options or "/s" in options or "/v" in options:
        raise _SyntaxError("query")
    wanted = options["/f"].lower()
    found = [value for value in registry.values(path) or [] if wanted in _text(value).lower()]
    if found:
        _print_key(process, registry, path, found)
    process.line(f"End of search: {len(found)} match(es) found.")
    return 0 if found else 1


def _print_key(process: WinProcess, registry: WindowsRegistry, path: str, values: list[Value]) -> None:
    process.line()
    process.line(registry.display_path(path))
    for value in values:
        process.line(f"    {value.name or '(Default)'}    {value.kind}    {_text(value)}")
    process.line()


def _text(value: Value) -> str:
    if isinstance(value.data, int):
        return f"0x{value.data:x}"
    return "\\0".join(value.data) if isinstance(value.data, tuple) else value.data


def _add(process: WinProcess, registry: WindowsRegistry, path: str, options: dict[str, str]) -> int:
    """Raises _SyntaxError."""
    if "/v" not in options and "/d" not in options:
        registry.create(path)
    else:
        kind = options.get("/t", "REG_SZ").upper()
        if "/f" not in options and registry.value(path, options.get("/v", "")) is not None:
            return process.fail("ERROR: The lab simulates no answer to a question: use /f.")
        registry.set(path, options.get("/v", ""), kind, _data(kind, options.get("/d", "")))
    process.line(_DONE)
    return 0


def _data(kind: str, text: str) -> Data:
    """Parse ``/d``. Raises _SyntaxError."""
    if kind not in _KINDS:
        raise _SyntaxError("add")
    if kind in NUMBERS:
        try:
            return int(text or "0", 0)
        except ValueError as error:
            raise _SyntaxError("add") from error
    return tuple(part for part in text.split("\\0") if part) if kind == "REG_MULTI_SZ" else text


def _delete(process: WinProcess, registry: WindowsRegistry, path: str, options: dict[str, str]) -> int:
    if "/va" in options:
        for value in registry.values(path) or []:
            registry.delete_value(path, value.name)
        done = registry.values(path) is not None
    elif "/v" in options:
        done = registry.delete_value(path, options["/v"])
    else:
        done = registry.delete_key(path)
    if not done:
        return process.fail(_NOT_FOUND)
    process.line(_DONE)
    return 0
