"""How a dead machine comes back, and where its secrets are."""
