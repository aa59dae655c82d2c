# Prints the number of this boot and its time by the present clock, in milliseconds since the epoch.
# If nodefall has set the clock, prints its mark too: the same two numbers from before, and the seconds set.
# The stopwatch counts from the boot, whatever the clock does.
$boot = (Get-ItemProperty 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters').BootId
$uptime = [Diagnostics.Stopwatch]::GetTimestamp() * 1000 / [Diagnostics.Stopwatch]::Frequency
$started = [long]([DateTimeOffset]::UtcNow.ToUnixTimeMilliseconds() - $uptime)
"$boot $started"
if (Test-Path 'C:\ProgramData\nodefall-clock') { Get-Content 'C:\ProgramData\nodefall-clock' }
