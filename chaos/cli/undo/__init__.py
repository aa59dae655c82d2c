"""``nodefall undo``."""
