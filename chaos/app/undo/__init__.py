"""Finishes the pending undo of runs, from their journals or what else is known of them."""
