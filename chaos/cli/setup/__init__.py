"""Commands before the first run: ``new``, ``init`` and ``doctor``."""
