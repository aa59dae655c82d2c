"""``nodefall run`` and its progress views."""
