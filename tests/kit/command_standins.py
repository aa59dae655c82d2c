"""Programs on PATH that say what kind and docker said: a table of commands and their recorded answers."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

_SCRIPT = """#!/bin/sh
{{ printf '%s\\037' "$KIND_EXPERIMENTAL_PROVIDER" "${{0##*/}}" "$@"; printf '\\036'; }} >>{folder}/calls
. {folder}/answers
"""
_ANSWER = """{start}*)
  cat {folder}/{number}.err >&2
  {more}
  cat {folder}/{number}.out
  exit {code} ;;
"""
_KUBECONFIG = 'for a; do case "$a" in --kubeconfig=*) cp {file} "${{a#*=}}" ;; esac; done'
_STAYS = "echo $$ >{folder}/pid.new; mv {folder}/pid.new {folder}/pid; exec sleep 300"  # killed at any moment


@dataclass
class StandIns:
    """``answers``: by the beginning of a command line; the first that fits counts."""

    folder: Path
    answers: dict[str, Mapping[str, object]] = field(default_factory=dict)

    def install(self, *programs: str) -> None:
        self.save()
        for name in programs:
            file = self.folder / name
            file.write_text(_SCRIPT.format(folder=quote(str(self.folder))))
            file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def override(self, answers: Mapping[str, Mapping[str, object]]) -> None:
        """Save answers that precede all others, also those to longer beginnings."""
        self.answers = {**answers, **{start: each for start, each in self.answers.items() if start not in answers}}
        self.save()

    def save(self) -> None:
        folder, cases = quote(str(self.folder)), []
        for number, (start, answer) in enumerate(self.answers.items()):
            for stream, suffix in (("stdout", "out"), ("stderr", "err")):  # a lone surrogate: a byte that is not UTF-8
                text = str(answer.get(stream, ""))
                (self.folder / f"{number}.{suffix}").write_text(text, encoding="utf-8", errors="surrogateescape")
            more = [_KUBECONFIG.format(file=quote(str(answer["kubeconfig"])))] if "kubeconfig" in answer else []
            more += [_STAYS.format(folder=folder)] if answer.get("stays") else []
            code, lines = answer.get("exit", 0), "\n  ".join(more or [":"])
            cases.append(_ANSWER.format(start=quote(start), folder=folder, number=number, more=lines, code=code))
        unknown = '*) echo "no answer to $line" >&2; exit 1 ;;\n'
        text = f'line="${{0##*/}} $*"\ncase "$line" in\n{"".join(cases)}{unknown}esac\n'
        (self.folder / "answers").write_text(text)

    def calls(self, start: str) -> list[list[str]]:
        """Command lines that begin so, as words, after the value of KIND_EXPERIMENTAL_PROVIDER."""
        path = self.folder / "calls"
        text = path.read_text(errors="surrogateescape") if path.exists() else ""
        calls = [line.split("\x1f")[:-1] for line in text.split("\x1e")[:-1]]
        return [words for words in calls if " ".join(words[1:]).startswith(start)]
