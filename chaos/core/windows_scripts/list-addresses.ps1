# Prints the addresses of all interfaces.
(Get-NetIPAddress).IPAddress
