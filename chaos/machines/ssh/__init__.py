"""Connections by paramiko: server messages on failed connections, and logins with keys and certificates."""
