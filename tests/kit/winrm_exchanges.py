"""Recorded exchanges with WinRM, and what of an answer must be the same from any Windows."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

RECORDINGS = Path(__file__).parent.parent / "recordings" / "winrm"
SHELL = "{http://schemas.microsoft.com/wbem/wsman/1/windows/shell}"
_ADDRESSING = "{http://schemas.xmlsoap.org/ws/2004/08/addressing}"
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_ACTIVITY = "{http://schemas.microsoft.com/wbem/wsman/1/wsman.xsd}ActivityId"  # some machines write it
_MESSAGE_ID = re.compile(r"uuid:[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}")
_OWN = {  # texts that each machine, client or boot has for itself
    f"{_ADDRESSING}Address": "ADDRESS",
    f"{SHELL}Owner": "OWNER",
    f"{SHELL}ClientIP": "CLIENT",
}
Shape = tuple[Any, ...]


@dataclass(frozen=True)
class Exchange:
    request: str
    response: str
    status: int


def load(name: str) -> list[Exchange]:
    """Exchanges of one file of pypsrp's recordings."""
    messages = yaml.safe_load((RECORDINGS / "pypsrp" / name).read_text(encoding="utf-8"))["messages"]
    return [
        Exchange(item["request"], item["response"], item.get("transport_error", {}).get("code", 200))
        for item in messages
    ]


def read(name: str) -> str:
    return (RECORDINGS / name).read_text(encoding="utf-8")


def namespaces(xml: str) -> list[tuple[str, str]]:
    """Prefixes and URIs of the Envelope tag, in order."""
    found: list[tuple[str, str]] = []
    for event, item in ElementTree.iterparse(BytesIO(xml.encode()), events=["start-ns", "start"]):  # noqa: S314
        if event == "start":
            break
        assert isinstance(item, tuple)
        found.append((str(item[0]), str(item[1])))
    return found


def shape(xml: str, request: str | None, output: Callable[[str], object] = lambda text: text) -> Shape:
    """Elements, attributes and texts of an answer; ``output`` maps the text of a stream to what is compared.

    Identifiers are replaced by their kind. A RelatesTo must be the ID of the request; with ``request`` None, of a
    recording whose author exchanged an answer, any ID counts.
    """
    root = ElementTree.fromstring(xml)  # noqa: S314 - of the lab or of the recordings
    request_id = request and ElementTree.fromstring(request).findtext(f".//{_ADDRESSING}MessageID")  # noqa: S314
    return _shape(root, request_id, output)


def _shape(element: ElementTree.Element, request_id: str | None, output: Callable[[str], object]) -> Shape:
    text = (element.text or "") if (element.text or "").strip() and not len(element) else ""
    if element.tag == f"{_ADDRESSING}MessageID":
        text = "NEW" if _MESSAGE_ID.fullmatch(text) else text
    elif element.tag == f"{_ADDRESSING}RelatesTo":
        text = "REQUEST" if request_id in (None, text) else text
    attributes = {name: value for name, value in element.attrib.items() if name not in ("Machine", _LANG)}
    children = [child for child in element if child.tag != _ACTIVITY]
    if element.tag == f"{SHELL}ReceiveResponse":
        inner = _streams(children, output)
        children = [child for child in children if child.tag != f"{SHELL}Stream"]
    else:
        inner = ()
    rest = tuple(_shape(child, request_id, output) for child in children)
    return (element.tag, tuple(sorted(attributes.items())), _OWN.get(element.tag, text), inner + rest)


def _streams(children: list[ElementTree.Element], output: Callable[[str], object]) -> Shape:
    """Output by stream: a machine may send it in any number of pieces. Then the ends."""
    texts: dict[str, bytes] = {}
    ends = []
    for child in children:
        if child.tag == f"{SHELL}Stream":
            name = child.get("Name", "")
            if child.get("End"):
                ends.append((name, child.get("CommandId"), child.text))
            else:
                texts[name] = texts.get(name, b"") + base64.b64decode(child.text or "")
    return (tuple((name, output(data.decode())) for name, data in sorted(texts.items())), tuple(ends))
