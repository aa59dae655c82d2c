"""Kubeconfigs of every kind, good and bad, as a generator draws them; and what kubectl and nodefall do with them."""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.cluster.client import connect
from chaos.core.errors import NodefallError
from tests.kit.kubectl_lab import binary
from tests.kit.recording_server import Recorder, Seen

Document = dict[str, Any]
VERSION = "client.authentication.k8s.io/v1"
SECRET = "hunter2hunter2"  # in every token, password and login
PLUGIN = """#!/bin/sh
echo "$KUBERNETES_EXEC_INFO" >> "$PLUGIN_LOG"
printf '%s' "$PLUGIN_ANSWER"
exit ${PLUGIN_EXIT:-0}
"""


@dataclass
class Case:
    """Files by name, in the order of KUBECONFIG, and what else is chosen."""

    files: dict[str, Document | str] = field(default_factory=dict)
    context: str | None = None
    missing: bool = False

    def write(self, folder: Path) -> str:
        """The value of KUBECONFIG."""
        names = list(self.files)
        for name, document in self.files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
            path.chmod(0o600)
        if self.missing:
            names.insert(len(names) // 2, "absent")
        return os.pathsep.join(str(folder / name) for name in names)


@dataclass(frozen=True)
class Outcome:
    """The requests that arrived, and through which proxy login; none where it was refused. ``plugin``: what it got."""

    seen: tuple[Seen, ...]
    proxied: tuple[str, ...]
    plugin: tuple[str, ...]
    error: str = field(default="", compare=False)


def by_kubectl(text: str, case: Case, recorder: Recorder, log: Path) -> Outcome:
    arguments = ["--context", case.context] if case.context else []
    environment = {key: value for key, value in os.environ.items() if key.startswith(("PATH", "HTTPS_", "NO_"))}
    environment |= {"KUBECONFIG": text, "HOME": str(log.parent), "PLUGIN_LOG": str(log)}
    recorder.clear()
    done = subprocess.run(
        [binary(), *arguments, "get", "--raw", "/readyz"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return _outcome(recorder, log, done.stderr if done.returncode else "")


def by_nodefall(text: str, case: Case, recorder: Recorder, log: Path) -> Outcome:
    os.environ["PLUGIN_LOG"] = str(log)
    recorder.clear()
    error = ""
    try:
        api = connect(text, case.context)
        try:
            status = api.request("GET", "/readyz").status
            error = "" if status == 200 else f"{status}"
        finally:
            api.close()
    except NodefallError as refusal:
        error = f"{refusal} {refusal.hint}"
    finally:
        del os.environ["PLUGIN_LOG"]
    return _outcome(recorder, log, error)


def _outcome(recorder: Recorder, log: Path, error: str) -> Outcome:
    infos = (
        [json.dumps(json.loads(line), sort_keys=True) for line in log.read_text().split("\n") if line]
        if log.exists()
        else []
    )
    log.unlink(missing_ok=True)
    return Outcome(tuple(recorder.seen), tuple(recorder.proxied), tuple(infos), error)


class Generator:
    """Draws cases for the server and the proxy of ``recorder``, whose certificates are in ``folder``."""

    def __init__(self, seed: int, recorder: Recorder, folder: Path) -> None:
        self.random, self.recorder, self.folder = random.Random(seed), recorder, folder  # noqa: S311
        (folder / "plugin").write_text(PLUGIN)
        (folder / "plugin").chmod(0o700)

    def case(self) -> Case:
        cluster, user = self._cluster(), self._user()
        context: Document = {"cluster": "c", "user": "u"}
        entries = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": context}],
        }
        case = Case({"config": _document(**entries, **{"current-context": "x"})})
        self._arrange(case, entries)
        return case

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _arrange(self, case: Case, entries: Document) -> None:
        """Several files, other contexts, and what is wrong with a file as a whole."""
        how, other = self.random.randrange(20), {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
        if how == 0:
            case.files = {
                "config": _document(users=entries["users"]),
                "below/second": _document(clusters=[other], contexts=entries["contexts"]),
                "third": _document(clusters=entries["clusters"], users=[], **{"current-context": "x"}),
            }
        elif how == 1:
            parts = ["clusters", "users", "contexts"]
            self.random.shuffle(parts)
            case.files = {f"part-{each}": _document(**{each: entries[each]}) for each in parts}
            case.files["last"] = _document(**{"current-context": self.random.choice(["x", "y"])})
            case.missing = True
        elif how == 2:
            case.files["second"] = _document(clusters=[other], **{"current-context": "gone"})
        elif how == 3:
            case.files["second"] = self.random.choice(["", "clusters: [", "[]", '{"kind": "List"}', "null", "# none"])
        elif how == 4:
            case.context = self.random.choice(["x", "gone"])
        elif how == 5:
            case.files["config"] = _document(**entries)  # without a current context
        elif how == 6:
            entries["clusters"].append(other)  # twice
            case.files["config"] = _document(**entries, **{"current-context": "x"})
        elif how == 7:
            entries["contexts"][0]["context"].update(
                self.random.choice([{"cluster": "gone"}, {"user": None}, {"x": 1}])
            )
            case.files["config"] = _document(**entries, **{"current-context": "x"})

    def _cluster(self) -> Document:
        draw = self.random.choice
        host = draw(["127.0.0.1", "localhost", "127.0.0.1"])
        cluster: Document = {
            "server": f"https://{host}:{self.recorder.port}{draw(['', '', '/', '/prefix', '/p/q/?x=1'])}"
        }
        if self._chance(0.06):
            cluster["server"] = f"http://127.0.0.1:{self.recorder.plain_port}"
        authority = (self.folder / "cluster.crt").read_bytes()
        trust: list[Document] = [
            {"certificate-authority-data": base64.b64encode(authority).decode()},
            {"certificate-authority": str(self.folder / "cluster.crt")},
            {"certificate-authority": "cluster.crt"},
            {"insecure-skip-tls-verify": True},
        ]
        wrong: list[Document] = [
            {},
            {"certificate-authority": "gone.crt"},
            {"certificate-authority": "plugin"},
            {"certificate-authority-data": "bm9uZQ=="},
            {"certificate-authority-data": "%%%"},
            trust[0] | trust[1],
            trust[1] | trust[3],
            {"insecure-skip-tls-verify": "yes"},
        ]
        cluster |= draw(wrong if self._chance(0.12) else trust)
        if self._chance(0.25):
            cluster["tls-server-name"] = draw(["api.internal", "localhost", "127.0.0.1", "other.invalid"])
        if self._chance(0.3) and cluster["server"].startswith("https:"):
            self._proxy(cluster)
        if self._chance(0.15):
            cluster |= draw(
                [{"disable-compression": True}, {"extensions": [{"name": "e", "extension": {"a": 1}}]}, {"x": 1}]
            )
        return cluster

    def _proxy(self, cluster: Document) -> None:
        at, login = f"127.0.0.1:{self.recorder.proxy_port}", f"ada:{SECRET}%2f@"
        good = [f"http://{at}", f"http://{login}{at}", f"socks5://{at}", f"socks5://{login}{at}"]
        bad = ["http://127.0.0.1:1", "socks5://127.0.0.1:1", at, "ftp://127.0.0.1:1", "http://127.0.0.1:x", "proxy"]
        cluster["proxy-url"] = self.random.choice(bad if self._chance(0.3) else good)
        if "127.0.0.1:x" in cluster["proxy-url"] or self._chance(0.5):
            return
        cluster["server"] = f"https://api.internal:{self.recorder.port}"  # a name that only the proxy knows

    def _user(self) -> Document:
        user: Document = {}
        for add in self.random.sample(
            [
                self._token,
                self._token_file,
                self._basic,
                self._certificate,
                self._plugin,
                self._token,
                self._certificate,
            ],
            2 if self._chance(0.2) else 1,
        ):
            user |= add()
        if self._chance(0.5):
            user |= self._impersonation()
        if self._chance(0.05):
            user["client-key"] = None
        return user

    def _token(self) -> Document:
        odd: list[Any] = [f"{SECRET}\n", f"{SECRET}ü", "", 12345678, None, f"{SECRET}  x"]
        return {"token": self.random.choice(odd) if self._chance(0.2) else f"{SECRET}-token"}

    def _token_file(self) -> Document:
        texts = [f"{SECRET}-file", f"{SECRET}-file\n", f"  {SECRET}-file\r\n\n", "", "\n"]
        (self.folder / "token").write_text(self.random.choice(texts), newline="")
        found: Document = {
            "tokenFile": self.random.choice(["token", str(self.folder / "token"), "./token", "no-token"])
        }
        return found | ({"token": f"{SECRET}-token"} if self._chance(0.3) else {})

    def _basic(self) -> Document:
        return self.random.choice(
            [{"username": "ada", "password": f"{SECRET}:ü"}, {"username": "ada"}, {"password": SECRET}]
        )

    def _certificate(self) -> Document:
        certificate, key = (
            base64.b64encode((self.folder / f"ada.{end}").read_bytes()).decode() for end in ("crt", "key")
        )
        good: list[Document] = [
            {"client-certificate": "ada.crt", "client-key": "ada.key"},
            {"client-certificate": str(self.folder / "ada.crt"), "client-key-data": key},
            {"client-certificate-data": certificate, "client-key-data": key},
        ]
        bad: list[Document] = [
            {"client-certificate": "ada.crt"},
            {"client-certificate": "ada.crt", "client-key": "grace.key"},
            {"client-certificate": "gone.crt", "client-key": "ada.key"},
            good[0] | good[2],
            {"client-certificate-data": key, "client-key-data": key},
        ]
        return self.random.choice(bad if self._chance(0.25) else good)

    def _plugin(self) -> Document:
        certificate, key = ((self.folder / f"grace.{end}").read_text() for end in ("crt", "key"))
        pair = {"clientCertificateData": certificate, "clientKeyData": key}
        token = {"token": f"{SECRET}-plugin"}
        expiries: list[Document] = [{}, {"expirationTimestamp": "2099-01-01T00:00:00Z"}, {"expirationTimestamp": None}]
        good: list[Document] = [token, pair, token | pair]
        bad: list[Document] = [{}, {"token": ""}, {"clientKeyData": key}, pair | {"clientKeyData": "x"}, {"token": 1}]
        status = self.random.choice(bad if self._chance(0.2) else good) | self.random.choice(expiries)
        answer: Document = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
        if self._chance(0.1):
            answer["apiVersion"] = self.random.choice([f"{VERSION}beta1", "v1", None])
        plugin: Document = {
            "apiVersion": VERSION,
            "command": self.random.choice(["./plugin", str(self.folder / "plugin")]),
            "args": ["get", "token"],
            "env": [{"name": "PLUGIN_ANSWER", "value": json.dumps(answer)}],
            "interactiveMode": self.random.choice(["Never", "IfAvailable"]),
            "provideClusterInfo": self.random.choice([True, False, None]),
        }
        invalidated: list[Document] = [
            {"command": "no-such-program"},
            {"command": None},
            {"interactiveMode": self.random.choice(["Always", None, "never"])},
            {"apiVersion": self.random.choice(["client.authentication.k8s.io/v1alpha1", None, "v1"])},
            {"env": [*plugin["env"], {"name": "PLUGIN_EXIT", "value": "3"}]},
            {"env": [{"value": "x"}]},
        ]
        return {"exec": plugin | (self.random.choice(invalidated) if self._chance(0.2) else {})}

    def _impersonation(self) -> Document:
        draw = self.random.choice
        found: Document = {"as": draw(["system:serviceaccount:chaos:bot", "jürgen", "ada@example.org", "a b"])}
        more: list[Document] = [
            {"as-groups": draw([["viewers"], ["a", "b", "system:masters"], []])},
            {"as-uid": "u1"},
            {
                "as-user-extra": draw(
                    [{"reason": ["drill", "other"]}, {"example.org/scopes%": ["ü"], "A_b c": ["1"]}, {}]
                )
            },
        ]
        for each in more:
            found |= each if self._chance(0.5) else {}
        if self._chance(0.1):
            found["as"] = draw(["", None, 5, "a\nb"])
        return found


def _document(**more: Any) -> Document:
    return {"apiVersion": "v1", "kind": "Config", **more}
