"""``nodefall gameday``."""
