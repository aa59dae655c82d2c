r"""reg.exe query. Numbers are shown in hexadecimal; strings of a REG_MULTI_SZ are joined with \0."""

from __future__ import annotations

from chaos.lab.windows.registry import KeyPathError, Value, WindowsRegistry
from chaos.lab.winshell.process import WinProcess

_NOT_FOUND = "ERROR: The system was unable to find the specified registry key or value."


async def reg(process: WinProcess, arguments: list[str]) -> int:
    """``reg query KEY /v NAME``: one value. ``reg query KEY /f TEXT /d``: values whose data has the text."""
    registry = process.machine.registry
    try:
        match arguments:
            case ["query", key, "/v", name]:
                value = registry.value(key, name)
                if value is None:
                    return process.fail(_NOT_FOUND)
                _print(process, registry, key, [value])
                return 0
            case ["query", key, "/f", text, "/d"]:
                return _search(process, registry, key, text.lower())
    except KeyPathError:
        return process.fail('ERROR: Invalid key name.\r\nType "REG QUERY /?" for usage.')
    return process.fail('ERROR: Invalid syntax.\r\nType "REG /?" for usage.')


def _search(process: WinProcess, registry: WindowsRegistry, path: str, wanted: str) -> int:
    """Values of one key; the search ignores case."""
    values = registry.values(path)
    if values is None:
        return process.fail(_NOT_FOUND)
    found = [value for value in values if wanted in _text(value).lower()]
    if found:
        _print(process, registry, path, found)
    process.line(f"End of search: {len(found)} match(es) found.")
    return 0 if found else 1


def _print(process: WinProcess, registry: WindowsRegistry, path: str, values: list[Value]) -> None:
    process.line()
    process.line(registry.display_path(path))
    for value in values:
        process.line(f"    {value.name}    {value.kind}    {_text(value)}")
    process.line()


def _text(value: Value) -> str:
    if isinstance(value.data, int):
        return f"0x{value.data:x}"
    return "\\0".join(value.data) if isinstance(value.data, tuple) else value.data
