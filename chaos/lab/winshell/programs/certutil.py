"""certutil.exe -dump of a certificate. No recording: which rows there are; the lab prints those that name it."""

from __future__ import annotations

from datetime import UTC, datetime

from chaos.lab.windows.certificates import read_certificate
from chaos.lab.windows.files import read_file
from chaos.lab.winshell.process import WinProcess

_NOT_FOUND = 0x80070002


async def certutil(process: WinProcess, arguments: list[str]) -> int:
    """``certutil -dump FILE``; the exit code of an error is its HRESULT."""
    words = [word for word in arguments if not word.startswith(("-", "/"))]
    certificate = read_certificate(read_file(process.machine.files, words[0])) if len(words) == 1 else None
    if "-dump" not in [word.lower() for word in arguments] or certificate is None:
        reason = "The system cannot find the file specified."
        process.line(f"CertUtil: -dump command FAILED: 0x{_NOT_FOUND:08x} (WIN32: 2 ERROR_FILE_NOT_FOUND)")
        process.line(f"CertUtil: {reason}")
        return _NOT_FOUND - (1 << 32)
    process.line("X509 Certificate:")
    process.line("Version: 3")
    process.line(f"Serial Number: {certificate.serial.lower()}")
    for title, name in (("Issuer", certificate.issuer), ("Subject", certificate.subject)):
        process.line(f"{title}:")
        for part in name.split(", "):
            process.line(f"    {part}")
    process.line(f"  NotBefore: {_time(certificate.not_before)}")
    process.line(f"  NotAfter: {_time(certificate.not_after)}")
    process.line(f"Cert Hash(sha1): {certificate.thumbprint.lower()}")
    process.line("CertUtil: -dump command completed successfully.")
    return 0


def _time(t: float) -> str:
    when = datetime.fromtimestamp(t, UTC)
    return f"{when.month}/{when.day}/{when.year} {when.strftime('%I:%M %p').lstrip('0')}"
