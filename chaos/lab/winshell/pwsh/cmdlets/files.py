"""Cmdlets of files, drives and the registry."""

from __future__ import annotations

from chaos.lab.windows.disk import disk_of
from chaos.lab.windows.files import has_directory, read_file, write_file
from chaos.lab.windows.registry import KeyPathError
from chaos.lab.winshell.pwsh.invocation import Cmdlet, Invocation
from chaos.lab.winshell.pwsh.values import NetObject, ScriptError, Value, to_text


def _registry_path(path: str) -> str | None:
    """Path of a key in a form of the lab's registry, None for a path of a file."""
    if path.lower().startswith("registry::"):
        return path[len("registry::") :]
    root, colon, rest = path.partition(":")
    return f"{root}\\{rest.lstrip(chr(92))}" if colon and root.upper() in ("HKLM", "HKCU") else None


def _missing(path: str, kind: str = "ItemNotFoundException") -> ScriptError:
    text = f"Cannot find path '{path}' because it does not exist."
    return ScriptError(text, "PathNotFound", f"ObjectNotFound: ({path}:String) [], {kind}")


def _path(call: Invocation) -> str:
    return call.text("LiteralPath") or call.text("Path")


async def _test_path(call: Invocation) -> list[Value]:
    path, machine = _path(call), call.process.machine
    if (key := _registry_path(path)) is not None:
        return [machine.registry.values(key) is not None]
    return [read_file(machine.files, path) is not None or has_directory(machine.files, path)]


async def _get_content(call: Invocation) -> list[Value]:
    """Lines, or with -Raw the text. Raises ScriptError."""
    content = read_file(call.process.machine.files, _path(call))
    if content is None:
        raise _missing(_path(call))
    return [content] if call.is_set("Raw") else list(content.splitlines())


async def _set_content(call: Invocation) -> list[Value]:
    values = call.items("Value") or call.input
    end = "" if call.is_set("NoNewline") else "\r\n"
    write_file(call.process.machine.files, _path(call), "".join(to_text(value) + end for value in values))
    return []


async def _remove_item(call: Invocation) -> list[Value]:
    """Raises ScriptError."""
    path, machine = _path(call), call.process.machine
    if (key := _registry_path(path)) is not None:
        if not machine.registry.delete_key(key):
            raise _missing(path)
    elif read_file(machine.files, path) is None:
        raise _missing(path)
    else:
        write_file(machine.files, path, None)
    return []


def _read_key(call: Invocation) -> dict[str, Value]:
    """Values of a key, or the ones that are named. Raises ScriptError."""
    path = _path(call)
    try:
        values = call.process.machine.registry.values(_registry_path(path) or "")
    except KeyPathError as error:
        raise ScriptError("The lab has properties of registry keys only.", "NotSimulated", ends=True) from error
    if values is None:
        raise _missing(path)
    known: dict[str, Value] = {
        item.name: list(item.data) if isinstance(item.data, tuple) else item.data for item in values
    }
    names = [to_text(name) for name in call.items("Name")]
    for name in names:
        if name.lower() not in [item.lower() for item in known]:
            text = f"Property {name} does not exist at path {path}."
            raise ScriptError(text, "System.Management.Automation.PSArgumentException", "InvalidArgument: (:) []")
    wanted = [name.lower() for name in names]
    return {name: value for name, value in known.items() if not names or name.lower() in wanted}


async def _item_property(call: Invocation) -> list[Value]:
    return [NetObject("System.Management.Automation.PSCustomObject", _read_key(call))]


async def _item_property_value(call: Invocation) -> list[Value]:
    return list(_read_key(call).values())


async def _drive(call: Invocation) -> list[Value]:
    """Drive C. Raises ScriptError for any other."""
    name = call.text("Name") or "C"
    if name.upper() != "C":
        text = f"Cannot find drive. A drive with the name '{name}' does not exist."
        raise ScriptError(text, "GetLocationNoMatchingDrive", f"ObjectNotFound: ({name}:String) []")
    disk = disk_of(call.process.machine)
    properties = {"Name": "C", "Used": disk.size - disk.free, "Free": disk.free, "Root": "C:\\"}
    return [NetObject("System.Management.Automation.PSDriveInfo", properties, text="C")]


async def _location(call: Invocation) -> list[Value]:
    directory = call.process.directory
    return [NetObject("System.Management.Automation.PathInfo", {"Path": directory}, text=directory)]


_PATH = ("Path", "LiteralPath")
CMDLETS: dict[str, Cmdlet] = {
    "Test-Path": Cmdlet(_test_path, (*_PATH, "PathType"), (), ("Path",)),
    "Get-Content": Cmdlet(_get_content, (*_PATH, "Encoding"), ("Raw",), ("Path",)),
    "Set-Content": Cmdlet(_set_content, (*_PATH, "Value", "Encoding"), ("NoNewline", "Force"), ("Path", "Value")),
    "Remove-Item": Cmdlet(_remove_item, _PATH, ("Force", "Recurse"), ("Path",)),
    "Get-ItemProperty": Cmdlet(_item_property, (*_PATH, "Name"), (), ("Path", "Name")),
    "Get-ItemPropertyValue": Cmdlet(_item_property_value, (*_PATH, "Name"), (), ("Path", "Name"), ("Name",)),
    "Get-PSDrive": Cmdlet(_drive, ("Name",), (), ("Name",)),
    "Get-Location": Cmdlet(_location),
}
