"""Power control of machines. One file per driver, each exposes ``DRIVER``; secrets and programs are shared."""
