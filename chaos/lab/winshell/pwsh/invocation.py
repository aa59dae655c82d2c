"""How cmdlets are called: parameters by name, by the beginning of a name, or by position."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.pwsh.syntax import Script
from chaos.lab.winshell.pwsh.values import ScriptError, Value, from_items, to_bool, to_items, to_text

_COMMON = ("ErrorAction", "WarningAction", "InformationAction", "ErrorVariable", "OutVariable")
_COMMON_SWITCHES = ("Confirm", "WhatIf", "Verbose", "Debug")
_ALIASES = {"ea": "ErrorAction", "wa": "WarningAction", "cn": "ComputerName"}


@dataclass(slots=True)
class Invocation:
    """``input``: what the pipeline brings. ``call``: runs a script block with ``$_``, and returns its values."""

    process: WinProcess
    values: dict[str, Value]
    input: list[Value]
    call: Callable[[Script, Value], Awaitable[list[Value]]]

    def value(self, name: str) -> Value:
        """Value of a parameter, None if it is missing."""
        return self.values.get(name)

    def text(self, name: str) -> str:
        """Text of a parameter, empty if it is missing."""
        return to_text(self.values.get(name))

    def items(self, name: str) -> list[Value]:
        """Values of a parameter that takes an array."""
        return to_items(self.values.get(name))

    def is_set(self, name: str) -> bool:
        """Whether a switch is on."""
        return to_bool(self.values.get(name))


@dataclass(frozen=True, slots=True)
class Cmdlet:
    """``positional``: parameters by position. ``module``: the one that its first use loads, empty for a core one."""

    run: Callable[[Invocation], Awaitable[list[Value]]]
    parameters: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    positional: tuple[str, ...] = ()
    required: tuple[str, ...] = field(default=())
    module: str = ""
    takes_rest: bool = False  # the last positional parameter gets all values that are left

    def bind(self, words: list[tuple[str, Value]]) -> dict[str, Value]:
        """Values by parameter of ``words``: (name, value) with an empty name for values. Raises ScriptError."""
        values, loose = self._bind_names(words)
        if loose and self.takes_rest and self.positional[-1] not in values:
            values[self.positional[-1]] = from_items(loose)
            loose = []
        for parameter in [name for name in self.positional if name not in values][: len(loose)]:
            values[parameter] = loose.pop(0)
        if loose:
            text = f"A positional parameter cannot be found that accepts argument '{to_text(loose[0])}'."
            raise ScriptError(text, "PositionalParameterNotFound", "InvalidArgument: (:) [], ParameterBindingException")
        for parameter in self.required:
            if parameter not in values:
                raise _missing_parameters(parameter)
        return values

    def _bind_names(self, words: list[tuple[str, Value]]) -> tuple[dict[str, Value], list[Value]]:
        """Values by parameter, and those without a name. Raises ScriptError."""
        values: dict[str, Value] = {}
        loose: list[Value] = []
        rest = list(words)
        while rest:
            name, value = rest.pop(0)
            if not name:
                loose.append(value)
                continue
            parameter = self._find(name)
            if parameter in self.switches or parameter in _COMMON_SWITCHES:
                values[parameter] = True if value is None else value
            elif value is not None:
                values[parameter] = value
            elif not rest or rest[0][0]:
                raise _missing_argument(parameter)
            else:
                values[parameter] = rest.pop(0)[1]
        return values, loose

    def _find(self, name: str) -> str:
        """Full name of a parameter. Raises ScriptError."""
        known = (*self.parameters, *self.switches, *_COMMON, *_COMMON_SWITCHES)
        if name.lower() in _ALIASES:
            return _ALIASES[name.lower()]
        exact = [item for item in known if item.lower() == name.lower()]
        found = exact or [item for item in known if item.lower().startswith(name.lower())]
        if len(found) != 1:
            text = f"A parameter cannot be found that matches parameter name '{name}'."
            raise ScriptError(text, "NamedParameterNotFound", "InvalidArgument: (:) [], ParameterBindingException")
        return found[0]


def _missing_argument(parameter: str) -> ScriptError:
    text = f"Missing an argument for parameter '{parameter}'. Specify a parameter of that type and try again."
    return ScriptError(text, "MissingArgument", "InvalidArgument: (:) [], ParameterBindingException")


def _missing_parameters(parameter: str) -> ScriptError:
    text = f"Cannot process command because of one or more missing mandatory parameters: {parameter}."
    return ScriptError(text, "MissingMandatoryParameter", "InvalidArgument: (:) [], ParameterBindingException")
