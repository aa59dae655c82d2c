"""Programs on PATH that say what kind and docker said: a table of commands and their recorded answers."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_SCRIPT = """#!{python} -IS
import json, os, shutil, sys, time
folder = {folder!r}
argv = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
with open(folder + "/calls", "a") as file:
    file.write(json.dumps([os.environ.get("KIND_EXPERIMENTAL_PROVIDER", ""), *argv]) + "\\n")
line = " ".join(argv)
answer = next((a for start, a in json.load(open(folder + "/answers")) if line.startswith(start)), None)
if answer is None:
    sys.exit("no answer to " + line)
sys.stdout.reconfigure(errors="surrogateescape")  # a lone surrogate stands for a byte that is not UTF-8
sys.stderr.write(answer.get("stderr", ""))
sys.stderr.flush()
if "kubeconfig" in answer:
    target = next(a.split("=", 1)[1] for a in argv if a.startswith("--kubeconfig="))
    shutil.copy(answer["kubeconfig"], target)
if answer.get("stays"):
    with open(folder + "/pid.new", "w") as file:
        file.write(str(os.getpid()))
    os.replace(folder + "/pid.new", folder + "/pid")  # whole or not at all: it is killed at any moment
    time.sleep(300)
sys.stdout.write(answer.get("stdout", ""))
sys.exit(answer.get("exit", 0))
"""


@dataclass
class StandIns:
    """``answers``: by the beginning of a command line; the first that fits counts."""

    folder: Path
    answers: dict[str, Mapping[str, object]] = field(default_factory=dict)

    def install(self, *programs: str) -> None:
        self.save()
        for name in programs:
            file = self.folder / name
            file.write_text(_SCRIPT.format(python=sys.executable, folder=str(self.folder)))
            file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def override(self, answers: Mapping[str, Mapping[str, object]]) -> None:
        """Save answers that precede all others, also those to longer beginnings."""
        self.answers = {**answers, **{start: each for start, each in self.answers.items() if start not in answers}}
        self.save()

    def save(self) -> None:
        (self.folder / "answers").write_text(json.dumps(list(self.answers.items())))

    def calls(self, start: str) -> list[list[str]]:
        """Command lines that begin so, as words, after the value of KIND_EXPERIMENTAL_PROVIDER."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [words for words in map(json.loads, lines) if " ".join(words[1:]).startswith(start)]
