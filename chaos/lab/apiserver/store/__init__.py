"""Storage of the API server."""
