"""What plug-ins are written with: a module for each kind, and the version of the contract between both.

A plug-in imports from here, from :mod:`chaos.api` and in its tests from :mod:`chaos.testing`; everything else may move
in any version (docs/stability.md). The module that an entry point names says for which contract it was written::

    NODEFALL_CONTRACT = 1
"""

from __future__ import annotations

from chaos.core.outside import CONTRACT

__all__ = ["CONTRACT"]
