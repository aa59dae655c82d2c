"""The .NET types that scripts may use: static members, constructors, casts. Names ignore case and ``System.``."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.pwsh.dotnet import console, files, network, process, times
from chaos.lab.winshell.pwsh.members import no_method
from chaos.lab.winshell.pwsh.values import ScriptError, Value, to_bool, to_items, to_number, to_text

Property = Callable[[WinProcess], Value]
Function = Callable[..., Value]  # the process, then the arguments
_MODULES = (console, files, network, process, times)
PROPERTIES: dict[str, dict[str, Property]] = {}
METHODS: dict[str, dict[str, Function]] = {}
CONSTRUCTORS: dict[str, Function] = {}
CASTS: dict[str, Callable[[Value], Value]] = {
    "int": lambda value: round(to_number(value)),
    "int32": lambda value: round(to_number(value)),
    "int64": lambda value: round(to_number(value)),
    "long": lambda value: round(to_number(value)),
    "uint32": lambda value: round(to_number(value)),
    "uint64": lambda value: round(to_number(value)),
    "double": lambda value: float(to_number(value)),
    "string": to_text,
    "bool": to_bool,
    "array": to_items,
    "void": lambda _: None,
    "net.ipaddress": network.to_address,
    "ipaddress": network.to_address,
    "timespan": times.to_span,
}
for _module in _MODULES:
    PROPERTIES.update(_module.PROPERTIES)
    METHODS.update(_module.METHODS)
    CONSTRUCTORS.update(_module.CONSTRUCTORS)
_SETTABLE = {("console", "outputencoding"), ("console", "inputencoding")}


def _key(name: str) -> str:
    return name.lower().removeprefix("system.")


def _unknown_type(name: str) -> ScriptError:
    return ScriptError(
        f"Unable to find type [{name}].", "TypeNotFound", f"InvalidOperation: ({name}:TypeName) [], RuntimeException"
    )


def _check(name: str) -> str:
    key = _key(name)
    if key not in PROPERTIES and key not in METHODS and key not in CONSTRUCTORS and key not in CASTS:
        raise _unknown_type(name)
    return key


def static_property(host: WinProcess, name: str, member: str) -> Value:
    """A static property, None if the type has none of that name. Raises ScriptError for an unknown type."""
    found = PROPERTIES.get(_check(name), {}).get(member.lower())
    return None if found is None else found(host)


def static_setter(name: str, member: str) -> None:
    """Set the encoding of the console, which is UTF-8 here anyway. Raises ScriptError for any other property."""
    if (_key(name), member.lower()) not in _SETTABLE:
        raise ScriptError(f"The lab sets no property '{member}' of [{name}].", "NotSimulated", ends=True)


def static_method(host: WinProcess, name: str, member: str, arguments: list[Value]) -> Value:
    """Call a static method; the result may be awaitable. Raises ScriptError."""
    found = METHODS.get(_check(name), {}).get(member.lower())
    if found is None:
        raise no_method(name, member)
    return _call(found, host, member, arguments)


def constructor(host: WinProcess, name: str, arguments: list[Value]) -> Value:
    """Create an object. Raises ScriptError."""
    found = CONSTRUCTORS.get(_check(name))
    if found is None:
        raise no_method(name, "new")
    return _call(found, host, ".ctor", arguments)


def _call(function: Function, host: WinProcess, member: str, arguments: list[Value]) -> Value:
    try:
        inspect.signature(function).bind(host, *arguments)
    except TypeError as error:
        text = f'Cannot find an overload for "{member}" and the argument count: "{len(arguments)}".'
        raise ScriptError(text, "MethodCountCouldNotFindBest", "NotSpecified: (:) [], MethodException") from error
    return function(host, *arguments)
