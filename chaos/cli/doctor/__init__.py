"""``nodefall doctor``."""
