"""The PowerShell of Windows nodes: syntax, errors, .NET types and cmdlets."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.lab.winshell.pwsh.parser import parse
from chaos.lab.winshell.pwsh.syntax import SyntaxProblem
from tests.kit.win_host import WindowsHost
from tests.kit.winrm_exchanges import read

STOP = "$ProgressPreference='SilentlyContinue'; $ErrorActionPreference='Stop'; "


@pytest.fixture(scope="module")
def host() -> WindowsHost:
    return WindowsHost()


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3 - -1", "10"),
        ("10 / 4; 10 / 5; 7 % 4", "2.5\r\n2\r\n3"),
        ("0x1f + 1KB", "1055"),
        ("'a' + 1; 'it''s'; \"a`tb $(1 + 1) `$x\"", "a1\r\nit's\r\na\tb 2 $x"),
        ("$x = 'v'; \"<$x> $x.Length $($x.Length)\"", "<v> v.Length 1"),
        ("$a = 1,2,3; $a.Count; $a[1]; $a[-1]; ($a -join '+')", "3\r\n2\r\n3\r\n1+2+3"),
        ("@(1).Count; @().Count; (1..4).Count", "1\r\n0\r\n4"),
        ("$t = @{a = 1; b = 'x y'}; $t.b; $t['a']; $t.a += 4; $t.a", "x y\r\n1\r\n5"),
        ("'ABC' -eq 'abc'; 'ABC' -ceq 'abc'; 'abc' -like 'A*'; 'k8s' -match '\\d'", "True\r\nFalse\r\nTrue\r\nTrue"),
        ("1,2,3 -gt 1 -join ','; 2 -in 1,2; -not ($true -and $false)", "2,3\r\nTrue\r\nTrue"),
        ("'{0:x4} {1,5}|{2:f1}' -f 255, 'a', 2", "00ff     a|2.0"),
        ("if (1 -gt 2) { 'a' } elseif ($null) { 'b' } else { 'c' }", "c"),
        ("foreach ($i in 1..5) { if ($i -eq 2) { continue }; if ($i -eq 4) { break }; $i }", "1\r\n3"),
        ("$n = 0; while ($n -lt 3) { $n += 1 }; $n", "3"),
        ("1..3 | ForEach-Object { $_ * 2 } | Where-Object { $_ -gt 2 } | Select-Object -First 1", "4"),
        ("try { throw 'no' } catch { \"caught $($_.Exception.Message)\" } finally { 'end' }", "caught no\r\nend"),
        ("& { 'block' }; & 'C:\\Windows\\System32\\cmd.exe' /c echo hi", "block\r\nhi"),
        ("$x = cmd.exe /c echo hi; $x.ToUpper(); $LASTEXITCODE", "HI\r\n0"),
        ("# a comment\n<# another\n one #> 'x' # end", "x"),
        ("Write-Output a `\n b; Write-Host c d", "a\r\nb\r\nc d"),
        ("$ENV:computername; $env:NEW = 'n'; cmd /c echo %NEW%", "WIN1\r\nn"),
        ("@{b = 1; a = @('x', $null, $true)} | ConvertTo-Json -Compress", '{"b":1,"a":["x",null,true]}'),
        ("[int]'5' + [int]'0x10'; [string]5 + 'a'; [bool]''; [void](1)", "21\r\n5a\r\nFalse"),
        ("[TimeSpan]::FromSeconds(-90).ToString(); ([TimeSpan]::FromMinutes(2)).TotalSeconds", "-00:01:30\r\n120"),
        ("[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String('aMOp'))", "hé"),
        ("[Math]::Round(2.567, 1); [string]::IsNullOrEmpty('')", "2.6\r\nTrue"),
        ("Get-Service kubelet | Select-Object -ExpandProperty Status", "Running"),
        ("(Get-Service k*).Name", "kubelet"),
        ("(Get-ItemProperty 'HKLM:\\SYSTEM\\CurrentControlSet\\Control\\CrashControl').AutoReboot", "1"),
        ("Test-Path C:\\nope; Test-Path HKLM:\\SYSTEM", "False\r\nTrue"),
        ("'b','A','c' | Sort-Object -Descending; Get-Service wuauserv | ? Status -eq Running", "c\r\nb\r\nA"),
        ("$a = New-Object Net.Sockets.TcpClient; $a.Connected; $a.Missing", "False"),
        ("$d = [DateTime]::Parse('2026-11-22T01:02:03.5Z'); $d.ToString('o'); $d.AddHours(1).Hour", None),
        ("exit", ""),
    ],
)
def test_scripts(host: WindowsHost, script: str, out: str | None) -> None:
    wanted = "2026-11-22T01:02:03.5000000Z\r\n2" if out is None else out
    code, found, err = host.powershell(script)
    assert (code, found.rstrip("\r\n"), err) == (0, wanted, "")


@pytest.mark.parametrize(
    ("script", "code", "out", "error"),
    [
        ("fake cmdlet", 1, "", "CommandNotFoundException"),
        ("fake cmdlet; 'next'", 0, "next\r\n", "CommandNotFoundException"),
        ("$ErrorActionPreference = 'Stop'; fake; 'next'", 1, "", "CommandNotFoundException"),
        ("'a'; 'b' | Sort-Object)", 1, "", "ParserError"),  # nothing runs
        ("'a", 1, "", "ParserError"),
        ("function f { 1 }", 1, "", "ParserError"),
        ("Get-Service nope; 'next'", 0, "next\r\n", "NoServiceFoundForGivenName"),
        ("Get-Service nope -ErrorAction Stop; 'next'", 0, "next\r\n", "NoServiceFoundForGivenName"),
        ("Get-Service nope -ErrorAction SilentlyContinue", 1, "", ""),
        ("try { Get-Service nope -ea Stop } catch { 'caught' }", 0, "caught\r\n", ""),
        ("try { Get-Service nope } catch { 'caught' }", 1, "", "NoServiceFoundForGivenName"),
        ("Get-Service -Nope x", 1, "", "NamedParameterNotFound"),
        ("Get-Date -F", 1, "", "MissingArgument"),
        ("[Nope.Type]::X", 1, "", "TypeNotFound"),
        ("[DateTime]::Nope()", 1, "", "MethodNotFound"),
        ("$null.Foo()", 1, "", "InvokeMethodOnNull"),
        ("'x'.Trim(1, 2, 3)", 1, "", "MethodCountCouldNotFindBest"),
        ("1 / 0", 1, "", "RuntimeException"),
        ("[int]'x'", 1, "", "InvalidCastFromStringToInteger"),
        ("throw 'no'; 'next'", 1, "", "no"),
        ("Get-Service", 1, "", "NotSimulated"),  # a table of objects
        ("cmd.exe /c exit 7", 1, "", ""),
        ("cmd.exe /c exit 7; exit $LASTEXITCODE", 7, "", ""),
        ("exit 3; 'next'", 3, "", ""),
        ("Get-CimInstance Win32_Nope", 1, "", "HRESULT 0x80041010"),
        ("Get-Content C:\\nope", 1, "", "PathNotFound"),
        ("[Console]::Error.WriteLine('x')", 0, "", "x\r\n"),
    ],
)
def test_errors(host: WindowsHost, script: str, code: int, out: str, error: str) -> None:
    found = host.powershell(script)
    assert found[:2] == (code, out)
    assert (error in found[2]) if error else not found[2]


def test_errors_of_an_encoded_script_are_recorded_clixml(host: WindowsHost) -> None:
    """The recording wraps the message at the width of its console, and has progress before it."""
    _, _, err = host.powershell("fake cmdlet")
    recorded = read("clixml/pywinrm_stderr_error.txt").replace("\r\n", "\n")
    start = '#< CLIXML\n<Objs Version="1.1.0.1" xmlns="http://schemas.microsoft.com/powershell/2004/04">'
    assert err.replace("\r\n", "\n").startswith(start)
    assert recorded.startswith(start)

    def text(document: str) -> str:
        return re.sub(
            r"\s+", " ", "".join(re.findall('<S S="Error">(.*?)</S>', document)).replace("_x000D__x000A_", " ")
        )

    found, wanted = text(err), text(recorded)
    assert found[: found.index("+ ~")] == wanted[: wanted.index("+ ~")]
    assert found[found.index("+ CategoryInfo") :] == wanted[wanted.index("+ CategoryInfo") :]


def test_the_first_use_of_a_module_shows_progress_unless_it_is_silenced(host: WindowsHost) -> None:
    recorded = read("clixml/pywinrm_stderr_progress_only.txt").replace("\r\n", "\n").strip()
    err = host.powershell("Get-ScheduledTask | Out-Null; Get-NetIPAddress | Out-Null")[2]
    assert err.replace("\r\n", "\n") == recorded
    assert host.powershell("$ProgressPreference = 'SilentlyContinue'; Get-ScheduledTask | Out-Null") == (0, "", "")


def test_the_clock_and_the_uptime() -> None:
    host = WindowsHost()
    before = host.sim.now
    code, out, err = host.powershell(
        "[DateTimeOffset]::UtcNow.ToUnixTimeMilliseconds(); (Get-Date).ToUniversalTime().ToString('o');"
        "[Diagnostics.Stopwatch]::GetTimestamp() / [Diagnostics.Stopwatch]::Frequency; Get-Date -UFormat %s"
    )
    lines = out.split()
    assert (code, err, int(lines[0])) == (0, "", int(before * 1000))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z", lines[1])
    assert float(lines[2]) == pytest.approx(host.machine.uptime)
    assert float(lines[3]) == pytest.approx(before, abs=0.01)
    assert host.powershell("Start-Sleep -Seconds 3; Start-Sleep -Milliseconds 500")[0] == 0
    assert host.sim.now == pytest.approx(before + 3.5)


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_the_parser_ends_on_any_text(text: str) -> None:
    try:
        parse(text)
    except SyntaxProblem as problem:
        assert str(problem)  # noqa: PT017 - any other error fails


@given(st.text(max_size=30))
@settings(max_examples=60, deadline=None)
def test_a_quoted_text_is_itself(text: str) -> None:
    quoted = text.replace("'", "''").replace("\r", "")
    host = _shared()
    code, out, _ = host.powershell(f"[Console]::Write('{quoted}')")
    assert (code, out) == (0, text.replace("\r", ""))


_HOSTS: list[WindowsHost] = []


def _shared() -> WindowsHost:
    if not _HOSTS:
        _HOSTS.append(WindowsHost())
    return _HOSTS[0]
