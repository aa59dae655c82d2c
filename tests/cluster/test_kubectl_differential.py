"""Where kubectl works with a kubeconfig, nodefall does as the same identity; where kubectl refuses, it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.kubeconfigs import PLUGIN, SECRET, VERSION, Case, Generator, by_kubectl, by_nodefall
from tests.kit.recording_server import Recorder, recording


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Recorder, Path]]:
    folder = tmp_path_factory.mktemp("differential")
    with recording(folder) as recorder:
        yield recorder, folder


TEXT = """{head}
apiVersion: v1
kind: Config
clusters:
- name: c
  cluster: {{server: "{server}", certificate-authority: {authority}{cluster}}}
users:
- name: u
  user:
    {user}
contexts:
- name: x
  context: {{cluster: c, user: u}}
current-context: x
{tail}"""
IN_BLOCK = "token: |-\n      hunter2hunter2"
# What differs from a plain file, by its place.
WRITTEN: list[dict[str, str]] = [
    {"head": "\ufeff"},
    {"head": "t: &t {token: hunter2hunter2}", "user": "<<: *t"},
    {"tail": "---\nkind: Other\n"},
    {"tail": "---\n[broken"},
    {"tail": "extensions: [{name: a, extension: text}]\nunknown: 1\n"},
    {"user": IN_BLOCK},
    {"user": IN_BLOCK.replace("|-", "|")},
    {"user": 'token: " hunter2hunter2  "'},
    {"user": "token: 2001-01-01"},
    {"user": "token: 0777"},
    {"user": "token: yes"},
    *({"user": f"token: {text}"} for text in ("y", "N", "1e3", "0o7", "08", "1:30", "=", "-", "oN", "!!binary YWJj")),
    {"cluster": ", insecure-skip-tls-verify: y"},
    {"cluster": ", insecure-skip-tls-verify: n"},
    {"head": "preferences: text"},
    {"head": "extensions: {}"},
    {"user": "{token: a, as: b, as-user-extra: {\"a'(),~b\": [' x '], 'A B:c/%d_é': []}}"},
    {"user": "token: a\n    token: b"},
    {"user": "Token: hunter2hunter2"},
    {"user": "{token: a, as: b, as-groups: [null, c], as-user-extra: {d: null, e: [null]}}"},
    {"user": "{token: a, as: ' b '}"},
    {"user": "{token: a, client-key: gone.key}"},
    {"user": "{client-certificate: both.pem, client-key: both.pem}"},
    {"user": "{client-certificate: ., client-key: ada.key}"},
    {"user": "{tokenFile: ~/token}"},
    {"cluster": ", tls-server-name: API.internal"},
    {"cluster": ", proxy-url: 'HTTP://127.0.0.1:{proxy}/x?y'"},
    {"cluster": ", proxy-url: 'http://ada:%C3%BC@127.0.0.1:{proxy}'"},
    {"cluster": ", proxy-url: 'http://ada@127.0.0.1:{proxy}'"},
    {"cluster": ", proxy-url: 'http://:3128'"},
    {"server": "HTTPS://127.0.0.1:{port}//a//"},
    {"server": "https://127.0.0.1:{port}?a=1"},
    {"server": "https://localhost.:{port}"},
    {"server": "https://localhost:{port}/a//b"},
    {"authority": "bundle.pem"},
    {"server": " https://127.0.0.1:{port}"},
    {"HTTPS_PROXY": "127.0.0.1:{proxy}"},
    {"HTTPS_PROXY": "socks5://127.0.0.1:{proxy}"},
    {"HTTPS_PROXY": "http://127.0.0.1:1"},
    {"HTTPS_PROXY": "   "},
    {"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": "internal:1,.internal"},
    {"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": "*", "cluster": ", proxy-url: 'http://127.0.0.1:{proxy}'"},
    {"HTTPS_PROXY": "http://127.0.0.1:{proxy}", "NO_PROXY": "*internal,::1"},
]


@pytest.mark.parametrize("changes", WRITTEN, ids=str)
def test_kubeconfigs_as_people_write_them(
    changes: dict[str, str], server: tuple[Recorder, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, folder = server
    (folder / "both.pem").write_bytes((folder / "ada.crt").read_bytes() + (folder / "ada.key").read_bytes())
    unreadable = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    (folder / "bundle.pem").write_bytes(unreadable + (folder / "cluster.crt").read_bytes() + unreadable)
    monkeypatch.delenv("NO_PROXY", raising=False)
    by_place = {
        "authority": "cluster.crt",
        "head": "",
        "user": f"token: {SECRET}",
        "cluster": "",
        "server": "https://127.0.0.1:{port}",
        "tail": "",
    }
    if "HTTPS_PROXY" in changes:
        by_place["server"] = "https://api.internal:{port}"
    for place, written in changes.items():
        text = written.replace("{port}", str(recorder.port)).replace("{proxy}", str(recorder.proxy_port))
        if place.isupper():
            monkeypatch.setenv(place, text)
        else:
            by_place[place] = text
    by_place["server"] = by_place["server"].replace("{port}", str(recorder.port))
    compare_case(Case({"config": TEXT.format(**by_place)}), recorder, folder, str(changes))


def compare(seed: int, recorder: Recorder, folder: Path) -> bool:
    """Whether kubectl connects with the kubeconfig of this seed."""
    return compare_case(Generator(seed, recorder, folder).case(), recorder, folder, f"seed {seed}")


def compare_case(case: Case, recorder: Recorder, folder: Path, name: str) -> bool:
    text, log = case.write(folder), folder / "plugin.log"
    expected, found = (run(text, case, recorder, log) for run in (by_kubectl, by_nodefall))
    report = f"{name}: {case}\nkubectl: {expected}\nnodefall: {found}"
    assert bool(expected.error) == bool(found.error), report
    assert SECRET not in found.error, report
    assert found.seen == expected.seen, report
    assert expected.error or found == expected, report
    return not expected.error


def test_kubeconfigs_of_every_kind(server: tuple[Recorder, Path]) -> None:
    worked = [compare(seed, *server) for seed in range(40)]
    assert 10 < sum(worked) < 35


@pytest.mark.slow
def test_three_hundred_kubeconfigs(server: tuple[Recorder, Path]) -> None:
    assert 100 < sum(compare(seed, *server) for seed in range(1000, 1300)) < 250


ANSWER = json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": {"token": SECRET}})


@pytest.mark.parametrize(
    "answer",
    [
        f"WARNING: old\n{ANSWER}",
        f"{ANSWER}\nWARNING: old",
        f"\n  {ANSWER}\n",
        ANSWER * 2,
        f"{ANSWER}\n---\n{{}}",
        f"# by hand\napiVersion: {VERSION}\nkind: ExecCredential\nstatus: {{token: {SECRET}}}\n",
        ANSWER.replace(SECRET, f"{SECRET}\\u00a0\\u200bü\\tx"),
        ANSWER.replace(SECRET, f"{SECRET}\\nx"),
        ANSWER.replace("status", "Status"),
        "[]",
        "\x00",
        '{"a":' * 20_000,
    ],
)
def test_answers_of_plugins(answer: str, server: tuple[Recorder, Path]) -> None:
    recorder, folder = server
    (folder / "plugin").write_text(PLUGIN)
    (folder / "plugin").chmod(0o700)
    plugin = {"apiVersion": VERSION, "command": "./plugin", "interactiveMode": "Never"}
    user = json.dumps({"exec": plugin | {"env": [{"name": "PLUGIN_ANSWER", "value": answer}]}})
    places = {"authority": "cluster.crt", "head": "", "tail": "", "cluster": "", "user": user}
    text = TEXT.format(server=f"https://127.0.0.1:{recorder.port}", **places)
    compare_case(Case({"config": text}), recorder, folder, answer)
