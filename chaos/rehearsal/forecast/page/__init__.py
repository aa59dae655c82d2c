"""Parts of the HTML page of a rehearsal."""
