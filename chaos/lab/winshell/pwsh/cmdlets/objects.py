"""Cmdlets on values of the pipeline, and output."""

from __future__ import annotations

from chaos.lab.winshell.pwsh import operators
from chaos.lab.winshell.pwsh.dotnet import constructor
from chaos.lab.winshell.pwsh.invocation import Cmdlet, Invocation
from chaos.lab.winshell.pwsh.members import get_property
from chaos.lab.winshell.pwsh.output import display
from chaos.lab.winshell.pwsh.syntax import Script
from chaos.lab.winshell.pwsh.values import (
    NetObject,
    ScriptError,
    Value,
    from_items,
    to_bool,
    to_items,
    to_json,
    to_number,
    to_text,
)

_COMPARISONS = ("eq", "ne", "gt", "ge", "lt", "le", "like", "notlike", "match", "notmatch", "in", "contains")


async def _out_null(_: Invocation) -> list[Value]:
    return []


async def _out_string(call: Invocation) -> list[Value]:
    parts: list[str] = []
    for value in call.input:
        display(call.process.replace(out=parts.append), value)
    return ["".join(parts)]


async def _write_output(call: Invocation) -> list[Value]:
    return call.items("InputObject") or call.input


async def _write_host(call: Invocation) -> list[Value]:
    """Text and line end as two pieces of output, the line end a single byte, as recorded."""
    call.process.out(" ".join(to_text(value) for value in call.items("Object")))
    if not call.is_set("NoNewline"):
        call.process.out("\n")
    return []


async def _write_error(call: Invocation) -> list[Value]:
    raise ScriptError(call.text("Message"), "Microsoft.PowerShell.Commands.WriteErrorException")


async def _for_each(call: Invocation) -> list[Value]:
    """``ForEach-Object { }``, or with the name of a property."""
    body, found = call.value("Process"), []
    for item in call.input:
        if isinstance(body, Script):
            found += await call.call(body, item)
        else:
            found += to_items(get_property(item, to_text(body)))
    return found


async def _where(call: Invocation) -> list[Value]:
    """``Where-Object { }``, or ``Where-Object Property -eq value``."""
    condition, found = call.value("FilterScript"), []
    operator = next((name for name in _COMPARISONS if name in call.values), "")
    for item in call.input:
        if isinstance(condition, Script):
            is_chosen = to_bool(from_items(await call.call(condition, item)))
        else:
            value = get_property(item, to_text(condition))
            is_chosen = to_bool(operators.apply(operator, value, call.value(operator)) if operator else value)
        if is_chosen:
            found.append(item)
    return found


async def _select(call: Invocation) -> list[Value]:
    items = call.input
    if (first := call.value("First")) is not None:
        items = items[: int(to_number(first))]
    if (last := call.value("Last")) is not None:
        items = items[-int(to_number(last)) :]
    if name := call.text("ExpandProperty"):
        return [value for item in items for value in to_items(get_property(item, name))]
    names = [to_text(name) for name in call.items("Property")]
    if not names or names == ["*"]:
        return items
    return [
        NetObject("Selected.System.Management.Automation.PSCustomObject", {n: get_property(item, n) for n in names})
        for item in items
    ]


async def _sort(call: Invocation) -> list[Value]:
    """By a property or the value itself; texts ignore case."""
    name = call.text("Property")

    def key(item: Value) -> tuple[bool, Value]:
        value = get_property(item, name) if name else item
        return (False, value) if isinstance(value, int | float) else (True, to_text(value).lower())

    found = sorted(call.input, key=key, reverse=call.is_set("Descending"))
    if call.is_set("Unique"):
        return [item for number, item in enumerate(found) if not number or key(item) != key(found[number - 1])]
    return found


async def _to_json(call: Invocation) -> list[Value]:
    value = call.value("InputObject") if "InputObject" in call.values else from_items(call.input)
    return [to_json(value, compress=call.is_set("Compress"))]


async def _new_object(call: Invocation) -> list[Value]:
    """``New-Object Type(arguments)``, or with -ArgumentList; an array is the list of arguments. Raises ScriptError."""
    name = call.text("TypeName")
    if name.lower() in ("psobject", "pscustomobject"):
        table = call.value("Property")
        properties = {to_text(key): value for key, value in table.items()} if isinstance(table, dict) else {}
        return [NetObject("System.Management.Automation.PSCustomObject", properties)]
    return [constructor(call.process, name, to_items(call.value("ArgumentList")))]


async def _help(_: Invocation) -> list[Value]:
    return ["\r\nTOPIC\r\n    Windows PowerShell Help System\r\n"]


CMDLETS: dict[str, Cmdlet] = {
    "Out-Null": Cmdlet(_out_null),
    "Out-String": Cmdlet(_out_string),
    "Write-Output": Cmdlet(_write_output, ("InputObject",), ("NoEnumerate",), ("InputObject",), takes_rest=True),
    "Write-Host": Cmdlet(_write_host, ("Object",), ("NoNewline",), ("Object",), takes_rest=True),
    "Write-Error": Cmdlet(_write_error, ("Message",), (), ("Message",), ("Message",)),
    "ForEach-Object": Cmdlet(_for_each, ("Process",), (), ("Process",), ("Process",)),
    "Where-Object": Cmdlet(_where, ("FilterScript", *_COMPARISONS), (), ("FilterScript",), ("FilterScript",)),
    "Select-Object": Cmdlet(_select, ("Property", "ExpandProperty", "First", "Last"), (), ("Property",)),
    "Sort-Object": Cmdlet(_sort, ("Property",), ("Descending", "Unique"), ("Property",)),
    "ConvertTo-Json": Cmdlet(_to_json, ("InputObject", "Depth"), ("Compress",), ("InputObject",)),
    "New-Object": Cmdlet(
        _new_object, ("TypeName", "ArgumentList", "Property"), (), ("TypeName", "ArgumentList"), ("TypeName",)
    ),
    "Get-Help": Cmdlet(_help),
}
