"""Commands on stored runs: ``runs``, ``show``, ``report``, ``judge`` and ``trend``."""
