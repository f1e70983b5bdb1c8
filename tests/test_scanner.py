"""The scanner tells names, and never opens what holds a secret: held by an audit hook and by strace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import run_cli

from extforge_harness.runtimes.scanner import FORBIDDEN, is_forbidden, scan_external, scan_project

SECRET = "s3cret-value-that-nobody-may-read"
# One file for every forbidden pattern, in every place that is looked at.
NAMES = (
    "auth.json", "Auth.JSON", "oauth.json", "auth_token.md", "AUTH_x", "session.token", "my-credentials.md",
    ".credentials.json", "Client_Secret.md", "server.key", "cert.pem", "ca.crt", "store.p12", ".env", ".env.local",
    "id_rsa", "id_rsa.pub", "id_ed25519", ".netrc",
)  # fmt: skip
PLACES = (
    ".claude", ".claude/skills", ".claude/skills/deck", ".claude/commands", ".codex", ".codex/plugins",
    ".codex/prompts", ".agents/skills", ".dsh", ".dsh/skills", ".openjiuwen", ".openjiuwen/workspace/skills",
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with things to find, and a secret in every forbidden place."""
    root = tmp_path / "home"
    for place in PLACES:
        (root / place).mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            (root / place / name).write_text(SECRET)
    (root / ".claude/mcp.json").write_text(
        json.dumps(
            {"mcpServers": {
                "notes": {"command": "x", "env": {"KEY": SECRET}, "headers": {"A": SECRET}, "args": [SECRET]},
                "search": {"url": "https://search.example"},
            }}
        )
    )  # fmt: skip
    (root / ".claude/CLAUDE.md").write_text(SECRET)
    (root / ".codex/config.toml").write_text(f'key = "{SECRET}"\n')
    (root / ".claude/skills/deck/SKILL.md").write_text(SECRET)
    (root / ".claude/commands/review.md").write_text(SECRET)
    (root / ".codex/prompts/plan.md").write_text(SECRET)
    (root / ".dsh/skills/chart").mkdir()
    return root


def names(home: Path, **options: str) -> dict[str, str]:
    return {entry.id: entry.kind for entry in scan_external(str(home), **options).entries}


def test_names_are_told_and_nothing_else(home: Path) -> None:
    assert names(home) == {
        "~/.claude/mcp.json:notes": "mcp",
        "~/.claude/mcp.json:search": "mcp",
        "~/.claude/CLAUDE.md:CLAUDE.md": "instructions",
        "~/.claude/skills:deck": "skill",
        "~/.claude/commands:review": "command",
        "~/.codex/config.toml:config.toml": "config",
        "~/.codex/prompts:plan": "command",
        "~/.dsh/skills:chart": "skill",
    }
    scan = scan_external(str(home))
    assert SECRET not in repr(scan)
    assert not [name for name in NAMES if name in repr(scan)]


def test_only_the_active_runtime_can_use_its_own(home: Path) -> None:
    for entry in scan_external(str(home), active="codex").entries:
        mine = entry.origin in ("~/.codex", "~/.agents")
        assert entry.executable is mine
        assert mine or f"in {entry.origin}; switch to " in entry.perception_hint
    (home / ".openjiuwen/workspace/skills/x").mkdir()
    native = [e for e in scan_external(str(home), active="native_v2").entries if e.executable]
    assert [e.display_name for e in native] == ["x"]


AUDIT = """
import sys, json
from extforge_harness.runtimes.scanner import scan_external, scan_project
import ijson, ijson.backends
list(ijson.parse(b"{}"))
seen = []
def hook(event, args):
    if event in ("open", "os.open", "subprocess.Popen", "socket.connect", "socket.getaddrinfo", "os.remove", "os.rename",
                 "os.mkdir", "os.link", "os.symlink", "os.exec", "os.posix_spawn", "os.system"):
        seen.append([event, str(args[0])])
sys.addaudithook(hook)
scan_external(sys.argv[1], "codex")
scan_project(sys.argv[1])
print(json.dumps(seen))
"""


