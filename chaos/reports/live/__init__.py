"""The live page: a server in a separate thread that shows a run in the browser while it is in progress."""
