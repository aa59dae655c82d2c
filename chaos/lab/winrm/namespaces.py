"""Namespaces of WS-Management as Windows declares them, and the URIs of actions and resources."""

from __future__ import annotations

SOAP = "http://www.w3.org/2003/05/soap-envelope"
ADDRESSING = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
TRANSFER = "http://schemas.xmlsoap.org/ws/2004/09/transfer"
EVENTING = "http://schemas.xmlsoap.org/ws/2004/08/eventing"
ENUMERATION = "http://schemas.xmlsoap.org/ws/2004/09/enumeration"
WSMAN = "http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd"
SHELL = "http://schemas.microsoft.com/wbem/wsman/1/windows/shell"
MICROSOFT = "http://schemas.microsoft.com/wbem/wsman/1/wsman.xsd"
CONFIG = "http://schemas.microsoft.com/wbem/wsman/1/config"
FAULT = "http://schemas.microsoft.com/wbem/wsman/1/wsmanfault"
PREFIXES = {
    "s": SOAP,
    "a": ADDRESSING,
    "x": TRANSFER,
    "e": EVENTING,
    "n": ENUMERATION,
    "w": WSMAN,
    "rsp": SHELL,
    "p": MICROSOFT,
}  # in the order of Windows' own Envelope tags
CMD = f"{SHELL}/cmd"
ANONYMOUS = f"{ADDRESSING}/role/anonymous"
FAULT_DETAIL = "http://schemas.dmtf.org/wbem/wsman/1/wsman/faultDetail"
FAULT_ACTION = "http://schemas.dmtf.org/wbem/wsman/1/wsman/fault"
ADDRESSING_FAULT_ACTION = f"{ADDRESSING}/fault"
