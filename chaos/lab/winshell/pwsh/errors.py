"""The error stream of powershell.exe: text, or CLIXML where the script came by -EncodedCommand, as recorded."""

from __future__ import annotations

from xml.sax.saxutils import escape

from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.pwsh.values import NetObject, ScriptError

_HEAD = '#< CLIXML\r\n<Objs Version="1.1.0.1" xmlns="http://schemas.microsoft.com/powershell/2004/04">'
_RECORD = (
    '<MS><I64 N="SourceId">1</I64><PR N="Record"><AV>Preparing modules for first use.</AV><AI>0</AI><Nil />'
    "<PI>-1</PI><PC>-1</PC><T>Completed</T><SR>-1</SR><SD> </SD></PR></MS></Obj>"
)
_TYPE = '<TN RefId="0"><T>System.Management.Automation.PSCustomObject</T><T>System.Object</T></TN>'


class ErrorStream:
    """Error records and progress of one powershell.exe."""

    def __init__(self, process: WinProcess, *, is_clixml: bool) -> None:
        self._process, self._is_clixml = process, is_clixml
        self._records: list[str] = []
        self._progress = 0
        self._loaded: set[str] = set()

    def write(self, error: ScriptError, statement: str, command: str = "") -> None:
        """Write an error record; ``command``: the cmdlet that failed."""
        name = command or error.command
        lines = [
            f"{name} : {error.message}" if name else error.message,
            "At line:1 char:1",
            f"+ {statement}",
            f"+ {'~' * len(statement)}",
            f"    + CategoryInfo          : {error.category or 'NotSpecified: (:) []'}",
            f"    + FullyQualifiedErrorId : {error.identifier}",
            " ",
        ]
        self.text("".join(f"{line}\r\n" for line in lines))

    def text(self, text: str) -> None:
        """Write text of the error stream."""
        if not self._is_clixml:
            self._process.err(text)
            return
        self._records += [f'<S S="Error">{_escaped(line)}</S>' for line in text.splitlines(keepends=True)]

    def load(self, module: str, *, is_quiet: bool) -> None:
        """Note that a module is used: its first use shows progress, unless $ProgressPreference is silent."""
        if module and module not in self._loaded and not is_quiet and self._is_clixml:
            kind = _TYPE if not self._progress else '<TNRef RefId="0" />'
            self._records.append(f'<Obj S="progress" RefId="{self._progress}">{kind}{_RECORD}')
            self._progress += 1
        self._loaded.add(module)

    def close(self) -> None:
        """Write the document, if there is anything in it."""
        if self._records:
            self._process.err(f"{_HEAD}{''.join(self._records)}</Objs>")
            self._records.clear()


def _escaped(text: str) -> str:
    return escape(text).replace("\r", "_x000D_").replace("\n", "_x000A_")


def not_recognized(word: str) -> ScriptError:
    """The error for a command that does not exist."""
    text = (
        f"The term '{word}' is not recognized as the name of a cmdlet, function, script file, or operable program. "
        "Check the spelling of the name, or if a path was included, verify that the path is correct and try again."
    )
    error = ScriptError(
        text, "CommandNotFoundException", f"ObjectNotFound: ({word}:String) [], CommandNotFoundException"
    )
    error.command = word
    return error


def error_record(error: ScriptError) -> NetObject:
    """``$_`` of a catch block."""
    exception = NetObject("System.Exception", {"Message": error.message}, text=error.message)
    inner = NetObject("System.Exception", {"Message": error.inner}, text=error.inner) if error.inner else None
    exception.properties["InnerException"] = inner
    return NetObject(
        "System.Management.Automation.ErrorRecord",
        {"Exception": exception, "FullyQualifiedErrorId": error.identifier},
        text=error.message,
    )
