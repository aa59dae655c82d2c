"""``nodefall kind``."""
