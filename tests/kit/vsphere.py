"""vcsim, VMware's simulator of vCenter, and a SOAP server for what it does not have."""

from __future__ import annotations

import datetime
import importlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from chaos.machines.driver import power_control_of
from chaos.machines.power.vsphere import VsphereControl
from tests.kit.clouds import host_context
from tests.kit.tls_authority import Authority

USER, PASSWORD = "ops@vsphere.local", "hunter2-secret"
_GOPATH = Path("/usr/share/gocode")


@dataclass(frozen=True, slots=True)
class Vcenter:
    """A server with its authority's file. Its machine DC0_C0_RP0_VM0 is in the cluster DC0_C0."""

    port: int
    ca: Path

    def control(self, vm: str | None = None, provider_id: str = "", **settings: Any) -> VsphereControl:
        power = {"kind": "vsphere", "address": "127.0.0.1", "port": self.port, "user": USER, "vm": vm}
        power |= {"password": {"env": "VSPHERE"}, "caFile": str(self.ca)} | settings
        made = power_control_of(host_context(power, provider_id, environ={"VSPHERE": PASSWORD}))
        assert isinstance(made, VsphereControl)
        return made


@cache
def vcsim_program() -> Path:
    """The built program, which Go keeps for later. Skips the test where it cannot be built."""
    if not shutil.which("go") or not (_GOPATH / "src/github.com/vmware/govmomi").is_dir():
        pytest.skip("no vcsim: golang-go and golang-github-vmware-govmomi-dev are not installed")
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "nodefall-tests")
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"vcsim-{os.getpid()}"
    environ = os.environ | {"GO111MODULE": "off", "GOPATH": str(_GOPATH), "GOCACHE": str(folder / "go")}
    source = Path(__file__).parent / "vcsim" / "main.go"
    subprocess.run(["go", "build", "-p", "2", "-o", str(program), str(source)], env=environ, check=True)
    return program.replace(folder / "vcsim")


@contextmanager
def vcsim(folder: Path) -> Iterator[Vcenter]:
    authority = Authority(folder, "vcenter")
    authority.server()
    pem = str(folder / "server.pem")
    argv = [str(vcsim_program()), pem, pem, USER, PASSWORD]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        yield Vcenter(int(process.stdout.readline().rpartition(":")[2]), authority.file)
        process.stdin.close()


_ENVELOPE = (
    '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"'
    ' xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
    "<soapenv:Body>{}</soapenv:Body></soapenv:Envelope>"
)
_VERSION = "vim.version.version9"


@dataclass
class Answers:
    """``properties`` by object and name; ``methods`` by name: what they return, or the fault that they raise."""

    properties: dict[tuple[str, str], Any] = field(default_factory=dict)
    methods: dict[str, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)  # methods that were called, without those that only read
    status: int = 200  # of an answer that is no SOAP

    def respond(self, body: bytes) -> tuple[int, str]:
        envelope = ElementTree.fromstring(body)  # noqa: S314 - of our own client
        request = envelope[-1][0]
        name, this = request.tag.rpartition("}")[2], request[0].text or ""
        values = [each.text or "" for each in request[1:]]
        if self.status != 200:
            return self.status, "gone"
        if name == "Fetch":
            return _encode("Fetch", self.properties[this, values[0]])
        if name == "Login" and values[:2] != [USER, PASSWORD]:
            return _encode(
                name, _load("VmomiSupport").GetVmodlType("vim.fault.InvalidLogin")(msg="Cannot complete login.")
            )
        self.calls.append(name)
        found = self.methods[name]
        return _encode(name, found(*values) if callable(found) else found)


def _load(module: str) -> Any:
    """A module of pyvmomi, which is an extra."""
    return importlib.import_module(f"pyVmomi.{module}")


def complete(value: Any) -> Any:
    """The data object with values for the fields that its published schema requires."""
    support = _load("VmomiSupport")
    for info in value._GetPropertyList():
        found = getattr(value, info.name)
        if isinstance(found, support.DataObject):
            complete(found)
        elif found is None and not info.flags & support.F_OPTIONAL:
            setattr(value, info.name, _some(info.type, support))
    return value


def _some(kind: Any, support: Any) -> Any:
    if issubclass(kind, support.DataObject):
        return complete(kind())
    if issubclass(kind, support.ManagedObject):
        return kind("any", None)
    if issubclass(kind, support.Enum):
        return kind(kind.values[0])
    return datetime.datetime.now(datetime.UTC) if kind is datetime.datetime else kind()


def _encode(name: str, value: Any) -> tuple[int, str]:
    if isinstance(value, Exception):
        kind = type(value).__name__.rpartition(".")[2]
        detail = f'<detail><{kind}Fault xmlns="urn:vim25" xsi:type="{kind}"></{kind}Fault></detail>'
        reason = f"<faultcode>ServerFaultCode</faultcode><faultstring>{getattr(value, 'msg', '')}</faultstring>"
        return 500, _ENVELOPE.format(f"<soapenv:Fault>{reason}{detail}</soapenv:Fault>")
    if value is None:
        return 200, _ENVELOPE.format(f'<{name}Response xmlns="urn:vim25"></{name}Response>')
    info = _load("VmomiSupport").Object(name="returnval", type=object, version=_VERSION, flags=0)
    values = value if isinstance(value, list) else [value]
    texts = [_load("SoapAdapter").SerializeToStr(each, info, _VERSION) for each in values]
    return 200, _ENVELOPE.format(f'<{name}Response xmlns="urn:vim25">{"".join(texts)}</{name}Response>')


def _handler(answers: Answers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, text = answers.respond(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Quiet."""

    return Handler


@contextmanager
def soap_server(folder: Path, answers: Answers) -> Iterator[Vcenter]:
    authority = Authority(folder, "vcenter")
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(answers)) as server:
        server.socket = authority.server().wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Vcenter(server.server_port, authority.file)
        finally:
            server.shutdown()
            thread.join()
