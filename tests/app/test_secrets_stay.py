"""Secrets, planted wherever they can enter, are in nothing that leaves, whoever repeats them."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from chaos.app.run.results import JudgedRun
from chaos.cli import app
from chaos.cli.output import StandardStream, echo
from chaos.cli.run.lines import PlainProgress
from chaos.cluster.client import ApiClient, connect
from chaos.cluster.journal_mirror import JournalMirror
from chaos.cluster.node_traces import NodeEvents
from chaos.cluster.observers.prometheus import make_client
from chaos.cluster.replica import RunIdentity, Signer
from chaos.core import redaction
from chaos.core.action import FactCheck, ProofStatus, Undo, UndoStep
from chaos.core.command import HostCommand, KubeCommand
from chaos.core.decode import decode
from chaos.core.errors import NodefallError
from chaos.core.field_types import Secret
from chaos.core.plan import PlannedStep
from chaos.core.ports import Response
from chaos.core.prometheus import Prometheus
from chaos.core.recording import RecordingEntry
from chaos.core.result import RESULT_VERSION, RunResult, StepResult, UndoResult
from chaos.core.store import run_directory
from chaos.core.store.journal import Journal
from chaos.core.store.recording_writer import RecordingWriter
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.engine.recorder import Recorder
from chaos.machines.local import SecretContext, read_secret
from tests.kit.fakes import FakeKube

MARK = "hunter2"  # unlike anything else, and left as it is by every escape
_PARTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)
SECRETS = st.builds(
    lambda before, after: f"q{before}{MARK}{after}q",
    _PARTS | st.sampled_from(["a*b_c", "<&\"'>", "\\ `|~", "%2F+/=", "  ", "\u202e", "$(id)"]),
    _PARTS | st.sampled_from(["]( )[", "&amp;", "\\n", "{}", "\u00e9\u0085"]),
)
Entrance = Callable[[Path, str], None]


def by_environment(folder: Path, secret: str) -> None:
    assert read_secret(Secret(env="PW"), SecretContext({"PW": secret}, folder, folder)) == secret


def by_file(folder: Path, secret: str) -> None:
    (folder / "pw").write_text(secret, encoding="utf-8", newline="")
    (folder / "pw").chmod(0o600)
    assert read_secret(Secret(file="pw"), SecretContext({}, folder, folder)) == secret


def by_command(folder: Path, secret: str) -> None:
    (folder / "pw").write_text(secret, encoding="utf-8", newline="")
    argv = [sys.executable, "-c", "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"]
    assert read_secret(Secret(command=[*argv, str(folder / "pw")]), SecretContext({}, folder, folder)) == secret


def _kubeconfig(folder: Path, user: dict[str, Any], **cluster: str) -> ApiClient:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (folder / "kubeconfig").write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")
    return connect(str(folder / "kubeconfig"))


def by_kubeconfig(folder: Path, secret: str) -> None:
    _kubeconfig(folder, {"token": secret})


def by_proxy(folder: Path, secret: str) -> None:
    _kubeconfig(folder, {"token": "other"}, **{"proxy-url": f"http://ada:{quote(secret, safe='')}@127.0.0.1:1"})


def by_exec_plugin(folder: Path, secret: str) -> None:
    """The plug-in prints the token, and there is no server to send it to."""
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": secret}}
    (folder / "answer").write_text(json.dumps(answer), encoding="utf-8")
    entry = {"apiVersion": version, "command": "cat", "args": [str(folder / "answer")], "interactiveMode": "Never"}
    with pytest.raises(NodefallError, match="refused"):
        _kubeconfig(folder, {"exec": entry}).request("GET", "/version")


def by_prometheus(folder: Path, secret: str) -> None:
    settings = Prometheus.model_validate({"url": "http://127.0.0.1:1", "headers": {"X-Api-Key": {"file": "pw"}}})
    (folder / "pw").write_text(secret, encoding="utf-8", newline="")
    (folder / "pw").chmod(0o600)
    make_client(settings, lambda reference: read_secret(reference, SecretContext({}, folder, folder)))


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", redaction.Known())


def all_outputs(folder: Path, text: str) -> Iterator[bytes]:
    """Everything that leaves the process when ``text``, with a secret in it, occurs at every place."""
    yield from _journal(folder, text)
    yield from _reports(folder, text)
    yield from _recording(folder, text)
    kube = FakeKube({})
    step = PlannedStep("do", "kubelet-stop", "n1", {}, {}, (HostCommand(("x", text)),), Undo(), ())
    NodeEvents(kube, "r-1", "ann", {}).emit_undone(step, 1.0, text)
    yield repr(kube.sent).encode()
    yield from _words(folder, text)


def _journal(folder: Path, text: str) -> Iterator[bytes]:
    """The journal on disk and in the cluster."""
    undo = Undo((UndoStep(KubeCommand("PATCH", "/x", {"a": text})),), (FactCheck("node-ready", text),))
    maps: list[Any] = []

    class Maps(FakeKube):
        def request(self, method: str, path: str, *rest: Any, body: Any = None, **more: Any) -> Response:
            maps.append(body)
            return Response(200, b"{}", {})

    with Journal(folder) as journal:
        with pytest.raises(NodefallError, match="contains a secret") as refused:
            journal.record_intent("do", "patch-budget", "n1", undo, 1.0, state={"path": text})
        yield str(refused.value).encode()
        entry = journal.record_intent("do", "cordon", "n1", Undo((), undo.proof[:0]), 1.0)
        JournalMirror(Maps({}), "kube-system", RunIdentity("r-1", "e", 1.0, text), journal, Signer("uid")).publish()
        journal.mark_undone(entry, text)
    yield (folder / "journal.jsonl").read_bytes()
    yield repr(maps).encode()


def _reports(folder: Path, text: str) -> Iterator[bytes]:
    verdict = Verdict("v", "a", Status.VIOLATED, text, text, text)
    result = RunResult(
        RESULT_VERSION, "r-1", "e", text, Status.VIOLATED, 1, text, True, "v1", "uid", 10.0, 20.0, {"t": ("n1",)},
        (StepResult("do", "a", "n1", 11.0, 12.0, "answered", text, ProofStatus.UNPROVEN, text),),
        (verdict,), (verdict,), (), (), (UndoResult("do", "a", "n1", False, text),), (text,), (text,),
    )  # fmt: skip
    JudgedRun(result, Timeline()).write(folder)
    for path in folder.glob("re*.*"):
        yield path.read_bytes()
    yield (folder / "junit.xml").read_bytes()
    yield (folder / "metrics.txt").read_bytes()
    run_directory.save(folder, run_directory.RUN, {"inventory": {"x": text}})
    yield (folder / run_directory.RUN).read_bytes()


class _Clock:
    def now(self) -> float:
        return 1.0


def _recording(folder: Path, text: str) -> Iterator[bytes]:
    (folder / "r.gz").unlink(missing_ok=True)
    with RecordingWriter(folder / "r.gz") as writer:
        recorder = Recorder(decode, _Clock(), writer.write)  # type: ignore[arg-type]  # only now() is used
        for kind in ("host", "events", "blind"):
            recorder.emit(RecordingEntry(1.0, kind, "x", msgspec.Raw(json.dumps({"message": text}).encode()), "n1"))
    yield gzip.decompress((folder / "r.gz").read_bytes())
    yield repr(recorder.timeline().entries).encode()


def _words(folder: Path, text: str) -> Iterator[bytes]:
    """Standard output and error, and the file of a bug."""
    raw = io.BytesIO()
    stream = StandardStream(io.TextIOWrapper(raw, encoding="utf-8", errors="replace", write_through=True), 1)
    progress = PlainProgress(stream)  # type: ignore[arg-type]  # a subset of TextIO
    progress.step("do", "n1", text)
    progress.note(text * 300)  # cut somewhere
    stream.write(text)
    stream.write(json.dumps({"error": text}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        echo(text)
        patch.setattr(tempfile, "tempdir", str(folder))
        message = app._describe_error(RuntimeError(text))
        stream.write("\n".join(message.lines))
    yield raw.getvalue()
    for path in folder.glob("nodefall-bug-*"):
        yield path.read_bytes()
        path.unlink()


@settings(max_examples=int(os.environ.get("NODEFALL_SECRETS", "20")), suppress_health_check=list(HealthCheck))
@given(secret=SECRETS, before=st.text(max_size=5), after=st.text(max_size=5))
@pytest.mark.parametrize(
    "entrance", [by_environment, by_file, by_command, by_kubeconfig, by_proxy, by_exec_plugin, by_prometheus]
)
def test_no_output_has_a_secret(
    tmp_path_factory: pytest.TempPathFactory, entrance: Entrance, secret: str, before: str, after: str
) -> None:
    assume(entrance not in (by_kubeconfig, by_exec_plugin, by_prometheus) or secret.isascii())  # sent in a header
    folder = tmp_path_factory.mktemp("run")
    entrance(folder, secret)
    for left in all_outputs(folder, f"{before}{secret}{after}"):
        assert MARK.encode() not in left, left
