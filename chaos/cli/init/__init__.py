"""``nodefall init`` and its questions."""
