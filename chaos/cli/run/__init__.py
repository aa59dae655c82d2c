"""``nodefall run`` and its views."""
