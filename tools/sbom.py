"""Writes the software bill of materials of a release, CycloneDX 1.6: ``python tools/sbom.py OUT.cdx.json``.

It has what deploy/requirements.txt pins, as pip installs it on this platform with hashes checked, with licences and who
needs what. The same pins give the same bytes. Run it in a virtual environment that has the tools of .ci/tools.txt.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from chaos import __version__  # noqa: E402 - of this tree, which is not installed beside the tools


def main(arguments: list[str]) -> int:
    """Write the file; the exit code."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)  # noqa: T201
        return 64
    with tempfile.TemporaryDirectory() as folder:
        raw = _of_environment(_environment(Path(folder)))
    text = finished(raw, __version__)
    if error := _schema_error(text):
        print(f"{arguments[0]} was not written: not valid CycloneDX 1.6: {error}", file=sys.stderr)  # noqa: T201
        return 1
    Path(arguments[0]).write_text(text, encoding="utf-8")
    return 0


def finished(raw: str, version: str) -> str:
    """The document with nodefall's version, which is dynamic in pyproject.toml and therefore missing."""
    document = json.loads(raw)
    document["metadata"]["component"] |= {"version": version, "purl": f"pkg:pypi/nodefall@{version}"}
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _environment(folder: Path) -> Path:
    """The interpreter of a new virtual environment with the pinned packages only, not even pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    install = ["install", "--quiet", "--require-hashes", "--only-binary", ":all:", "--requirement"]
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    subprocess.run([*pip, *install, str(ROOT / "deploy" / "requirements.txt")], check=True)
    return python


def _of_environment(python: Path) -> str:
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", str(ROOT / "pyproject.toml")]
    command += ["--mc-type", "application", "--spec-version", "1.6", "--output-reproducible", str(python)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _schema_error(text: str) -> str:
    """Why the document does not match the schema of CycloneDX; nothing if it does."""
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415 - the tests of finished() do without
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415

    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    return str(error).partition("\n")[0] if error else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
