"""Skills that other people wrote: found wherever a collection keeps them, or said why not."""

from __future__ import annotations

import os
from pathlib import Path

from extforge.community import check_skill_source, read_collection
from extforge_harness.skills import read_skill_files


def skill(folder: Path, text: str = "") -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text or f"---\nname: {folder.name}\ndescription: Use it.\n---\n# It\n")
    return folder


def problems(top: Path, name: str) -> list[str]:
    return [finding.message for finding in check_skill_source(read_collection((str(top),)), name)]


def test_skills_are_found_at_any_depth_beside_one_at_the_top(tmp_path: Path) -> None:
    skill(tmp_path / "all")
    skill(tmp_path / "all" / "plugins" / "a" / "skills" / "deck")
    skill(tmp_path / "all" / "sheet")
    found = read_collection((str(tmp_path / "all"),))
    assert sorted(found.skills) == ["all", "deck", "sheet"]
    assert found.twice == {}
    assert problems(tmp_path / "all", "deck") == []
    assert list(read_skill_files(found.skills["deck"])) == ["SKILL.md"]


def test_one_name_at_two_places_is_refused_but_one_place_named_twice_is_not(tmp_path: Path) -> None:
    skill(tmp_path / "a" / "deck")
    skill(tmp_path / "b" / "deck")
    (words,) = problems(tmp_path, "deck")
    assert str(tmp_path / "a" / "deck") in words
    assert str(tmp_path / "b" / "deck") in words
    assert read_collection((str(tmp_path / "a"), str(tmp_path / "a" / "deck"))).twice == {}


def test_what_is_not_taken_comes_with_the_reason(tmp_path: Path) -> None:
    top = tmp_path / "top"
    skill(top / "outer" / "inner")
    skill(top / ".claude" / "hidden")
    (top / "outer" / "SKILL.md").write_text("---\nname: outer\ndescription: x\n---\nx\n")
    (top / "small").mkdir()
    (top / "small" / "skill.md").write_text("---\n---\n")
    (top / "away").symlink_to(skill(tmp_path / "elsewhere"))
    for name, words in (
        ("inner", "lies inside the skill 'outer'"),
        ("hidden", "never scans"),
        ("small", "in capitals"),
        ("away", "leads out of"),
        ("nothing", "there is no community skill"),
    ):
        (found,) = problems(top, name)
        assert words in found, found


def test_a_link_to_a_skill_of_the_collection_is_followed_once(tmp_path: Path) -> None:
    skill(tmp_path / "store" / "deck")
    (tmp_path / "store" / "loop").symlink_to(tmp_path / "store")
    (tmp_path / "zz").symlink_to(tmp_path / "store" / "deck")
    found = read_collection((str(tmp_path),))
    assert (list(found.skills), found.twice) == (["deck"], {})


def test_a_byte_order_mark_and_warnings_are_seen_before_anything_is_made(tmp_path: Path) -> None:
    skill(tmp_path / "deck", "\ufeff---\nname: deck\ndescription: x\n---\nx\n")
    skill(tmp_path / "sheet", "---\nname: other\ndescription: x\n---\nx\n")
    collection = read_collection((str(tmp_path),))
    assert [f.code for f in check_skill_source(collection, "deck")] == ["skill-byte-order-mark"]
    assert [(f.code, f.severity.value) for f in check_skill_source(collection, "sheet")] == [
        ("skill-name-folder", "warning")
    ]


def test_a_link_out_of_a_skill_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    os.symlink(tmp_path / "secret", skill(tmp_path / "top" / "deck") / "notes.txt")
    (words,) = problems(tmp_path / "top", "deck")
    assert "leads out of the skill" in words
