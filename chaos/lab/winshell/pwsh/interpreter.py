"""Evaluation of scripts: statements, pipelines, commands."""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.hostshell.streams import discard
from chaos.lab.winshell.process import ProgramNotFoundError, WinProcess, launch
from chaos.lab.winshell.pwsh import members
from chaos.lab.winshell.pwsh.cmdlets import ALIASES, CMDLETS
from chaos.lab.winshell.pwsh.errors import ErrorStream, error_record, not_recognized
from chaos.lab.winshell.pwsh.evaluator import Evaluator
from chaos.lab.winshell.pwsh.invocation import Invocation
from chaos.lab.winshell.pwsh.output import display
from chaos.lab.winshell.pwsh.syntax import (
    Assignment,
    Command,
    Expression,
    Flow,
    ForEach,
    If,
    Index,
    Member,
    Parameter,
    Pipeline,
    Script,
    Statement,
    Try,
    Variable,
    While,
)
from chaos.lab.winshell.pwsh.values import (
    ScriptError,
    Value,
    from_items,
    to_bool,
    to_items,
    to_number,
    to_text,
)

_QUIET = ("silentlycontinue", "ignore")


class ExitSignal(Exception):
    """``exit``, or an error that ends the script."""

    def __init__(self, code: int) -> None:
        super().__init__(str(code))
        self.code = code


