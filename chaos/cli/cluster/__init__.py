"""``nodefall status`` and ``abort``."""
