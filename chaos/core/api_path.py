"""Paths of the Kubernetes API: how nodefall builds them, and which paths a client may send.

A name that is itself a path (``../..``, ``x?y``) would make a request reach another object than the plan shows.
Each segment is quoted when the path is built, and the client sends no path with a segment that needs quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from chaos.core.errors import Refused

_SEGMENT = r"(?:/(?!\.{1,2}(?:/|\?|\Z))[A-Za-z0-9._:-]{1,300})"  # neither . nor ..
# A selector that a path may have in its query, and the query of a WebSocket for exec.
_SELECTOR = r"(?:labelSelector|fieldSelector)=(?:[A-Za-z0-9._~%-]|(?<=nodefall\.dev)/)+"
_QUERY = rf"(?:\?{_SELECTOR}|(?<=/exec)\?[A-Za-z0-9._~%=&+*-]+)"
_PLAIN = re.compile(rf"{_SEGMENT}+{_QUERY}?")
# The proxies of Nodes and Services pass on the rest of the path, whatever it means there.
_PROXIED = re.compile(
    r"/api/v1/(?:nodes|namespaces/[a-z0-9-]+/services)/(?!\.{1,2}/)[A-Za-z0-9._:-]+/proxy(?P<rest>/[!-~]*)?"
)


def resource_path(version: str, resource: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Path of a collection, an object or a subresource; ``version`` is ``v1`` or ``GROUP/VERSION``.

    Each segment is quoted. Raises Refused for a name that is ``.`` or ``..``.
    """
    prefix = ["apis" if "/" in version else "api", *version.split("/", 1)]
    inside = ["namespaces", namespace] if namespace else []
    return "".join(f"/{quote_segment(each)}" for each in filter(None, [*prefix, *inside, resource, name, subresource]))


def object_path(collection: str, name: str) -> str:
    """Path of one object of a collection. Raises Refused for a name that is ``.`` or ``..``."""
    return f"{collection}/{quote_segment(name)}"


def quote_segment(text: str) -> str:
    """``text`` as one segment of a path. Raises Refused for ``.`` and ``..``, which no quoting changes."""
    if text in (".", ".."):
        raise Refused(f"{text!r} is not a name of an object", hint="correct the names in the experiment")
    return quote(text, safe=":{}")  # braces: of chaos.core.action.NODE_NAME and NAMESPACE


def fill_path(path: str, names: Mapping[str, str]) -> str:
    """``path`` with each placeholder replaced by its name, quoted."""
    for placeholder, name in names.items():
        path = path.replace(placeholder, quote_segment(name))
    return path


def refuse_unsafe_path(path: str) -> None:
    """Raises Refused unless each segment of ``path`` is a plain name, so that it names what it seems to name."""
    proxied = _PROXIED.fullmatch(path)
    if proxied is None and not _PLAIN.fullmatch(path):
        raise Refused(f"not sent: {path[:300]!r} is not a plain path", hint="correct the names in the experiment")
    passed_on = (proxied and proxied["rest"]) or ""
    if "#" in passed_on or {".", ".."} & set(re.split(r"[/\\]", unquote(passed_on.partition("?")[0]))):
        raise Refused(f"not sent: {path[:300]!r} leads out of the proxy", hint="give a path without . and ..")
