"""Runs, recordings and plans that others made or damaged are refused or reported."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest

from chaos.app.day.document import load_game_day
from chaos.app.fleet.loading import load_fleet
from chaos.cli.app import main
from chaos.cluster.client import connect
from chaos.cluster.errors import KubeUnreachable
from chaos.cluster.observers.prometheus import make_client
from chaos.core.errors import BadInput, NodefallError, Refused
from chaos.core.field_types import Secret
from chaos.core.plan import Plan
from chaos.core.prometheus import Prometheus
from chaos.core.store.journal import NAME, Journal
from chaos.core.store.run_directory import EXPERIMENT as EXPERIMENT_FILE
from chaos.core.store.run_directory import PLAN, RUN, RunInfo, create, refuse_untrusted, save
from chaos.documents.inventory import load_inventory
from chaos.documents.manifests import load_manifests
from chaos.engine.load import load
from chaos.machines.driver import transport_of
from chaos.machines.local import SecretContext, client_context, read_secret
from chaos.machines.power.command import CommandPower, make_command_control
from chaos.machines.sessions.host_keys import load_known_hosts
from chaos.machines.sessions.settings import HostSettings
from chaos.machines.ssh import login
from chaos.machines.winrm.endpoint import Endpoint
from tests.kit.elsewhere import give_away
from tests.kit.kubeconfigs import VERSION
from tests.kit.misbehaving import kubeconfig
from tests.kit.openssh import host_with

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests" / "recordings" / "12-partition-ipv4-only.jsonl.gz"
EXPERIMENT = ROOT / "experiments" / "graceful-poweroff.yaml"
DEPTH = 200_000
START = b'{"t":9e9,"kind":"host","type":"x","object":'
# the line, its column, what is wrong with it
DEEP = "nested more than 64 levels deep"
DAMAGED = [
    (START + b"[" * DEPTH + b"]" * DEPTH + b',"node":"n"}', len(START) + 63 + 1, DEEP),
    (START + b"[" * 64 + b"]" * 64 + b',"node":"n"}', len(START) + 63 + 1, DEEP),
    (START + b'{"a":' * DEPTH + b"1" + b"}" * DEPTH + b"}", len(START) + 63 * 5 + 1, DEEP),
    (START + b'"[[[\\"[[[ \xff"}', len(START) + 11, "it is not UTF-8"),
    (START + b'"a"\x00}', len(START) + 4, "is not an entry of a recording"),
]
INVENTORY = Path(__file__).parents[2] / "hosts" / "lab.yaml"


def a_run(reports: Path) -> Path:
    directory = create(reports, "e", 1795232133.0)
    save(directory, RUN, RunInfo("r", "e", 1795232133.0, {"kind": "Inventory"}))
    Journal(directory).close()
    return directory


@pytest.mark.parametrize("reason", ["belongs to user", "any user may write", "is a symbolic link of user"])
def test_undo_refuses_the_run_of_another_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    directory = a_run(tmp_path / "reports")
    if "link" in reason:
        directory = directory.rename(tmp_path / "elsewhere")
        link = tmp_path / "reports" / "e" / "20990101T000000Z"
        link.symlink_to(directory)
        give_away(link, monkeypatch)
    elif "belongs" in reason:
        give_away(directory / "journal.jsonl", monkeypatch)
    else:
        (directory / RUN).chmod(0o602)
    assert main(["undo", "last", "--reports", str(tmp_path / "reports")]) == 64
    assert f"not trusted: {'it ' if reason[0] in 'bi' else ''}{reason}" in capsys.readouterr().err
    assert sorted(path.name for path in directory.iterdir()) == ["journal.jsonl", RUN]


def test_the_own_run_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path / "reports")
    main(["undo", "last", "--reports", str(tmp_path / "reports")])
    assert "not trusted" not in capsys.readouterr().err


@pytest.mark.parametrize("newline", [b"\n", b""])
@pytest.mark.parametrize(("line", "column", "why"), DAMAGED)
def test_position(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    line: bytes,
    column: int,
    why: str,
    newline: bytes,
) -> None:
    if not newline and "nested" not in why:
        pytest.skip("a last line without a newline is a truncated one")
    path = tmp_path / "r.jsonl"
    text = gzip.decompress(RECORDING.read_bytes())
    path.write_bytes(text + line + newline)
    assert main(["judge", str(path), str(EXPERIMENT)]) == 64
    error = capsys.readouterr().err
    assert f"{path}:{len(text.splitlines()) + 1}:{column}: " in error
    assert why in error


def _secret(path: Path) -> None:
    read_secret(Secret(file=str(path)), SecretContext({}, path.parent, path.parent))


def _known_hosts(path: Path) -> None:
    load_known_hosts(HostSettings("n", "127.0.0.1", "root", path))


def _authority_of_winrm(path: Path) -> None:
    Endpoint("n", "127.0.0.1", 5986, "basic", ca_file=path).tls_context()


def _authority_in_kubeconfig(path: Path) -> None:
    cluster = {"certificate-authority": str(path)}
    connect(str(kubeconfig(path.parent, "https://127.0.0.1:1", {"token": "secret"}, **cluster)))


def _key_of_paramiko(path: Path) -> None:
    settings = HostSettings("n", "127.0.0.1", "root", path, identity_file=path, agent=False)
    list(login._identities(settings, ExitStack()))


def _file_of_openssh(key: str, path: Path) -> None:
    context = host_with({"transport": "openssh", key: str(path)})
    transport_of(context).open_session(context)


def _config_of_openssh(path: Path) -> None:
    context = host_with({"transport": "openssh", "options": {"configFile": str(path)}})
    transport_of(context).open_session(context)


def _secret_of(argv: list[str]) -> None:
    read_secret(Secret(command=argv), SecretContext({}, Path(), Path()))


def _program_of_power(path: Path) -> None:
    keys = {"on": ["true"], "status": [str(path)], "isOn": {"exit": [0]}, "isOff": {"exit": [1]}}
    settings = CommandPower.model_validate({"kind": "command", **keys})
    make_command_control(settings, SecretContext({}, Path())).state()


def _exec_plugin(path: Path) -> None:
    own = path.parents[1] / "own"
    own.mkdir()
    plugin = {"apiVersion": VERSION, "command": str(path), "interactiveMode": "Never"}
    connect(str(kubeconfig(own, "https://127.0.0.1:1", {"exec": plugin}))).request("GET", "/version")


def _key_in_kubeconfig(path: Path) -> None:
    own = path.parents[1] / "own"
    own.mkdir()
    user = {"client-certificate": str(path), "client-key": str(path)}
    connect(str(kubeconfig(own, "https://127.0.0.1:1", user))).request("GET", "/version")


def _key_of_winrm(path: Path) -> None:
    Endpoint("n", "127.0.0.1", 5986, "certificate", certificate=path, key=path).tls_context()


def _file_of_prometheus(path: Path) -> None:
    make_client(Prometheus.model_validate({"url": "https://127.0.0.1:1", "ca": str(path)}), lambda _: "")


def _run_file(name: str, path: Path) -> None:
    refuse_untrusted(path.rename(path.with_name(name)).parent)


# Each file that can cause a command, a connection or a change, and what reads it.
READERS: dict[str, Callable[[Path], object]] = {
    "inventory": load_inventory,
    "experiment": load,
    "manifests": lambda path: load_manifests([path]),
    "game day": load_game_day,
    "fleet": load_fleet,
    "kubeconfig": lambda path: connect(str(path)),
    "authority in a kubeconfig": _authority_in_kubeconfig,
    "secret": _secret,
    "known hosts": _known_hosts,
    "authority of a power control": lambda path: client_context(str(path), SecretContext({}, path.parent)),
    "authority of WinRM": _authority_of_winrm,
    "key of ssh": _key_of_paramiko,
    "key of openssh": partial(_file_of_openssh, "identityFile"),
    "known hosts of openssh": partial(_file_of_openssh, "knownHosts"),
    "configuration of openssh": _config_of_openssh,
    "program of a secret": lambda path: _secret_of([str(path)]),
    "script of a secret": lambda path: _secret_of(["sh", str(path)]),
    "program of a power control": _program_of_power,
    "exec plug-in": _exec_plugin,
    "key in a kubeconfig": _key_in_kubeconfig,
    "key of WinRM": _key_of_winrm,
    "authority of Prometheus": _file_of_prometheus,
    **{f"{name} of a run": partial(_run_file, name) for name in (RUN, PLAN, NAME, EXPERIMENT_FILE)},
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("attack", ["owner", "writable", "directory", "link"])
def test_no_file_of_another_user_causes_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, attack: str
) -> None:
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o700)
    if attack == "owner":
        give_away(path, monkeypatch)
    elif attack == "writable":
        path.chmod(0o777)
    elif attack == "directory":
        path.parent.chmod(0o777)
    else:
        path = path.rename(tmp_path / "target")
        (tmp_path / "folder" / "file").symlink_to(path)
        path = tmp_path / "folder" / "file"
        give_away(path, monkeypatch)
    with pytest.raises((BadInput, Refused, KubeUnreachable), match="not trusted"):
        READERS[kind](path)


@pytest.mark.parametrize("kind", READERS)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("chaos.machines.local.COMMAND_TIMEOUT", 1)  # a script that is a pipe is for sh to read
    path = tmp_path / "folder" / "file"
    path.parent.mkdir(mode=0o700)
    os.mkfifo(path, 0o700)

    def read() -> None:
        with suppress(NodefallError, OSError):
            READERS[kind](path)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(20)
    is_waiting = thread.is_alive()
    if is_waiting:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))  # ends it
    assert not is_waiting


def saved(folder: Path, run: str, mode: int = 0o600) -> Path:
    path = folder / "plan.json"
    path.write_bytes(msgspec.json.encode(Plan(run, "x", "hash", "cluster-1", 1000.0, 7, (), (), source="none.yaml")))
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("run", "mode", "message"),
    [
        ("../elsewhere", 0o600, "'../elsewhere' is not a valid run ID"),
        ("a/b", 0o600, "'a/b' is not a valid run ID"),
        ("", 0o600, "'' is not a valid run ID"),
        ("r-1", 0o602, "not trusted: any user may write this file"),
        ("r-1", 0o600, "none.yaml: file not found"),
    ],
)
def test_a_saved_plan_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: str, mode: int, message: str
) -> None:
    assert main(["run", "--plan", str(saved(tmp_path, run, mode)), "-i", str(INVENTORY)]) == 64
    assert message in capsys.readouterr().err
