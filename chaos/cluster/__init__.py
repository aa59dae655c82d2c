"""The API server: client, watches, the lock, the copy of the journal, and observers."""
