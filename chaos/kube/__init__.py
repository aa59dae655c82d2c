"""Everything that speaks to the API server."""
