"""The traps of SKILL.md that people really fall into: each with its line, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extforge.serialise import front_matter, manifest_text, yaml_string
from extforge_verifiers.documents import parse_yaml
from extforge_verifiers.frontmatter import check_skill, read_skill

GOOD = "---\nname: deck\ndescription: How decks are built. Use before writing one.\n---\n\n# Deck\n"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        pytest.param("# Deck\n", "skill-front-matter-missing", 1, id="none"),
        pytest.param("---\nname: deck\n", "skill-front-matter-missing", 1, id="not closed"),
        pytest.param("\n" + GOOD, "skill-front-matter-missing", 1, id="an empty line before"),
        pytest.param("---\nname: deck\ndescription: Use: when asked\n---\nx\n", "skill-front-matter-yaml", 3, id="an unquoted colon"),
        pytest.param("---\nname: deck\n\tdescription: x\n---\nx\n", "skill-front-matter-yaml", 3, id="a tab"),
        pytest.param("---\nname: deck\nname: deck\ndescription: x\n---\nx\n", "skill-front-matter-yaml", 3, id="a key twice"),
        pytest.param("---\nname: [deck\ndescription: x\n---\nx\n", "skill-front-matter-yaml", 2, id="a bracket open"),
        pytest.param("---\ndescription: x\n---\nx\n", "skill-name-missing", 2, id="no name"),
        pytest.param("---\nname: 123\ndescription: x\n---\nx\n", "skill-name-type", 2, id="a number as name"),
        pytest.param("---\nname: my deck\ndescription: x\n---\nx\n", "skill-name-invalid", 2, id="a space in the name"),
        pytest.param("---\nname: other\ndescription: x\n---\nx\n", "skill-name-folder", 2, id="another name than the folder"),
        pytest.param("---\nname: deck\n---\nx\n", "skill-description-missing", 2, id="no description"),
        pytest.param("---\nname: deck\ndescription:\n---\nx\n", "skill-description-missing", 3, id="an empty description"),
        pytest.param("---\nname: deck\ndescription: [a, b]\n---\nx\n", "skill-description-type", 3, id="a list as description"),
        pytest.param("---\nname: deck\ndescription: about {{topic}}\n---\nx\n", "skill-placeholder", 3, id="braces left"),
        pytest.param(f"---\nname: deck\ndescription: {'x' * 2000}\n---\nx\n", "skill-description-long", 3, id="too long"),
        pytest.param('---\nname: deck\ndescription: "a --- b"\n---\nx\n', "skill-dashes", 3, id="dashes inside a value"),
        pytest.param("---\nname: deck\ndescription: >-\n  a\n  ---\n  b\n---\nx\n", "skill-dashes", 5, id="a line of dashes in a block"),
        pytest.param("---\n# -----\nname: deck\ndescription: x\n---\nx\n", "skill-dashes", 2, id="dashes in a comment"),
        pytest.param("---\nname: on\ndescription: x\n---\nx\n", "skill-name-type", 2, id="a name that YAML 1.1 reads as true"),
        pytest.param("---\nname: deck\ndescription: yes\n---\nx\n", "skill-description-type", 3, id="yes"),
        pytest.param("---\nname: deck\ndescription: 2026-01-01\n---\nx\n", "skill-description-type", 3, id="a date"),
        pytest.param("---\nname: deck\ndescription: '  '\n---\nx\n", "skill-description-missing", 3, id="blanks"),
        pytest.param("---\nname: deck\ndescription: see issue #42 for more\n---\nx\n", "skill-description-comment", 3, id="a comment by accident"),
        pytest.param("---\nname: deck\ndescription: x\n---\n", "skill-body-empty", 5, id="no body"),
        pytest.param("---\n- a\n---\nx\n", "skill-front-matter-yaml", 2, id="a list"),
    ],
)  # fmt: skip
def test_a_trap_is_found_with_its_line(text: str, code: str, line: int) -> None:
    found = [(f.code, f.where.line) for f in check_skill(text, "SKILL.md", "deck")]
    assert (code, line) in found, found


def test_a_good_skill_passes_with_unix_and_windows_line_ends() -> None:
    assert list(check_skill(GOOD, "SKILL.md", "deck")) == []
    assert list(check_skill(GOOD.replace("\n", "\r\n"), "SKILL.md", "deck")) == []


def test_a_byte_order_mark_hides_the_front_matter_from_the_host() -> None:
    assert [f.code for f in check_skill("\ufeff" + GOOD, "SKILL.md", "deck")] == ["skill-byte-order-mark"]


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("description: Use: when asked", 'description: "Use: when asked"'),
        ('description: "says "done" and stops"', r'description: "says \"done\" and stops"'),
        ('description: "one" or "two"', r'description: "one\" or \"two"'),
        (r"description: Use when: C:\new\table", r'description: "Use when: C:\\new\\table"'),
        ("argument-hint: [path] [--quick]", 'argument-hint: "[path] [--quick]"'),
        ("allowed-tools: *", 'allowed-tools: "*"'),
        ("allowed-tools: @bash", 'allowed-tools: "@bash"'),
        ("description: `code` first", 'description: "`code` first"'),
    ],
)
def test_a_value_that_breaks_yaml_comes_quoted_and_then_it_is_yaml(line: str, quoted: str) -> None:
    head, tail = "---\nname: deck\n", "\nlicense: MIT\n---\nx\n"
    (finding,) = check_skill(head + line + tail, "SKILL.md", "deck")
    assert (finding.code, finding.fix, finding.where.line) == (
        "skill-front-matter-yaml",
        f"quote the value: {quoted}",
        3,
    )
    assert read_skill(head + quoted + tail, "SKILL.md").document.value["license"] == "MIT"


@pytest.mark.parametrize(
    "description",
    [
        "Lists TODO comments. Use to work through them.",
        "Line counts, e.g. a -> b.",
        "'Use: when asked'",
        "Issue 42 (#42)",
    ],
)
def test_descriptions_that_are_fine(description: str) -> None:
    text = f"---\nname: deck\ndescription: {description}\n---\nx\n"
    assert [f.code for f in check_skill(text, "SKILL.md", "deck")] == []


def test_what_dashes_cost_decides_how_bad_they_are() -> None:
    lost = "---\nname: deck\n# ------\ndescription: x\n---\nx\n"
    kept = "---\nname: deck\ndescription: x\n# ------\n---\nx\n"
    assert [(f.code, f.severity.value) for f in check_skill(lost, "SKILL.md", "deck")] == [("skill-dashes", "error")]
    assert [(f.code, f.severity.value) for f in check_skill(kept, "SKILL.md", "deck")] == [("skill-dashes", "warning")]


def test_the_hosts_sample_skills_raise_no_false_alarm(shared: Path) -> None:
    skills = [*(shared / "host").rglob("SKILL.md")]
    assert len(skills) >= 3
    for path in skills:
        assert list(check_skill(path.read_text(encoding="utf-8"), str(path), path.parent.name)) == []


# --------------------------------------------------------------------------- what we write ourselves

TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t:#-'\"{}[]|>%&*!@`,?"), max_size=80
)


@given(TEXT, TEXT)
def test_front_matter_says_exactly_the_text_and_has_no_dashes_inside(description: str, trigger: str) -> None:
    text = front_matter({"name": "deck", "description": description, "trigger": trigger}) + "\nbody\n"
    skill = read_skill(text, "SKILL.md")
    assert skill.document.value == {"name": "deck", "description": description, "trigger": trigger}
    assert text.count("---") == 2  # openJiuwen's own check splits at any other
    assert "skill-front-matter-yaml" not in {f.code for f in check_skill(text, "SKILL.md", "deck")}


@given(TEXT)
def test_a_scalar_is_read_alike_by_pyyaml_and_by_us(text: str) -> None:
    import yaml

    line = f"v: {yaml_string(text)}\n"
    assert yaml.safe_load(line)["v"] == text
    assert parse_yaml(line, "x").value["v"] == text


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT.filter(lambda t: t != "<<"), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(TEXT.filter(lambda t: t != "<<"), PLAIN, max_size=4))
def test_a_manifest_is_read_back_as_it_was(value: dict[str, object]) -> None:
    import yaml

    text = manifest_text(value)
    if value:
        assert yaml.safe_load(text) == value
        assert parse_yaml(text, "x").value == value
