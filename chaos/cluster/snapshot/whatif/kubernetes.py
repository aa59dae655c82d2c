"""``kubernetes=VERSION``: the version of all components; docs/lab-versions.md has what differs."""

from __future__ import annotations

import re

from chaos.cluster.snapshot.contents import Contents
from chaos.cluster.snapshot.whatif.change import Apply, ChangeError, ChangeKind

_VERSION = re.compile(r"v1\.\d{1,3}(\.\d{1,3})?", re.ASCII)


def _parse(text: str) -> Apply:
    version = text if text.startswith("v") else f"v{text}"
    if not _VERSION.fullmatch(version):
        raise ChangeError(f"not a version of Kubernetes: {text!r}", "write v1.33 or v1.33.4")

    def apply(contents: Contents) -> str:
        before, contents.header["kubernetes"] = contents.header.get("kubernetes"), version
        return f"Kubernetes {version}, instead of {before}"

    return apply


KIND = ChangeKind("kubernetes", "VERSION", "version of Kubernetes, v1.31 to v1.36", _parse)
