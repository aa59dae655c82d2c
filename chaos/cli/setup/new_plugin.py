"""``nodefall new plugin``: a package with one plug-in and its tests, from the templates in docs."""

from __future__ import annotations

import re
from pathlib import Path

from chaos.cli.output import echo, write
from chaos.core.errors import UsageError
from chaos.core.files import bundled_path
from chaos.core.text import shell_word

# Kind: the entry-point group, and the constant of its module. The template of an action is a whole project.
_KINDS = {
    "action": ("actions", "ACTION"),
    "assertion": ("assertions", "ASSERTION"),
    "power": ("power", "DRIVER"),
    "observer": ("observers", "OBSERVER"),
}
_PROJECT = ("pyproject.toml", "README.md", "experiment.yaml", "lab.yaml", "tests/test_stop_unit.py")


def create_plugin(kind: str, directory: Path) -> None:
    """Write the package to a directory that has none of its files; its name is that of the plug-in.

    Raises UsageError.
    """
    name = directory.resolve().name.removeprefix("nodefall-")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise UsageError(
            f"{directory} gives no name for the plug-in", hint="use lower-case letters, digits and hyphens"
        )
    texts = {directory / _named(path, name): _named(text, name) for path, text in plugin_files(kind).items()}
    if existing := [str(path) for path in texts if path.exists()]:
        raise UsageError(f"not overwritten: {', '.join(existing)}", hint="give another DIR")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, text)
        echo(f"wrote {path}")
    echo("next:", f"  cd {shell_word(directory)} && pip install -e . pytest && python -m pytest -q tests")
    echo(f"  nodefall plugins check nodefall-{name}")


def plugin_files(kind: str) -> dict[str, str]:
    """Paths and texts of the template, with the names that it has there."""
    project = bundled_path("docs/plugin-template")
    if kind == "action":
        files = (*_PROJECT, "nodefall_stop_unit.py")
        return {name: (project / name).read_text(encoding="utf-8") for name in files}
    group, constant = _KINDS[kind]
    folder = bundled_path("docs/plugin-kinds")
    toml = (project / "pyproject.toml").read_text(encoding="utf-8")
    toml = toml.replace("nodefall.actions", f"nodefall.{group}").replace(":ACTION", f":{constant}")
    toml = toml.replace("action stop-unit: stop a systemd unit of a node", f"{kind} stop-unit")
    return {
        "pyproject.toml": toml,
        "nodefall_my_plugin.py": (folder / f"{kind}.py").read_text(encoding="utf-8"),
        "tests/test_my_plugin.py": (folder / f"test_{kind}.py").read_text(encoding="utf-8"),
    }


def _named(text: str, name: str) -> str:
    for template in ("stop-unit", "my-plugin"):
        text = text.replace(template, name).replace(template.replace("-", "_"), name.replace("-", "_"))
    return text
