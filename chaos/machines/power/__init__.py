"""Power controls of machines. Each driver has one file, which exposes ``DRIVER``."""
