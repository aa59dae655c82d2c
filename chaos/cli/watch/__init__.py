"""``nodefall watch``."""
