"""Envelopes of WS-Management: requests parsed, answers formatted as Windows does.

winrm/config: quotas of the service, and the document that a Get answers with.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO
from random import Random
from urllib.parse import urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from chaos.lab.winrm import faults
from chaos.lab.winrm.faults import ADDRESSING, ANONYMOUS, MICROSOFT, PREFIXES, SOAP, WSMAN

_SECONDS = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_DEFAULT_TIMEOUT = 60.0  # MaxTimeoutms
_KNOWN_HEADERS = (
    {f"{{{ADDRESSING}}}{name}" for name in ("Action", "To", "ReplyTo", "MessageID", "From", "FaultTo", "RelatesTo")}
    | {
        f"{{{WSMAN}}}{name}"
        for name in ("ResourceURI", "MaxEnvelopeSize", "OperationTimeout", "Locale", "SelectorSet", "OptionSet")
    }
    | {f"{{{MICROSOFT}}}{name}" for name in ("DataLocale", "SessionId", "SequenceId", "OperationID")}
)
ANSWER, RECEIVE, SHORT, GET = ("saxw", "rsp", "p"), ("saw", "rsp", "p"), ("saw", "p"), ("saxw", "p")
_FAULT = ("saxenw", "p")
_FAULT_WITH_SHELL = ("saxenw", "rsp", "p")


@dataclass(frozen=True, slots=True)
class Request:
    """``timeout``: OperationTimeout in seconds. ``to``: the address by which the client calls the machine."""

    action: str
    message_id: str
    resource: str
    to: str
    timeout: float
    selectors: dict[str, str]
    options: dict[str, str]
    body: ElementTree.Element

    @property
    def machine(self) -> str:
        """Host in the address that the client uses."""
        return urlsplit(self.to).hostname or ""

    def option(self, name: str) -> bool:
        """Whether an option is set to true."""
        return self.options.get(name, "").lower() in ("true", "1")


class EnvelopeError(ValueError):
    """The body is not XML or not an envelope."""


def parse_request(data: bytes) -> tuple[Request, faults.Fault | None]:
    """Parse an envelope; with the fault of its headers, if there is one. Raises EnvelopeError."""
    prefixes: dict[str, str] = {}
    try:
        for _, found in ElementTree.iterparse(BytesIO(data), events=["start-ns"]):  # noqa: S314 - an authenticated client
            assert isinstance(found, tuple)  # noqa: S101 - of start-ns
            prefixes[str(found[1])] = str(found[0])
        root = ElementTree.fromstring(data)  # noqa: S314
    except ElementTree.ParseError as error:
        raise EnvelopeError(str(error)) from error
    header, body = root.find(f"{{{SOAP}}}Header"), root.find(f"{{{SOAP}}}Body")
    if root.tag != f"{{{SOAP}}}Envelope" or header is None or body is None:
        raise EnvelopeError("no SOAP 1.2 envelope")

    def text(namespace: str, name: str) -> str:
        return (header.findtext(f"{{{namespace}}}{name}") or "").strip() if header is not None else ""

    wanted = text(WSMAN, "OperationTimeout")
    seconds = parse_duration(wanted) if wanted else _DEFAULT_TIMEOUT
    request = Request(
        text(ADDRESSING, "Action"),
        text(ADDRESSING, "MessageID"),
        text(WSMAN, "ResourceURI"),
        text(ADDRESSING, "To"),
        seconds if seconds is not None else 0.0,
        _named(header.iter(f"{{{WSMAN}}}Selector")),
        _named(header.iter(f"{{{WSMAN}}}Option")),
        body,
    )
    if (unknown := _unknown_header(header, prefixes)) is not None:
        return request, unknown
    return request, faults.bad_timeout(wanted) if seconds is None else None


def _unknown_header(header: ElementTree.Element, prefixes: dict[str, str]) -> faults.Fault | None:
    """Fault for a header that must be understood. pywinrm writes mustUnderstand without a namespace: no effect."""
    for item in header:
        if item.get(f"{{{SOAP}}}mustUnderstand") in ("true", "1") and item.tag not in _KNOWN_HEADERS:
            namespace, _, name = item.tag[1:].partition("}")
            return faults.not_understood(prefixes.get(namespace, ""), name, namespace)
    return None


def _named(elements: Iterable[ElementTree.Element]) -> dict[str, str]:
    return {item.get("Name", ""): item.text or "" for item in elements}


def parse_duration(text: str) -> float | None:
    """Seconds of an XML duration, None for one that is invalid or negative."""
    match = _SECONDS.fullmatch(text)
    if not match or not any(match.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


class Formatter:
    """Formats answers; message IDs come from a seeded generator."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def new_id(self) -> str:
        """A GUID in upper case."""
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4)).upper()

    def answer(self, request: Request, action: str, body: str, prefixes: tuple[str, ...] = ANSWER) -> str:
        """An envelope with this action and body."""
        return self._envelope(action, request.message_id, body, prefixes)

    def fault(self, message_id: str, machine: str, fault: faults.Fault) -> str:
        """An envelope with a fault."""
        extra = ""
        if fault.not_understood is not None:
            qname, prefix, namespace = fault.not_understood
            extra = f'<s:NotUnderstood qname="{escape(qname)}" xmlns:{prefix}="{escape(namespace)}"/>'
        relates = message_id if fault.relates else ""
        prefixes = _FAULT_WITH_SHELL if fault.not_understood is not None else _FAULT
        return self._envelope(fault.action, relates, fault.body(machine), prefixes, extra)

    def _envelope(self, action: str, relates_to: str, body: str, prefixes: tuple[str, ...], extra: str = "") -> str:
        names = [*prefixes[0], *prefixes[1:]]
        declared = " ".join(f'xmlns:{name}="{PREFIXES[name]}"' for name in names)
        relates = f"<a:RelatesTo>{escape(relates_to)}</a:RelatesTo>" if relates_to else ""
        return (
            f'<s:Envelope xml:lang="en-US" {declared}><s:Header><a:Action>{action}</a:Action>'
            f"<a:MessageID>uuid:{self.new_id()}</a:MessageID><a:To>{ANONYMOUS}</a:To>{relates}{extra}</s:Header>"
            f"<s:Body>{body}</s:Body></s:Envelope>"
        )


IDLE_TIMEOUT = 7200.0  # seconds


@dataclass(slots=True)
class WinRmConfig:
    """Quotas with the defaults of Windows Server 2016 and later."""

    max_operations_per_user: int = 1500
    max_shells_per_user: int = 2147483647

    def document(self) -> str:
        """The element Config, with every value in the recorded order."""
        text = (files(__package__) / "config.xml").read_text(encoding="ascii")
        lines = "".join(line.strip() for line in text.splitlines())
        return lines.format(operations=self.max_operations_per_user, shells=self.max_shells_per_user)
