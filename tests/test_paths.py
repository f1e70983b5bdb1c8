"""Whether a path lies in a folder: siblings with the same beginning, links both ways, names nobody can follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from extforge_verifiers.paths import lies_in


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        pytest.param("out", True, id="the folder itself"),
        pytest.param("out/deep/not there", True, id="below, missing"),
        pytest.param("out/../out/x", True, id="there and back"),
        pytest.param("output/x", False, id="a sibling with the same beginning"),
        pytest.param("out/../x", False, id="above"),
        pytest.param("out/away/x", False, id="a link out of it"),
        pytest.param("back/x", True, id="a link into it"),
        pytest.param("out/a\0b", False, id="a NUL"),
    ],
)
def test_a_path_lies_in_a_folder(tmp_path: Path, path: str, inside: bool) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/away").symlink_to(tmp_path)
    (tmp_path / "back").symlink_to(tmp_path / "out")
    assert lies_in(f"{tmp_path}/{path}", tmp_path / "out") is inside
    assert lies_in(f"{tmp_path}/{path}", "/") is ("\0" not in path)
