"""The API server: client, watches, the lock, the journal's copy, and what is observed there."""
