# Prints the certificates in PEM files, but not the private keys that these files may hold.
# Parameters: files (paths; those that do not exist are skipped)
foreach ($file in $p.files) {
    if (Test-Path $file) {
        $inside = $false
        foreach ($line in Get-Content $file) {
            if ($line -eq '-----BEGIN CERTIFICATE-----') { $inside = $true }
            if ($inside) { $line }
            if ($line -eq '-----END CERTIFICATE-----') { $inside = $false }
        }
    }
}
