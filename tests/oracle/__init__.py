"""A second opinion on verdicts: an oracle by brute force, from docs/verdicts.md. It imports nothing of the judge."""
