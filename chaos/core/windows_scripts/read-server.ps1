# Prints the lines of kubeconfig files that name an API server, and nothing else of them: the rest is secret.
# Parameters: files (paths; those that do not exist are skipped)
foreach ($file in $p.files) {
    if (Test-Path $file) { Get-Content $file | Where-Object { $_ -match '^\s*server:' } }
}
