# Prints client address and port, host address and port of the SSH connection; an empty line without one.
"$env:SSH_CONNECTION"
exit 0
