"""What rehearsals of an experiment show together: findings, shares and times over seeds, victims ranked. Pure."""
