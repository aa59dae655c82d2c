# Prints the addresses of a host name.
# Parameters: name
[Net.Dns]::GetHostAddresses($p.name) | ForEach-Object { $_.IPAddressToString }
