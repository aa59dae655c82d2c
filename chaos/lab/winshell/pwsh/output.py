"""What values look like on stdout."""

from __future__ import annotations

from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.pwsh.values import DateTime, ScriptError, Value, to_text


def display(process: WinProcess, value: Value) -> None:
    """Print a value. Tables of objects are not simulated. Raises ScriptError."""
    if isinstance(value, DateTime) and not value.offset:
        process.out(f"\r\n{value.format('dddd, MMMM d, yyyy h:mm:ss tt')}\r\n\r\n\r\n")
    elif isinstance(value, list):
        for item in value:
            display(process, item)
    elif isinstance(value, None | bool | int | float | str):
        if value is not None:
            process.line(to_text(value))
    else:
        kind = getattr(value, "type", type(value).__name__)
        text = f"The lab prints no {kind}: select its properties as text, or use ConvertTo-Json."
        raise ScriptError(text, "NotSimulated", ends=True)
