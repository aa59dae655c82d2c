"""A second opinion on verdicts: an oracle by brute force, written from docs/verdicts.md, that imports nothing of the judge."""
