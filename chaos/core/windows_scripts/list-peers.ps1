# Prints "ADDRESS PORT" of the remote end of each connection that the kubelet has open to one of these ports.
# The errors of both cmdlets mean that there is none; the last one would end in exit code 1.
# Parameters: ports
$processes = @(Get-Process -Name kubelet -ErrorAction SilentlyContinue | ForEach-Object { $_.Id })
Get-NetTCPConnection -State Established -RemotePort $p.ports -ErrorAction SilentlyContinue |
    Where-Object { $processes -contains $_.OwningProcess } |
    ForEach-Object { "$($_.RemoteAddress) $($_.RemotePort)" }
exit 0
