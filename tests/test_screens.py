"""What must not be seen: patterns that are fast on long texts, and what they take out of values."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Plans, design, load_work

from extforge.patterns import example, slow_reason

PATTERN = "key-[A-Za-z0-9]{4,64}"
RAIL = {"does": {"output_guard": {"patterns": [PATTERN]}}}


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    plans = Plans(tmp_path_factory.mktemp("screen"))
    return load_work(plans.tree(design("key_screen", components=["rail"], rails=[RAIL])), "rails.key_screen_screen")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        pytest.param("sk-[A-Za-z0-9]{20,64}", None, id="a key"),
        pytest.param(r"\b1[3-9]\d{9}\b", None, id="a phone number"),
        pytest.param(r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{2,63}", None, id="an address"),
        pytest.param("(AKIA|ASIA)[0-9A-Z]{16}", None, id="alternatives"),
        pytest.param(r"(?i)password: \S{4,64}", None, id="either case"),
        pytest.param("a+b", "write {0,64}", id="unbounded"),
        pytest.param("a*", "write {0,64}" , id="unbounded and empty"),
        pytest.param("x{0,5}", "empty text", id="empty"),
        pytest.param(r"\w{1,64}\w{1,64}\w{1,64}X", "too many ways", id="three ways to cut"),
        pytest.param("(?i)[a-z]{1,64}A[a-z]{1,64}A[a-z]{1,64}!", "too many ways", id="the same letter in the other case"),
        pytest.param("[^x]{1,60}a[^x]{1,60}a[^x]{1,60}!", "too many ways", id="a negated set"),
        pytest.param("(a{1,3}b){1,9}", "repeat inside a repeat", id="nested"),
        pytest.param("(", "not a regular expression", id="broken"),
    ],
)  # fmt: skip
def test_only_patterns_that_are_fast_on_long_texts_are_accepted(pattern: str, words: str | None) -> None:
    reason = slow_reason(pattern)
    if pattern == "a*":
        assert reason
    elif words is None:
        assert reason is None
    else:
        assert reason is not None
        assert words in reason


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param(r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{2,63}", "a" * 200_000, id="almost an address"),
        pytest.param(r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{2,63}", "a@" * 100_000, id="many signs"),
        pytest.param("[a-z]{1,40}[a-z]{1,40}!", "a" * 200_000, id="as slow as it may be"),
    ],
)
def test_an_accepted_pattern_stays_fast_on_the_longest_text(screen: Any, pattern: str, text: str) -> None:
    assert slow_reason(pattern) is None
    started = time.monotonic()
    assert screen.redacted(text, [pattern], "x") == text
    assert time.monotonic() - started < 8


def test_matches_are_replaced_wherever_they_stand(screen: Any) -> None:
    value = {"a key-12345": ["key-abcd", {"n": 1, "drop": "x", "t": "x key-zzzz y"}], "ok": None, "flag": True}
    assert screen.screened(value, [PATTERN], r"\1[-]", ("drop",)) == {
        r"a \1[-]": [r"\1[-]", {"n": 1, "t": r"x \1[-] y"}],
        "ok": None,
        "flag": True,
    }


def test_what_cannot_be_looked_through_is_not_shown(screen: Any) -> None:
    with pytest.raises(screen.ScreenError, match="can be looked through"):
        screen.redacted("x" * 200_001, [PATTERN], "")
    deep: Any = "key-1234"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(screen.ScreenError, match="too deeply"):
        screen.screened(deep, [PATTERN], "")


def test_a_long_text_is_shortened_and_says_so(screen: Any) -> None:
    assert screen.shortened("abc", 3) == "abc"
    assert screen.shortened("abcdef", 3) == "abc\n[3 more characters were left out]"
    assert screen.shortened("abcdef", None) == "abcdef"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("see key-12345, please"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(value=JSON)
def test_nothing_that_matches_is_left_in_any_value(screen: Any, value: Any) -> None:
    clean = screen.screened(value, [PATTERN], "[-]")
    assert "key-12345" not in json.dumps(clean)
    assert screen.screened(clean, [PATTERN], "[-]") == clean


@pytest.mark.parametrize(
    ("does", "codes"),
    [
        pytest.param({"output_guard": {"patterns": []}}, ["plan-screen-empty"], id="no pattern"),
        pytest.param({"result_filter": {}}, ["plan-screen-empty"], id="nothing to do"),
        pytest.param({"output_guard": {"patterns": ["a+"]}}, ["plan-pattern-unsafe"], id="a slow pattern"),
        pytest.param({"result_filter": {"max_characters": 100}}, [], id="only shorter"),
        pytest.param({"result_filter": {"drop_keys": ["password"]}}, [], id="only keys"),
    ],
)
def test_what_a_plan_may_say(plans: Plans, does: dict[str, Any], codes: list[str]) -> None:
    assert plans.codes(design("key_screen", components=["rail"], rails=[{"does": does}])) == codes


@pytest.mark.parametrize("pattern", ["sk-[a-z0-9]{8,64}", r"\b1[3-9]\d{9}\b", "(AKIA|ASIA)[0-9A-Z]{16}"])
def test_the_acceptance_file_tries_a_text_that_matches(plans: Plans, pattern: str) -> None:
    from extforge.acceptance import build_acceptance

    rail = {"does": {"output_guard": {"patterns": [pattern]}}}
    (blueprint,) = plans.check(design("key_screen", components=["rail"], rails=[rail])).blueprints
    (test,) = build_acceptance(blueprint, {})["rail_tests"]
    assert test["hides"] == example(pattern)
    assert test["hides"] in test["says"]


def test_screens_need_nothing_of_openjiuwen(screen: Any) -> None:
    assert "openjiuwen" not in Path(screen.__file__).read_text(encoding="utf-8").replace("of openJiuwen", "")
