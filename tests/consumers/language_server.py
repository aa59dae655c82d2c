"""A client of the YAML language server, over LSP on its stdin and stdout: https://microsoft.github.io/language-server-protocol"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import IO, Any


class LanguageServer:
    """The server in a process, with one schema for every file."""

    def __init__(self, npm: Path, schema: Path) -> None:
        self._settings = {"yaml": {"schemas": {schema.as_uri(): "*.yaml"}, "hover": True, "completion": True}}
        program = npm / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
        self._process = subprocess.Popen(
            ["node", str(program), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdin
        assert self._process.stdout
        self._stdin: IO[bytes] = self._process.stdin
        self._stdout: IO[bytes] = self._process.stdout
        self._number = 0
        self._diagnostics: dict[str, list[dict[str, Any]]] = {}
        capabilities = {"workspace": {"configuration": True}, "textDocument": {"hover": {}, "completion": {}}}
        self._request("initialize", {"processId": None, "rootUri": None, "capabilities": capabilities})
        self._send({"method": "initialized", "params": {}})
        self._send({"method": "workspace/didChangeConfiguration", "params": {"settings": self._settings}})

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def open(self, path: Path, text: str) -> None:
        """Open a document with a text that need not be in the file."""
        document = {"uri": path.as_uri(), "languageId": "yaml", "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})

    def problems(self, path: Path) -> list[str]:
        """Line and message of each red or yellow line of an open document."""
        uri = path.as_uri()
        while uri not in self._diagnostics:
            self._handle(self._receive())
        found = self._diagnostics.pop(uri)
        return [f"{each['range']['start']['line'] + 1}: {each['message']}" for each in found]

    def hover(self, path: Path, line: int, column: int) -> str:
        """What is shown at a place, both counted from 0; "" for nothing."""
        found = self._request("textDocument/hover", _place(path, line, column))
        return str(found["contents"]["value"]) if found else ""

    def completions(self, path: Path, line: int, column: int) -> list[str]:
        """The labels that are offered at a place."""
        found = self._request("textDocument/completion", _place(path, line, column))
        return [str(item["label"]) for item in (found["items"] if isinstance(found, dict) else found)]

    def _request(self, method: str, params: Any) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == self._number and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            self._handle(message)

    def _handle(self, message: dict[str, Any]) -> None:
        """Answer a request of the server, and keep what it publishes."""
        if message.get("method") == "textDocument/publishDiagnostics":
            self._diagnostics[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif message.get("method") == "workspace/configuration":
            found = [self._settings.get(item["section"], {}) for item in message["params"]["items"]]
            self._send({"id": message["id"], "result": found})
        elif "id" in message:
            self._send({"id": message["id"], "result": None})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._stdin.flush()

    def _receive(self) -> dict[str, Any]:
        length = 0
        while header := self._stdout.readline().strip():
            name, _, value = header.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert length, "the server has ended"
        return dict(json.loads(self._stdout.read(length)))


def _place(path: Path, line: int, column: int) -> dict[str, Any]:
    return {"textDocument": {"uri": path.as_uri()}, "position": {"line": line, "character": column}}
