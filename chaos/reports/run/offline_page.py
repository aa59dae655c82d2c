"""The head of a self-contained page: style and script are inlined assets, and nothing else is admitted."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from chaos.reports.run.markup import Html, tag


def load_assets(*names: str, package: str = "chaos.reports.run") -> Html:
    """Files of the package's folder ``assets``, one after the other."""
    folder = files(package) / "assets"
    return Html("\n".join((folder / name).read_text(encoding="utf-8") for name in names))


def page_head(title: str, style: Html, script: str = "", *, connects: bool = False) -> Html:
    """The head element, with a content security policy that admits only this style and this script, if there is one.

    ``connects``: the script may also ask the server that the page comes from.
    """
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy(style, script, connects=connects)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", style),
    )


def policy(style: str, script: str, *, connects: bool = False) -> str:
    """The content security policy of :func:`page_head`."""
    scripts = f"; script-src {_source(script)}" if script else ""
    server = "; connect-src 'self'" if connects else ""
    return f"default-src 'none'; style-src {_source(style)}{scripts}{server}; base-uri 'none'; form-action 'none'"


def _source(code: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
