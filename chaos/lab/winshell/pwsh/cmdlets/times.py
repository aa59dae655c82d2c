"""Cmdlets of the clock."""

from __future__ import annotations

from chaos.lab.winshell.pwsh.dotnet.times import now, parse_time, to_span
from chaos.lab.winshell.pwsh.invocation import Cmdlet, Invocation
from chaos.lab.winshell.pwsh.values import TICKS, DateTime, ScriptError, Value, to_number, to_text


def _time_of(value: Value) -> DateTime:
    """Raises ScriptError."""
    found = value if isinstance(value, DateTime) else parse_time(to_text(value))
    if found is None:
        text = f'Cannot bind parameter \'Date\'. Cannot convert value "{to_text(value)}" to type "System.DateTime".'
        raise ScriptError(text, "CannotConvertArgumentNoMessage", "InvalidArgument: (:) [], ParameterBindingException")
    return found


async def _get_date(call: Invocation) -> list[Value]:
    when = _time_of(call.value("Date")) if "Date" in call.values else now(call.process)
    if pattern := call.text("Format"):
        return [when.format(pattern)]
    if call.text("UFormat") == "%s":
        return [f"{when.ticks / TICKS:.5f}"]
    if "UFormat" in call.values:
        raise ScriptError("The lab simulates -UFormat %s only.", "NotSimulated", ends=True)
    return [when]


async def _set_date(call: Invocation) -> list[Value]:
    """Returns the new time."""
    if "Adjust" in call.values:
        seconds = to_span(call.value("Adjust")).seconds
    elif "Date" in call.values:
        seconds = (_time_of(call.value("Date")).ticks - now(call.process).ticks) / TICKS
    else:
        text = "Parameter set cannot be resolved using the specified named parameters."
        raise ScriptError(text, "AmbiguousParameterSet", "InvalidArgument: (:) [], ParameterBindingException")
    call.process.machine.clock.adjust(seconds)
    return [now(call.process)]


async def _sleep(call: Invocation) -> list[Value]:
    """In simulated time, whatever the machine's clock does."""
    milliseconds = call.value("Milliseconds")
    seconds = to_number(call.value("Seconds")) if milliseconds is None else to_number(milliseconds) / 1000
    await call.process.sleep(seconds)
    return []


CMDLETS: dict[str, Cmdlet] = {
    "Get-Date": Cmdlet(_get_date, ("Date", "Format", "UFormat"), (), ("Date",)),
    "Set-Date": Cmdlet(_set_date, ("Date", "Adjust"), (), ("Date",)),
    "Start-Sleep": Cmdlet(_sleep, ("Seconds", "Milliseconds"), (), ("Seconds",)),
}
