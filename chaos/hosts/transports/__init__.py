"""Lines to hosts: how commands get there and what comes back."""
