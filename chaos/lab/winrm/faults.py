"""Faults of the WS-Management service. Texts and structure are recorded where no comment says otherwise.

Namespaces of WS-Management as Windows declares them, and the URIs of actions and resources.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

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
_INVALID_SELECTORS = (
    "The WS-Management service cannot process the request because the request contained invalid selectors for the "
    "resource. "
)
_NO_COMMAND = (
    "The Windows Remote Shell received a request to perform an operation on a command identifier that does not exist. "
    "Either the command has completed execution or the client specified an invalid command identifier. "
)
_NO_SHELL = (
    "The request for the Windows Remote Shell with ShellId {} failed because the shell was not found on the server. "
    "Possible causes are: the specified ShellId is incorrect or the shell no longer exists on the server. Provide the "
    "correct ShellId or create a new shell and retry the operation. "
)
_TIMED_OUT = "The WS-Management service cannot complete the operation within the time specified in OperationTimeout.  "
_NOT_UNDERSTOOD = (
    "The WS-Management service cannot process a SOAP header in the request that is marked as mustUnderstand by the "
    "client.  This could be caused by the use of a version of the protocol which is not supported, or may be an "
    "incompatibility  between the client and server implementations. "
)
_SCHEMA = (
    "The SOAP XML in the message does not match the corresponding XML schema definition. Change the XML and retry. "
)
_CMD_PLUGIN = ("Shell cmd plugin", r"%systemroot%\system32\winrscmd.dll")
_SHELL_PROVIDER = ("Shell provider", r"%systemroot%\system32\WsmSvc.dll")


@dataclass(frozen=True)
class Fault(Exception):
    """A SOAP fault. ``detail``: the content of s:Detail with {machine} to fill in, none if empty.

    ``not_understood``: QName, prefix and namespace of a header. ``relates``: whether the answer has RelatesTo.
    """

    code: str
    subcode: str
    reason: str
    detail: str
    action: str = FAULT_ACTION
    language: str = "en-US"
    not_understood: tuple[str, str, str] | None = None
    relates: bool = True

    def body(self, machine: str) -> str:
        """The Fault element, with the name by which the client called the machine."""
        subcode = f"<s:Subcode><s:Value>{self.subcode}</s:Value></s:Subcode>" if self.subcode else ""
        detail = f"<s:Detail>{self.detail.replace('{machine}', escape(machine))}</s:Detail>" if self.detail else ""
        return (
            f"<s:Fault><s:Code><s:Value>{self.code}</s:Value>{subcode}</s:Code><s:Reason>"
            f'<s:Text xml:lang="{self.language}">{escape(self.reason)}</s:Text></s:Reason>{detail}</s:Fault>'
        )


def _wsman(code: int, message: str, fault_detail: str = "") -> str:
    """WSManFault whose message is XML."""
    before = f"<w:FaultDetail>{FAULT_DETAIL}/{fault_detail}</w:FaultDetail>" if fault_detail else ""
    return (
        f'{before}<f:WSManFault xmlns:f="{FAULT}" Code="{code}" Machine="{{machine}}"><f:Message>{message}'
        "</f:Message></f:WSManFault>"
    )


def _provider(provider: tuple[str, str], content: str) -> str:
    return (
        f"<f:ProviderFault provider={quoteattr(provider[0])} path={quoteattr(provider[1])}>{content}</f:ProviderFault>"
    )


def timed_out() -> Fault:
    """Nothing to report before the OperationTimeout."""
    return Fault("s:Receiver", "w:TimedOut", _TIMED_OUT, _wsman(2150858793, _TIMED_OUT))


def no_such_command() -> Fault:
    """The CommandId is unknown."""
    detail = _wsman(2150858843, _NO_COMMAND, "UnexpectedSelectors")
    return Fault("s:Sender", "w:InvalidSelectors", _INVALID_SELECTORS, detail)


def no_such_shell(shell: str) -> Fault:
    """The ShellId is unknown. Only the WSManFault is recorded; the rest is that of an unknown command."""
    detail = _wsman(2150858843, escape(_NO_SHELL.format(shell)), "UnexpectedSelectors")
    return Fault("s:Sender", "w:InvalidSelectors", _INVALID_SELECTORS, detail)


def no_such_shell_to_get() -> Fault:
    """transfer/Get of a shell that is gone."""
    nested = f'<f:WSManFault xmlns:f="{FAULT}" Code="2150858843" Machine="{{machine}}"><f:Message>{_INVALID_SELECTORS}'
    provider = _provider(_SHELL_PROVIDER, f"{nested}</f:Message></f:WSManFault>")
    detail = _wsman(2150858843, provider, "UnexpectedSelectors")
    return Fault("s:Sender", "w:InvalidSelectors", _INVALID_SELECTORS, detail)


def bad_timeout(text: str) -> Fault:
    """The OperationTimeout is not a duration, or negative."""
    message = (
        "The WS-Management service cannot process the request. The XML contains an invalid timeout field in the SOAP "
        f"header: {text}. "
    )
    reason = (
        "The WS-Management service cannot process the request. The request contains one or more invalid SOAP headers. "
    )
    detail = _wsman(2150858767, escape(message))
    return Fault("s:Sender", "a:InvalidMessageInformationHeader", reason, detail, ADDRESSING_FAULT_ACTION)


def not_understood(prefix: str, name: str, namespace: str) -> Fault:
    """A header with mustUnderstand that the service does not know: the answer has no Detail."""
    return Fault(
        *("s:MustUnderstand", "", _NOT_UNDERSTOOD, "", ADDRESSING_FAULT_ACTION, ""),
        not_understood=(f"{prefix}:{name}", prefix, namespace),
    )


def bad_element(name: str) -> Fault:
    """The body has an element that the shell does not know."""
    message = (
        f"The Windows Remote Shell cannot process the request. The SOAP packet contains an element {name} that is "
        "invalid. Retry the request with the correct XML element. "
    )
    detail = _wsman(2150858817, escape(message))
    return Fault("s:Sender", "w:SchemaValidationError", _SCHEMA, detail, language="")


def bad_parameter() -> Fault:
    """A required attribute is missing: ERROR_INVALID_PARAMETER of the cmd plug-in."""
    text = "The parameter is incorrect. "
    detail = _wsman(87, _provider(_CMD_PLUGIN, text), "InvalidValue")
    return Fault("s:Sender", "w:InvalidParameter", text, detail)


def program_not_found() -> Fault:
    """WINRS_SKIP_CMD_SHELL and no file of that path."""
    text = "The system cannot find the file specified. "
    return Fault("s:Receiver", "w:InternalError", text, _wsman(2147942402, _provider(_CMD_PLUGIN, text)))


def line_too_long() -> Fault:
    """More than 8191 characters for cmd.exe."""
    text = "The filename or extension is too long. "
    detail = _wsman(2147942606, _provider(_CMD_PLUGIN, text))
    return Fault("s:Receiver", "w:InternalError", text, detail, language="")


def unknown_resource(uri: str) -> Fault:
    """No plug-in serves the resource. Invented: code and subcode are documented, the texts are not recorded."""
    reason = "The WS-Management service cannot process the request. The resource URI is missing or unknown. "
    return Fault("s:Sender", "a:DestinationUnreachable", reason, _wsman(2150858752, escape(f"{reason}{uri}")))


def malformed(text: str) -> Fault:
    """The body is not an envelope. Invented: texts."""
    return Fault("s:Sender", "w:SchemaValidationError", _SCHEMA, _wsman(2150858817, escape(text)), language="")


def too_many_shells(limit: int) -> Fault:
    """MaxShellsPerUser: MSFT_WmiError, and an answer without RelatesTo."""
    reason = (
        "The WS-Management service cannot process the request. The maximum number of concurrent shells for this user "
        "has been exceeded. Close existing shells or raise the quota for this user. "
    )
    message = (
        f"The WS-Management service cannot process the request. This user is allowed a maximum number of {limit} "
        "concurrent shells, which has been exceeded. Close existing shells or raise the quota for this user. "
    )
    return Fault("s:Sender", "w:QuotaLimit", reason, _wmi_error(2150859173, message), relates=False)


def too_many_operations(limit: int) -> Fault:
    """MaxConcurrentOperationsPerUser. The structure is recorded; the reason is that of the message."""
    message = (
        f"The WS-Management service cannot process the request. This user is allowed a maximum number of {limit} "
        "concurrent operations, which has been exceeded. Close existing operations for this user, or raise the quota "
        "for this user. "
    )
    return Fault("s:Receiver", "w:InternalError", message, _wmi_error(2150859174, message), relates=False)


def _wmi_error(code: int, message: str) -> str:
    """MSFT_WmiError of the CIM schema, element by element as recorded."""
    nil = 'xsi:type="cim:cimString" xsi:nil="true"'

    def number(name: str, value: int, kind: str = "Short") -> str:
        return f'<p:{name} xsi:type="cim:cimUnsigned{kind}">{value}</p:{name}>'

    def text(name: str, value: str) -> str:
        return f'<p:{name} xsi:type="cim:cimString">{escape(value)}</p:{name}>'

    return (
        '<p:MSFT_WmiError b:IsCIM_Error="true" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xmlns:b="http://schemas.dmtf.org/wbem/wsman/1/cimbinding.xsd" '
        'xmlns:p="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/MSFT_WmiError" '
        'xmlns:cim="http://schemas.dmtf.org/wbem/wscim/1/common" xsi:type="p:MSFT_WmiError_Type">'
        f"{number('CIMStatusCode', 27, 'Int')}<p:CIMStatusCodeDescription {nil}/><p:ErrorSource {nil}/>"
        f"{number('ErrorSourceFormat', 0)}{number('ErrorType', 0)}{text('Message', message)}"
        f"{text('MessageID', f'HRESULT 0x{code:x}')}<p:OtherErrorSourceFormat {nil}/><p:OtherErrorType {nil}/>"
        f"<p:OwningEntity {nil}/>{number('PerceivedSeverity', 0)}{number('ProbableCause', 0)}"
        f"<p:ProbableCauseDescription {nil}/>{number('error_Category', 30, 'Int')}{number('error_Code', code, 'Int')}"
        f"{text('error_Type', 'HRESULT')}{text('error_WindowsErrorMessage', message)}</p:MSFT_WmiError>"
    )
