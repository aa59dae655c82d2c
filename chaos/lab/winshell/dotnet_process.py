"""The PowerShell idiom that starts a program by .NET with a command line in base64, which no shell has to quote."""

from __future__ import annotations

import base64
import binascii
import re

_TEXT = r"\[Text\.Encoding\]::Unicode\.GetString\(\[Convert\]::FromBase64String\('([A-Za-z0-9+/=]*)'\)\)"
_IDIOM = re.compile(
    rf"\$(\w+)\s*=\s*New-Object (?:System\.)?Diagnostics\.ProcessStartInfo\({_TEXT},\s*{_TEXT}\);\s*"
    r"\$\1\.UseShellExecute\s*=\s*\$false;\s*\$(\w+)\s*=\s*\[Diagnostics\.Process\]::Start\(\$\1\);\s*"
    r"\$\4\.WaitForExit\(\);\s*exit \$\4\.ExitCode",
    re.IGNORECASE,
)


def started_line(script: str) -> str | None:
    """The command line that the script starts and waits for, None for any other script."""
    match = _IDIOM.fullmatch(script.strip())
    if not match:
        return None
    try:
        program, arguments = (base64.b64decode(part, validate=True).decode("utf-16-le") for part in match.group(2, 3))
    except (binascii.Error, UnicodeDecodeError):
        return None
    return f'"{program}" {arguments}'
