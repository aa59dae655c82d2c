"""Commands on a cluster: ``status``, ``abort``, ``undo``, ``watch`` and ``snapshot``."""