class _LoopSignal(Exception):
    """``break`` or ``continue``."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class _ReturnSignal(Exception):
    """``return``."""


class Interpreter(Evaluator):
    """State of one powershell.exe. ``failed``: whether the last statement failed. ``has_exited``: by ``exit``."""

    def __init__(self, process: WinProcess, errors: ErrorStream) -> None:
        super().__init__(process)
        self.errors = errors
        self.failed = self.has_exited = False
        self._tries = 0

    async def run(self, script: Script) -> int:
        """Run a script; 1 if its last statement failed. The output goes to stdout."""
        try:
            await self._statements(script, lambda value: display(self.process, value), direct=True)
        except ExitSignal as signal:
            self.has_exited = True
            return signal.code
        except (_ReturnSignal, _LoopSignal):
            return int(self.failed)
        return int(self.failed)

    async def script_values(self, script: Script) -> list[Value]:
        values: list[Value] = []
        await self._statements(script, values.append, direct=False)
        return values

    async def statement_value(self, statement: Statement) -> Value:
        values: list[Value] = []
        await self._execute(statement, values.append, direct=False)
        return from_items(values)

    async def _statements(self, script: Script, sink: Callable[[Value], None], *, direct: bool) -> None:
        for statement in script.statements:
            self.failed = False
            try:
                await self._execute(statement, sink, direct=direct)
            except ScriptError as error:
                if self._tries:
                    raise
                self.errors.write(error, getattr(statement, "text", ""))
                self.failed = True
                if error.ends or self._preference() == "stop":
                    raise ExitSignal(1) from error

    def _preference(self) -> str:
        return to_text(self.variables.get("erroractionpreference", "Continue")).lower()

    async def _execute(self, statement: Statement, sink: Callable[[Value], None], *, direct: bool) -> None:
        """``direct``: programs write to the streams of the process."""
        match statement:
            case Pipeline():
                for value in await self._pipeline(statement, direct=direct):
                    sink(value)
            case Assignment():
                await self._assign(statement)
            case If():
                await self._if(statement, sink, direct=direct)
            case ForEach() | While():
                await self._loop(statement, sink, direct=direct)
            case Try():
                await self._try(statement, sink, direct=direct)
            case Flow():
                await self._flow(statement, sink)

    async def _assign(self, statement: Assignment) -> None:
        value = await self.statement_value(statement.value)
        target = statement.target
        if statement.operator != "=":
            value = self.binary(statement.operator[0], await self.evaluate(target), value)
        if isinstance(target, Variable) and target.scope == "env":
            self.process.environment.set(target.name, to_text(value))
        elif isinstance(target, Variable):
            self.variables[target.name.lower()] = value
        elif isinstance(target, Member):
            await self.set_member(target, value)
        elif isinstance(target, Index):
            owner = await self.evaluate(target.owner)
            members.set_property(owner, to_text(await self.evaluate(target.key)), value)

    async def _if(self, statement: If, sink: Callable[[Value], None], *, direct: bool) -> None:
        for condition, body in statement.branches:
            if to_bool(from_items(await self._pipeline(condition, direct=False))):
                return await self._statements(body, sink, direct=direct)
        if statement.otherwise is not None:
            await self._statements(statement.otherwise, sink, direct=direct)
        return None

    async def _loop(self, statement: ForEach | While, sink: Callable[[Value], None], *, direct: bool) -> None:
        items = iter(
            to_items(from_items(await self._pipeline(statement.items, direct=False)))
            if isinstance(statement, ForEach)
            else ()
        )
        while True:
            if isinstance(statement, ForEach):
                if (item := next(items, self)) is self:
                    return
                self.variables[statement.variable.lower()] = item
            elif not to_bool(from_items(await self._pipeline(statement.condition, direct=False))):
                return
            try:
                await self._statements(statement.body, sink, direct=direct)
            except _LoopSignal as signal:
                if signal.word == "break":
                    return

    async def _try(self, statement: Try, sink: Callable[[Value], None], *, direct: bool) -> None:
        self._tries += 1
        try:
            try:
                await self._statements(statement.body, sink, direct=direct)
            finally:
                self._tries -= 1
        except ScriptError as error:
            if statement.handler is None:
                raise
            self.failed = False
            self.variables["_"] = error_record(error)
            await self._statements(statement.handler, sink, direct=direct)
        finally:
            if statement.final is not None:
                await self._statements(statement.final, sink, direct=direct)

    async def _flow(self, statement: Flow, sink: Callable[[Value], None]) -> None:
        value = None if statement.value is None else from_items(await self._pipeline(statement.value, direct=False))
        if statement.word == "exit":
            raise ExitSignal(int(to_number(value)))
        if statement.word == "throw":
            text = to_text(value) or "ScriptHalted"
            raise ScriptError(text, text, f"OperationStopped: ({text}:String) [], RuntimeException", ends=True)
        if statement.word == "return":
            if value is not None:
                sink(value)
            raise _ReturnSignal
        raise _LoopSignal(statement.word)

    async def _pipeline(self, pipeline: Pipeline, *, direct: bool) -> list[Value]:
        values: list[Value] = []
        for number, stage in enumerate(pipeline.stages):
            is_last = number + 1 == len(pipeline.stages)
            if isinstance(stage, Command):
                values = await self._command(stage, values, direct=direct and is_last, text=pipeline.text)
            else:
                values = to_items(await self.evaluate(stage))
        return values

    async def _command(self, command: Command, piped: list[Value], *, direct: bool, text: str) -> list[Value]:
        """Values that a command writes. Raises ScriptError."""
        name = await self.evaluate(command.name)
        if isinstance(name, Script):
            return await self.script_values(name)
        word = to_text(name)
        cmdlet = CMDLETS.get(ALIASES.get(word.lower(), word.lower()))
        if cmdlet is None:
            return await self._program(word, command, piped, direct=direct)
        self.errors.load(cmdlet.module, is_quiet=self._is_progress_quiet())
        values: dict[str, Value] = {}
        try:
            values = cmdlet.bind(await self._bound_words(command))
            found = await cmdlet.run(Invocation(self.process, values, piped, self._call_block))
        except ScriptError as error:
            action = to_text(values.get("ErrorAction")).lower() or self._preference()
            error.identifier += f",{word}"
            if error.ends or action == "stop" or (not values and self._tries):
                raise
            self.failed = True
            if action not in _QUIET and ("2", "") not in command.redirects:
                self.errors.write(error, text, word)
            return []
        return [] if ("1", "") in command.redirects else found

    def _is_progress_quiet(self) -> bool:
        return to_text(self.variables.get("progresspreference")).lower() == "silentlycontinue"

    async def _call_block(self, script: Script, item: Value) -> list[Value]:
        self.variables["_"] = item
        return await self.script_values(script)

    async def _bound_words(self, command: Command) -> list[tuple[str, Value]]:
        words: list[tuple[str, Value]] = []
        for word in command.words:
            if isinstance(word, Parameter):
                words.append((word.name, None if word.value is None else await self.evaluate(word.value)))
            else:
                words.append(("", await self.evaluate(word)))
        return words

    async def _program(self, word: str, command: Command, piped: list[Value], *, direct: bool) -> list[Value]:
        """Run a program. Its output is the lines that it writes, unless ``direct``. Raises ScriptError."""
        arguments = [await self._argument(item) for item in command.words]
        parts: list[str] = []
        lines = iter([f"{to_text(value)}\r\n" for value in piped])

        async def read_line() -> str:
            return next(lines, "") if piped else await self.process.read_line()

        out = self.process.out if direct else parts.append
        redirects = dict(command.redirects)
        err = {"": discard, "&1": out}.get(redirects.get("2", "-"), self.process.err)
        process = self.process.replace(out=discard if redirects.get("1") == "" else out, err=err, read_line=read_line)
        try:
            code = await launch(process, " ".join([f'"{word}"' if " " in word else word, *filter(None, arguments)]))
        except ProgramNotFoundError as error:
            raise not_recognized(word) from error
        self.variables["lastexitcode"] = code
        self.failed = code != 0
        return list("".join(parts).replace("\r\n", "\n").splitlines())

    async def _argument(self, item: Expression | Parameter) -> str:
        """An argument as 5.1 passes it on: quoted where it has blanks, quotes in it stay as they are."""
        if isinstance(item, Parameter):
            value = "" if item.value is None else f":{to_text(await self.evaluate(item.value))}"
            return f"-{item.name}{value}"
        value = await self.evaluate(item)
        texts = [to_text(part) for part in to_items(value)]
        return " ".join(f'"{text}"' if " " in text and not text.startswith('"') else text for text in texts)
