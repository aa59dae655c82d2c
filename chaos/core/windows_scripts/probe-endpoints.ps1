# Prints "ADDRESS True" for each endpoint that accepts a TCP connection in time, otherwise "ADDRESS False".
# All attempts begin at once: in sequence, a partition in between would show in some of them only.
# A TcpClient without an address family is one for IPv4. Wait raises an error for a refused connection; nothing else is
# in the try block, as another error would pass for an address that does not answer. Not [Environment]::TickCount: its
# 32 bits overflow after 25 days of uptime.
# Parameters: endpoints (address, family, port), seconds (for all of them together)
$frequency = [Diagnostics.Stopwatch]::Frequency
$attempts = @(foreach ($e in $p.endpoints) {
    $client = New-Object Net.Sockets.TcpClient($e.family)
    @{ address = $e.address; client = $client; task = $client.ConnectAsync($e.address, $e.port) }
})
$end = [Diagnostics.Stopwatch]::GetTimestamp() + $p.seconds * $frequency
foreach ($a in $attempts) {
    $wait = [Math]::Max(1, [int](($end - [Diagnostics.Stopwatch]::GetTimestamp()) * 1000 / $frequency))
    try { $answers = $a.task.Wait($wait) } catch { $answers = $false }
    "$($a.address) $answers"
}
exit 0
