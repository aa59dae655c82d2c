"""Quotas of a WinRM service: the request for ``winrm/config``, and its answer."""

from __future__ import annotations

from uuid import uuid4
from xml.etree import ElementTree

from winrm.protocol import Protocol

from chaos.machines.winrm.faults import UnexpectedAnswer

_CONFIG = "http://schemas.microsoft.com/wbem/wsman/1/config"
_ADDRESSING = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
# pywinrm has no Get. The elements that Windows requires; it accepts any address in To.
_REQUEST = (
    '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"'
    f' xmlns:a="{_ADDRESSING}" xmlns:w="http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd"><s:Header>'
    "<a:To>http://windows-host:5985/wsman</a:To>"
    f'<a:ReplyTo><a:Address s:mustUnderstand="true">{_ADDRESSING}/role/anonymous</a:Address></a:ReplyTo>'
    '<a:Action s:mustUnderstand="true">http://schemas.xmlsoap.org/ws/2004/09/transfer/Get</a:Action>'
    '<w:MaxEnvelopeSize s:mustUnderstand="true">153600</w:MaxEnvelopeSize><a:MessageID>uuid:{id}</a:MessageID>'
    "<w:OperationTimeout>PT{seconds}S</w:OperationTimeout>"
    f'<w:ResourceURI s:mustUnderstand="true">{_CONFIG}</w:ResourceURI></s:Header><s:Body/></s:Envelope>'
)
_QUOTAS = {
    "MaxShellsPerUser": "Winrs",
    "MaxProcessesPerShell": "Winrs",
    "MaxConcurrentOperationsPerUser": "Service",
}


def request_quotas(protocol: Protocol) -> dict[str, int]:
    """Quotas by their names in ``winrm/config``. Raises what the protocol raises, and UnexpectedAnswer."""
    message = _REQUEST.format(id=uuid4(), seconds=int(protocol.operation_timeout_sec))
    return parse_quotas(protocol.send_message(message))


def parse_quotas(answer: bytes) -> dict[str, int]:
    """Quotas in the envelope that answers. Raises UnexpectedAnswer where one is missing, or no number."""
    root = ElementTree.fromstring(answer)  # noqa: S314 - from an authenticated host
    return {name: _number(root, section, name) for name, section in _QUOTAS.items()}


def _number(root: ElementTree.Element, section: str, name: str) -> int:
    text = root.findtext(f".//{{{_CONFIG}}}Config/{{{_CONFIG}}}{section}/{{{_CONFIG}}}{name}", "")
    if not (text.isascii() and text.isdigit()):
        raise UnexpectedAnswer(f"it has no {name}")
    return int(text)
