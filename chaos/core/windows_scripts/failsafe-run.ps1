# What a failsafe task runs: its program after some seconds of uptime, and once that has exited with 0 the deletion of
# the task. A program that failed is tried again at the next boot. schtasks /end ends the wait too.
# Parameters: wait (seconds), program, arguments (quoted for the program), task (name)
if ($p.wait) { Start-Sleep -Seconds $p.wait }
& $p.program $p.arguments
$code = $LASTEXITCODE
if ($code -eq 0) { & 'C:\Windows\System32\schtasks.exe' /delete /tn $p.task /f | Out-Null }
exit $code
