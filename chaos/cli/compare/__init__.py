"""``nodefall compare``."""
