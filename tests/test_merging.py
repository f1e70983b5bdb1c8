"""Merging is symmetric where it can be, loses nothing, and agrees with git."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extforge.target.merging import Merged, _merge_with_git, is_noise, merge, merge_lines, merge_manifest
from extforge_verifiers.documents import parse_yaml

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n", b"\n"]), max_size=12).map(b"".join)


@given(LINES, LINES)
def test_one_sided_changes_are_taken_whole(base: bytes, changed: bytes) -> None:
    assert merge_lines(base, changed, base) == Merged(changed)
    assert merge_lines(base, base, changed) == Merged(changed)
    assert merge_lines(base, changed, changed) == Merged(changed)


@given(LINES, LINES, LINES)
def test_without_a_conflict_both_sides_give_the_same(base: bytes, mine: bytes, new: bytes) -> None:
    here, there = merge_lines(base, mine, new), merge_lines(base, new, mine)
    assert bool(here.conflict) == bool(there.conflict)
    if not here.conflict:
        assert here.data == there.data


@given(LINES, LINES, LINES)
def test_a_conflict_shows_every_line_of_both(base: bytes, mine: bytes, new: bytes) -> None:
    merged = merge_lines(base, mine, new)
    if merged.conflict:
        shown = merged.data.splitlines()
        assert all(shown.count(line) >= 1 for line in {*mine.splitlines(), *new.splitlines()} - set(base.splitlines()))
        assert merged.data.count(b"<<<<<<< yours\n") == merged.data.count(b">>>>>>> generated now\n") > 0


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 29), st.booleans()), max_size=4))
def test_edits_that_lie_apart_merge_as_git_merges_them(edits: list[tuple[int, bool]]) -> None:
    base = [b"line %d\n" % number for number in range(120)]
    sides = [list(base), list(base)]
    for place, is_mine in dict(edits).items():
        sides[is_mine][place * 4] = b"changed %d by %d\n" % (place, is_mine)
    mine, new = (b"".join(side) for side in sides)
    merged = merge_lines(b"".join(base), mine, new)
    git = _merge_with_git(shutil.which("git") or "", b"".join(base), mine, new)
    assert git == merged
    assert not merged.conflict


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 5) | st.sampled_from(["", "x: y", "#", "'", "é\n"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(st.sampled_from("abcd"), VALUES, min_size=1, max_size=4)


@settings(max_examples=60)
@given(DOCUMENTS, DOCUMENTS, DOCUMENTS)
def test_manifests_merge_to_a_manifest_or_to_a_named_conflict(base: dict, mine: dict, new: dict) -> None:  # type: ignore[type-arg]
    from extforge.serialise import manifest_text

    texts = [manifest_text(value).encode() for value in (base, mine, new)]
    merged = merge_manifest(*texts, merge_lines(*texts))  # type: ignore[arg-type]
    if merged.conflict:
        assert "$" in merged.conflict
        return
    value = parse_yaml(merged.data.decode(), "m").value
    for key in {*base, *mine, *new}:
        sides = [side.get(key, "absent") for side in (base, mine, new)]
        if sides[0] == sides[1]:
            assert value.get(key, "absent") == sides[2]
        elif sides[0] == sides[2]:
            assert value.get(key, "absent") == sides[1]


def test_bytes_that_are_no_text_are_never_mixed() -> None:
    assert merge("a.png", b"\0a", b"\0b", b"\0c") == Merged(b"\0b", "it is not text, and both sides changed it")


def test_windows_line_ends_stay() -> None:
    merged = merge("a.py", b"a\nb\nc\nd\ne\n", b"a\r\nb\r\nc\r\nd\r\nmine\r\n", b"new\nb\nc\nd\ne\n")
    assert merged == Merged(b"new\r\nb\r\nc\r\nd\r\nmine\r\n")


@pytest.mark.parametrize(
    ("path", "base", "mine", "noise"),
    [
        ("a.py", b"x = {'a': 1}\n", b'x = {\n    "a": 1,\n}\n', True),
        ("a.py", b"x = 1  # why\n", b"x = 1\n", False),
        ("a.py", b"x = 1\n", b"x = 2\n", False),
        ("a.py", b"x = (", b"x = [", False),
        ("a.txt", b"a b\n", b"a  b\n", False),
        ("s/SKILL.md", b"---\nname: a\n---\n", b"---\nname: a\nskill_id: 7\n---\n", True),
        ("s/SKILL.md", b"---\nname: a\n---\n", b"---\nname: b\nskill_id: 7\n---\n", False),
    ],
)
def test_what_tools_do_is_no_edit(path: str, base: bytes, mine: bytes, noise: bool) -> None:
    assert is_noise(path, base, mine) is noise
