"""Evaluation of expressions."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod

from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.pwsh import members, operators
from chaos.lab.winshell.pwsh.dotnet import CASTS, constructor, static_method, static_property, static_setter
from chaos.lab.winshell.pwsh.syntax import (
    Binary,
    Block,
    Call,
    Cast,
    Expandable,
    Expression,
    Group,
    Index,
    Items,
    Literal,
    Member,
    Script,
    Statement,
    Table,
    TypeName,
    Unary,
    Variable,
)
from chaos.lab.winshell.pwsh.values import ScriptError, Value, from_items, to_bool, to_number, to_text


class Evaluator(ABC):
    """Variables of one powershell.exe by lower-case name."""

    def __init__(self, process: WinProcess) -> None:
        self.process = process
        self.variables: dict[str, Value] = {
            "lastexitcode": None,
            "pshome": r"C:\Windows\System32\WindowsPowerShell\v1.0",
        }

    @abstractmethod
    async def script_values(self, script: Script) -> list[Value]:
        """Values that a script writes."""

    @abstractmethod
    async def statement_value(self, statement: Statement) -> Value:
        """Value of a statement."""

    def binary(self, operator: str, left: Value, right: Value) -> Value:
        """Apply an operator. Raises ScriptError."""
        return operators.apply(operator, left, right)

    async def evaluate(self, expression: Expression) -> Value:
        """Value of an expression. A script block is its Script. Raises ScriptError."""
        match expression:
            case Literal():
                value: Value = expression.value
            case Expandable():
                parts = [item if isinstance(item, str) else await self.evaluate(item) for item in expression.parts]
                value = "".join(to_text(part) for part in parts)
            case Variable():
                value = self._variable(expression)
            case Block():
                value = expression.body
            case Group():
                values = await self.script_values(expression.body)
                value = values if expression.is_array else from_items(values)
            case Items():
                value = [await self.evaluate(item) for item in expression.items]
            case Table():
                value = {await self.evaluate(key): await self.statement_value(item) for key, item in expression.entries}
            case Unary():
                operand = await self.evaluate(expression.value)
                value = not to_bool(operand) if expression.operator == "not" else -to_number(operand)
            case Binary():
                value = await self._binary(expression)
            case _:
                value = await self._access(expression)
        return value

    async def _access(self, expression: Expression) -> Value:
        match expression:
            case Cast():
                return self._cast(expression.type, await self.evaluate(expression.value))
            case Index():
                return members.get_item(await self.evaluate(expression.owner), await self.evaluate(expression.key))
            case Member():
                if isinstance(expression.owner, TypeName):
                    return static_property(self.process, expression.owner.name, expression.name)
                return members.get_property(await self.evaluate(expression.owner), expression.name)
            case Call():
                return await self._call(expression)
            case TypeName():
                return expression.name
        raise ScriptError(f"{type(expression).__name__} is not simulated.", "NotSimulated", ends=True)

    async def _call(self, call: Call) -> Value:
        arguments = [await self.evaluate(item) for item in call.arguments]
        if not isinstance(call.owner, TypeName):
            return await members.call_method(await self.evaluate(call.owner), call.name, arguments)
        if call.name.lower() == "new":
            return constructor(self.process, call.owner.name, arguments)
        result = static_method(self.process, call.owner.name, call.name, arguments)
        return await result if inspect.isawaitable(result) else result

    async def set_member(self, target: Member, value: Value) -> None:
        """Assign to a property. Raises ScriptError."""
        if isinstance(target.owner, TypeName):
            static_setter(target.owner.name, target.name)
        else:
            members.set_property(await self.evaluate(target.owner), target.name, value)

    async def _binary(self, expression: Binary) -> Value:
        left = await self.evaluate(expression.left)
        if expression.operator in ("and", "or"):
            if to_bool(left) is (expression.operator == "or"):
                return expression.operator == "or"
            return to_bool(await self.evaluate(expression.right))
        return self.binary(expression.operator, left, await self.evaluate(expression.right))

    def _variable(self, variable: Variable) -> Value:
        if variable.scope == "env":
            return self.process.environment.get(variable.name)
        return self.variables.get(variable.name.lower())

    def _cast(self, name: str, value: Value) -> Value:
        cast = CASTS.get(name.lower().removeprefix("system."))
        if cast is None:
            raise ScriptError(f"Unable to find type [{name}].", "TypeNotFound", "InvalidOperation: (:TypeName) []")
        return cast(value)
