"""``nodefall init`` as a user runs it: usage, files that exist, fingerprints, and the questions on a terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from chaos.cli.app import main
from chaos.cli.setup import init_questions as questions
from chaos.documents.inventory import load_inventory
from tests.kit.distributions import RunningLab, init, kubeadm, serving
from tests.kit.processes import environment
from tests.kit.terminals import on_terminal

pytestmark = pytest.mark.timeout(900)
CONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {token: "planted-token"}}]
contexts: [{name: prod, context: {cluster: a, user: a}}, {name: staging, context: {cluster: a, user: a}}]
current-context: prod
"""


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "admin.conf"
    path.write_text(CONFIG)
    path.chmod(0o600)
    return path


TWO = "contexts: [{name: a}, {name: b}]\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--kubeconfig", "admin.conf"], 64, "there is no terminal to ask"),
        (["--yes"], 64, "there is no such kubeconfig"),
        (["--yes", "--kubeconfig", "none.conf"], 64, "there is no such kubeconfig"),
        (
            ["--yes", "--kubeconfig", "broken.conf"],
            64,
            "broken.conf:2:1: it cannot be read as a kubeconfig: did not find expected node content",
        ),
        (["--yes", "--kubeconfig", "admin.conf", "--context", "stagin"], 64, "did you mean 'staging'?"),
        (["--yes", "--kubeconfig", "admin.conf", "--out", "admin.conf"], 64, "not overwritten: admin.conf"),
        (["--yes", "--kubeconfig", "admin.conf"], 4, "127.0.0.1:1: connection refused"),
        (["--yes", "--kubeconfig", "empty.conf"], 64, "or it is empty"),
        (["--yes", "--kubeconfig", "two.conf"], 64, "has no current context"),
    ],
)
def test_usage(
    arguments: list[str], code: int, words: str, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("broken.conf", "contexts: [\n"), ("empty.conf", "contexts: []\n"), ("two.conf", TWO)):
        kubeconfig.with_name(name).write_text(text)
        kubeconfig.with_name(name).chmod(0o600)
    assert main(["init", *arguments]) == code
    assert words in capsys.readouterr().err
    assert not (kubeconfig.parent / "hosts").exists()
    assert kubeconfig.read_text() == CONFIG


@pytest.mark.lab
def test_fingerprints_are_never_accepted_silently_and_files_never_overwritten(tmp_path: Path) -> None:
    with serving(kubeadm(1), "shop") as lab:
        options = ["--kubeconfig", str(lab.kubeconfig), *lab.login, "--yes", "--no-doctor"]
        shown = init(*options, cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
        assert shown.stderr.count(" new  ssh-ed25519 SHA256:") == 2
        assert "note: the new host keys were not accepted" in shown.stdout
        inventory, keys = tmp_path / "hosts" / "shop.yaml", tmp_path / "hosts" / "shop.known_hosts"
        assert not keys.exists()
        assert load_inventory(inventory).defaults.known_hosts is None

        again = init(*options, "--accept-fingerprints", cwd=tmp_path)
        assert again.returncode == 64
        assert "not overwritten: hosts/shop.yaml" in again.stderr
        accepted = init(*options, "--accept-fingerprints", "--force", cwd=tmp_path)
        assert "wrote hosts/shop.known_hosts" in accepted.stdout
        assert load_inventory(inventory).defaults.known_hosts == str(keys)
        assert len(keys.read_text().splitlines()) == 2

        # A known_hosts that has another key for a machine: never replaced.
        known = tmp_path / ".ssh" / "known_hosts"
        known.parent.mkdir()
        swapped = dict(
            zip(*[[line.split()[part] for line in keys.read_text().splitlines()] for part in (0, 2)], strict=True)
        )
        first, second = swapped
        known.write_text(f"{first} ssh-ed25519 {swapped[second]}\n{second} ssh-ed25519 {swapped[second]}\n")
        changed = init(*options, "--accept-fingerprints", "--force", cwd=tmp_path)
        assert "never trusted here, as known_hosts has their host keys as changed: cp-1" in changed.stdout
        assert load_inventory(inventory).defaults.known_hosts is None, "no new key, so no new file is used"


def _answers(lab: RunningLab) -> list[tuple[str, str]]:
    """Questions, and what a person types."""
    host = lab.hosts["worker-1"]
    url = host["power"]["url"].replace("worker-1", "{node}")
    return [
        ("login over SSH [", "chaos"),
        ("private key", host["identityFile"]),
        ("jump host", ""),
        ("power control (", "redfish"),
        ("URL of its ComputerSystem", url),
        ("login of the BMCs", host["power"]["user"]),
        ("file with the CA of the BMCs", host["power"]["caFile"]),
        ("variable with their password", ""),
        ("trust these 3 host keys?", "y"),
    ]


@pytest.mark.lab
def test_on_a_terminal_it_asks_and_the_inventory_works(tmp_path: Path) -> None:
    with serving(kubeadm(2), "shop") as lab:
        password = Path(lab.hosts["worker-1"]["power"]["passwordFile"]).read_text()
        variables = {
            **environment(tmp_path),
            "HOME": str(tmp_path),
            "NODEFALL_BMC_PASSWORD": password,
            "KUBECONFIG": "",
        }
        command = [sys.executable, "-m", "chaos", "init", "--kubeconfig", str(lab.kubeconfig), "--port", str(lab.port)]
        with on_terminal(command, 200, 500, variables, tmp_path) as terminal:
            for question, answer in _answers(lab):
                terminal.wait_for(question)
                terminal.type(f"{answer}\r")
            terminal.wait_for("experiments can be run here")
            assert terminal.wait() == 0, terminal.text
        screen = terminal.text
    assert screen.count("SHA256:") == 3
    assert "refusal" not in screen
    inventory = yaml.safe_load((tmp_path / "hosts" / "shop.yaml").read_text())
    assert set(inventory["hosts"]) == {"cp-1", "worker-1", "worker-2"}
    assert inventory["hosts"]["worker-2"]["power"]["url"].endswith("/Systems/worker-2")
    assert inventory["hosts"]["worker-2"]["power"]["password"] == {"env": "NODEFALL_BMC_PASSWORD"}
    assert password not in json.dumps(inventory)


@pytest.mark.parametrize(("answer", "chosen"), [("", "pod"), ("ssh", "ssh"), ("pod", "pod")])
def test_the_question_for_the_transport_names_its_cost(answer: str, chosen: str) -> None:
    @click.command()
    def ask() -> None:
        click.echo(questions.ask_transport("pod"))

    done = CliRunner().invoke(ask, input=f"{answer}\n")
    assert done.stdout.splitlines()[-1] == chosen
    assert "pod makes privileged pods on them" in done.output


def test_a_login_is_none_of_transport_pod(tmp_path: Path) -> None:
    refused = init("--yes", "--transport", "pod", "--user", "ops", cwd=tmp_path)
    assert refused.returncode == 64
    assert "transport pod has no login" in refused.stderr
