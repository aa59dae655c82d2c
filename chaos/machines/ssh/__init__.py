"""Connections by paramiko: what a server said while a connection failed, and logins with keys and certificates."""
