"""``nodefall rehearse``."""
