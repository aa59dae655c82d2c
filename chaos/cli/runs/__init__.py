"""``nodefall runs``."""
