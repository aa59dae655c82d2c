"""[IO.File], [IO.DriveInfo] and [Security.Cryptography.X509Certificates.X509Certificate2]."""

from __future__ import annotations

from collections.abc import Callable

from chaos.lab.windows.certificates import Certificate, read_certificate
from chaos.lab.windows.disk import disk_of
from chaos.lab.windows.files import read_file, write_file
from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.pwsh.values import TICKS, DateTime, NetObject, Value, call_error, to_text

_CERTIFICATE = "security.cryptography.x509certificates.x509certificate2"


def _read(process: WinProcess, path: Value) -> str:
    """Raises ScriptError."""
    content = read_file(process.machine.files, to_text(path))
    if content is None:
        inner = f"Could not find file '{to_text(path)}'."
        raise call_error("ReadAllText", 1, inner, "FileNotFoundException")
    return content


def _write(process: WinProcess, path: Value, text: Value) -> None:
    write_file(process.machine.files, to_text(path), to_text(text))


def _drive(process: WinProcess, name: Value) -> NetObject:
    disk = disk_of(process.machine)
    properties = {
        "Name": f"{to_text(name)[:1].upper()}:\\",
        "AvailableFreeSpace": disk.free,
        "TotalFreeSpace": disk.free,
        "TotalSize": disk.size,
        "DriveFormat": "NTFS",
    }
    return NetObject("System.IO.DriveInfo", properties)


def certificate_object(certificate: Certificate) -> NetObject:
    """A certificate with the properties of .NET."""
    properties = {
        "Subject": certificate.subject,
        "Issuer": certificate.issuer,
        "Thumbprint": certificate.thumbprint,
        "SerialNumber": certificate.serial,
        "NotBefore": DateTime(round(certificate.not_before * TICKS)),
        "NotAfter": DateTime(round(certificate.not_after * TICKS)),
        "RawData": list(certificate.der),
    }
    return NetObject("System.Security.Cryptography.X509Certificates.X509Certificate2", properties)


def _certificate(process: WinProcess, path: Value) -> NetObject:
    """Of a file: .NET Framework takes the first certificate of a PEM file. No recording. Raises ScriptError."""
    certificate = read_certificate(read_file(process.machine.files, to_text(path)))
    if certificate is None:
        inner = "The system cannot find the file specified.\r\n"
        raise call_error(".ctor", 1, inner, "CryptographicException")
    return certificate_object(certificate)


PROPERTIES: dict[str, dict[str, Callable[[WinProcess], Value]]] = {}
METHODS: dict[str, dict[str, Callable[..., Value]]] = {
    "io.file": {
        "readalltext": _read,
        "writealltext": _write,
        "exists": lambda process, path: read_file(process.machine.files, to_text(path)) is not None,
        "delete": lambda process, path: write_file(process.machine.files, to_text(path), None),
    },
}
CONSTRUCTORS: dict[str, Callable[..., Value]] = {"io.driveinfo": _drive, _CERTIFICATE: _certificate}
