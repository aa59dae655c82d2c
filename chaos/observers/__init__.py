"""Eyes: one file per thing that is watched. They emit lines with receipt times and own up to their blind windows."""
