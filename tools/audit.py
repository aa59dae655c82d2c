"""Asks for published advisories of every pinned package: ``python tools/audit.py``.

The exit code is 1 if there are any, or if the audit failed; 0 if there are none, and also if no source of advisories is
usable, which is printed as skipped. Run it in a virtual environment that has the tools of .ci/tools.txt.

An index without advisories is no clean bill: pip-audit takes packages of which it finds nothing for clean. A source
is therefore asked first for an old release with advisories, and used only if it has them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PINNED = [ROOT / ".ci" / "requirements.txt", ROOT / ".ci" / "tools.txt", ROOT / "deploy" / "requirements.txt"]
# CVE-2020-28493 and others. The advisories of PyPI and of osv.dev have it.
KNOWN_VULNERABLE = "jinja2==2.11.1\n"
SOURCES = {"PyPI": ["--vulnerability-service", "pypi"], "osv.dev": ["--vulnerability-service", "osv"]}


@dataclass(frozen=True)
class Answer:
    """What pip-audit printed; ``report`` is None where that is no report, ``error`` what it wrote to stderr."""

    code: int
    report: dict[str, Any] | None
    error: str

    def advisories(self) -> Iterator[str]:
        """One line per advisory."""
        for package in (self.report or {}).get("dependencies", []):
            for found in package.get("vulns", []):
                fixed = ", ".join(found["fix_versions"]) or "no release"
                yield f"{package['name']} {package['version']}: {found['id']}, fixed in {fixed}"

    def unaudited(self) -> Iterator[str]:
        """Why packages were left out, one line each."""
        for package in (self.report or {}).get("dependencies", []):
            if "skip_reason" in package:
                yield str(package["skip_reason"])


Audit = Callable[[Sequence[str], Iterable[Path]], Answer]


def pip_audit(options: Sequence[str], files: Iterable[Path]) -> Answer:
    """Run pip-audit on files of pinned requirements."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--no-deps", "--progress-spinner", "off"]
    command += ["--format", "json", "--desc", "off", *options]
    for file in files:
        command += ["--requirement", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = None
    return Answer(done.returncode, report, done.stderr.strip())


def unusable(options: Sequence[str], audit: Audit) -> str:
    """Why a source cannot be used; nothing if it can."""
    with tempfile.TemporaryDirectory() as folder:
        control = Path(folder, "control.txt")
        control.write_text(KNOWN_VULNERABLE, encoding="utf-8")
        answer = audit(options, [control])
    if any(answer.advisories()):
        return ""
    if answer.report is None:
        return answer.error.rpartition("\n")[2]
    return next(answer.unaudited(), "it has no advisories")


def main(audit: Audit = pip_audit) -> int:
    """Print the outcome; the exit code."""
    for source, options in SOURCES.items():
        if reason := unusable(options, audit):
            print(f"{source} is no source of advisories: {reason}")  # noqa: T201
            continue
        return _outcome(source, audit(options, PINNED))
    print("skipped: no source of advisories is reachable")  # noqa: T201
    return 0


def _outcome(source: str, answer: Answer) -> int:
    lines = [*answer.advisories(), *answer.unaudited()]
    for line in lines:
        print(line)  # noqa: T201
    if answer.code == 0 and answer.report is not None and not lines:
        print(f"{source} has no advisory of a pinned package")  # noqa: T201
        return 0
    if not lines:
        print(f"the audit with {source} failed: {answer.error}")  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(main())
