"""Bodies of the answers about shells and their commands, element by element as recorded."""

from __future__ import annotations

import base64
from xml.sax.saxutils import escape, quoteattr

from chaos.lab.winrm.namespaces import SHELL
from chaos.lab.winrm.shells import RemoteShell, RunningCommand
from chaos.lab.winrm.soap import Request


def created(request: Request, shell: RemoteShell) -> str:
    """Answer to Create."""
    return (
        f"<x:ResourceCreated><a:Address>{escape(request.to)}</a:Address><a:ReferenceParameters><w:ResourceURI>"
        f'{escape(request.resource)}</w:ResourceURI><w:SelectorSet><w:Selector Name="ShellId">{shell.id}</w:Selector>'
        f"</w:SelectorSet></a:ReferenceParameters></x:ResourceCreated>{described(shell, request.resource)}"
    )


def described(shell: RemoteShell, resource: str) -> str:
    """The element Shell. Lifetime and Name are not in it, though they may be asked for."""
    variables = "".join(
        f"<rsp:Variable Name={quoteattr(name)}>{escape(value)}</rsp:Variable>" for name, value in shell.variables
    )
    directory = f"<rsp:WorkingDirectory>{escape(shell.directory)}</rsp:WorkingDirectory>"
    return (
        f'<rsp:Shell xmlns:rsp="{SHELL}"><rsp:ShellId>{shell.id}</rsp:ShellId><rsp:ResourceUri>{escape(resource)}'
        f"</rsp:ResourceUri><rsp:Owner>{escape(shell.owner)}</rsp:Owner><rsp:ClientIP>{escape(shell.client_ip)}"
        f"</rsp:ClientIP>{directory if shell.directory else ''}"
        f"{f'<rsp:Environment>{variables}</rsp:Environment>' if variables else ''}"
        f"<rsp:IdleTimeOut>PT{shell.idle_timeout:.3f}S</rsp:IdleTimeOut>"
        f"<rsp:InputStreams>{escape(shell.input_streams)}</rsp:InputStreams>"
        f"<rsp:OutputStreams>{escape(shell.output_streams)}</rsp:OutputStreams>"
        "<rsp:ShellRunTime>P0DT0H0M0S</rsp:ShellRunTime><rsp:ShellInactivity>P0DT0H0M0S</rsp:ShellInactivity>"
        "</rsp:Shell>"
    )


def received(command: RunningCommand, chunks: list[tuple[str, str]], streams: list[str]) -> str:
    """Answer to Receive: output in order of time; with the end, an empty piece of each stream and the exit code."""
    parts = []
    for stream, text in chunks:
        if stream in streams:
            data = base64.b64encode(text.encode(command.encoding, "replace")).decode()
            parts.append(f'<rsp:Stream Name="{stream}" CommandId="{command.id}">{data}</rsp:Stream>')
    state, code = "Running", ""
    if command.exit_code is not None:
        state, code = "Done", f"<rsp:ExitCode>{command.exit_code}</rsp:ExitCode>"
        parts += [f'<rsp:Stream Name="{name}" CommandId="{command.id}" End="true"></rsp:Stream>' for name in streams]
    return (
        f'<rsp:ReceiveResponse>{"".join(parts)}<rsp:CommandState CommandId="{command.id}" '
        f'State="{SHELL}/CommandState/{state}">{code}</rsp:CommandState></rsp:ReceiveResponse>'
    )
