"""Pins packages: constraints.txt, and with hashes .ci/requirements.txt, .ci/tools.txt and deploy/requirements.txt.

``python tools/lock_requirements.py [--upgrade]``, in a virtual environment that has the tools of .ci/tools.txt. Without
``--upgrade`` a pin changes only where pyproject.toml no longer admits it. The files hold for every platform and Python
version that pyproject.toml admits; the hashes are those that PyPI publishes.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSTRAINTS = "constraints.txt"
CI, TOOLS, RUNTIME = ".ci/requirements.txt", ".ci/tools.txt", "deploy/requirements.txt"
# What hatchling's backend asks for when it builds an editable wheel; it is in no file of the project.
BUILDS_EDITABLE = "editables"


def build_requirements() -> list[str]:
    """What pip installs to build the project, editable or not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [*project["build-system"]["requires"], BUILDS_EDITABLE]


def main(arguments: list[str]) -> int:
    """Write the files; the exit code."""
    if not set(arguments) <= {"--upgrade"}:
        print(__doc__, file=sys.stderr)  # noqa: T201
        return 64
    _compile(CONSTRAINTS, ["pyproject.toml", "--extra", "dev", "--no-header", *arguments])
    hashed = ["--generate-hashes", "--constraint", CONSTRAINTS, *arguments]
    _compile(CI, ["pyproject.toml", "-", "--extra", "dev", *hashed], build_requirements())
    _compile(RUNTIME, ["pyproject.toml", *hashed])
    _compile(TOOLS, [".ci/tools.in", *hashed])
    return 0


def _compile(target: str, options: list[str], more: list[str] | None = None) -> None:
    """Let uv pin the requirements, and those of ``more`` beside them; pins of the target are preferred."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-config", "--universal", "--no-annotate"]
    made_by = f"python tools/{Path(__file__).name}"
    command += ["--python-version", "3.11", "--custom-compile-command", made_by, "--output-file", target, *options]
    subprocess.run(command, cwd=ROOT, input="\n".join(more or []), text=True, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
