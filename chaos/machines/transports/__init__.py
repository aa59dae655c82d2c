"""Sessions to hosts. A transport exposes ``DRIVER``; the other files are shared parts of transports."""