def test_no_secret_is_ever_opened_says_the_audit_hook(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AUDIT, str(home)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    seen = json.loads(done.stdout)
    opened = {path for event, path in seen if event == "open" and path.startswith(str(home))}
    assert opened == {str(home / ".claude/mcp.json")}
    assert not [event for event, _ in seen if event != "open"]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_secret_is_ever_opened_says_the_system(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "calls.log"
    command = ["strace", "-f", "-e", "trace=open,openat,openat2,execve,connect,unlink,rename,mkdir", "-o", str(log)]
    code = "import sys; from extforge_harness.runtimes.scanner import scan_external; scan_external(sys.argv[1])"
    done = subprocess.run(
        [*command, sys.executable, "-c", code, str(home)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    if done.returncode != 0:
        pytest.skip("strace may not trace here")
    lines = [line for line in log.read_text().splitlines() if str(home) in line and "execve" not in line]
    files = [line for line in lines if "O_DIRECTORY" not in line]
    assert len(files) == 1
    assert "mcp.json" in files[0]
    assert not [line for line in lines for name in NAMES if f"/{name}" in line]


@pytest.mark.parametrize("kind", ["out", "secret inside", "broken", "loop"])
def test_links_that_lead_elsewhere_are_passed_over(home: Path, tmp_path: Path, kind: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    stolen = json.dumps({"mcpServers": {"stolen": {}}})
    (elsewhere / "auth.json").write_text(stolen)
    (home / ".claude/auth.json").write_text(stolen)
    target = {
        "out": elsewhere, "secret inside": home / ".claude/auth.json", "broken": home / "nothing",
        "loop": home / ".claude/skills/linked",
    }[kind]  # fmt: skip
    (home / ".claude/skills/linked").symlink_to(target)
    (home / ".claude/mcp.json").unlink()
    (home / ".claude/mcp.json").symlink_to(target if kind != "out" else elsewhere / "auth.json")
    found = names(home)
    assert "~/.claude/skills:linked" not in found
    assert not [key for key in found if "mcp.json" in key]


def test_a_link_inside_the_product_and_a_linked_product_are_followed(home: Path, tmp_path: Path) -> None:
    (home / ".claude/skills/again").symlink_to(home / ".claude/skills/deck")
    (home / ".claude").rename(tmp_path / "claude-data")
    (home / ".claude").symlink_to(tmp_path / "claude-data")
    assert {"~/.claude/skills:again", "~/.claude/mcp.json:notes"} <= set(names(home))
    (home / ".claude").unlink()
    (tmp_path / "claude-data").rename(tmp_path / "my-credentials")
    (home / ".claude").symlink_to(tmp_path / "my-credentials")
    assert not [key for key in names(home) if key.startswith("~/.claude")]


def test_large_strange_and_broken_files_give_nothing_and_one_word(home: Path) -> None:
    path = home / ".claude/mcp.json"
    path.write_text(json.dumps({"mcpServers": {"big": {}}}) + " " * (1 << 20))
    assert not [key for key in names(home) if "mcp.json" in key]
    path.write_bytes(b'{"mcpServers": {"half": ')
    scan = scan_external(str(home))
    assert not [e for e in scan.entries if "mcp.json" in e.id]
    assert [line for line in scan.diagnostics if "cannot be read" in line]
    path.unlink()
    os.mkfifo(path)
    assert not [key for key in names(home) if "mcp.json" in key]
    path.unlink()
    path.write_text(json.dumps({"mcpServers": {"bad\x1b[2J": {}, "x" * 500: {}, "good": {}}, "other": {"nested": 1}}))
    assert [key for key in names(home) if "mcp.json" in key] == ["~/.claude/mcp.json:good"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_product_that_may_not_be_read_has_no_entries(home: Path) -> None:
    (home / ".claude").chmod(0)
    scan = scan_external(str(home))
    (home / ".claude").chmod(0o755)
    assert not [e for e in scan.entries if e.origin == "~/.claude"]
    assert [line for line in scan.diagnostics if line.startswith("~/.claude: cannot be read")]


def test_a_home_that_is_not_there_or_no_folder_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for home in (tmp_path / "none", tmp_path / "file"):
        assert scan_external(str(home)).entries == []


def test_a_project_is_a_layer_of_its_own(tmp_path: Path) -> None:
    (tmp_path / ".claude/skills/deck").mkdir(parents=True)
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"notes": {"env": {"KEY": SECRET}}}}))
    (tmp_path / "AGENTS.md").write_text(SECRET)
    scan = scan_project(str(tmp_path), active="codex")
    assert {e.display_name: e.executable for e in scan.entries} == {"deck": False, "notes": False, "AGENTS.md": True}
    assert SECRET not in repr(scan)


@given(st.sampled_from(NAMES), st.lists(st.from_regex(r"[a-z]{1,5}", fullmatch=True), max_size=3), st.booleans())
def test_a_forbidden_step_anywhere_is_forbidden(name: str, steps: list[str], upper: bool) -> None:
    assert is_forbidden("/".join([*steps, name.upper() if upper else name, "SKILL.md"]))
    assert is_forbidden("\\".join([*steps, name]))


def test_ordinary_names_are_not_forbidden() -> None:
    for name in ("SKILL.md", "author.json", "keyboard", "token_budget", "environment", "authoring", "monkey"):
        assert not is_forbidden(name), name
    assert len(FORBIDDEN) == 13


def test_scan_from_the_command_line(home: Path) -> None:
    done = run_cli("runtimes", "scan", "--home", str(home), "--runtime", "codex", "--project", str(home), "--json")
    data = json.loads(done.stdout)
    assert data["schema_version"] == "extforge.scan.v1"
    assert len(data["external"]["entries"]) == 8
    assert SECRET not in done.stdout + done.stderr
    text = run_cli("runtimes", "scan", "--home", str(home))
    assert "switch to claudecode" in text.stdout
    assert "look like credentials" in text.stderr
