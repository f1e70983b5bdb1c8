"""Skills for two kinds of readers: openJiuwen alone, or everybody who follows the agentskills specification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Plans, design, run_cli

from extforge.check import load_plan
from extforge.errors import PlanError
from extforge.generate import Generated, Options, generate
from extforge.serialise import front_matter
from extforge_harness.host.probe import ScriptedModel, tool_call
from extforge_harness.runtimes.trees import read_skill_facts
from extforge_verifiers import Verdict, verify_extension
from extforge_verifiers.frontmatter import SKILL_PROFILES, check_skill

HARNESS = "openjiuwen/extensions/harness"
DECK = design("sales_deck", components=["tool", "rail", "skill"], rails=[{"does": {"prompt": {"skill": "sales_deck"}}}])
ADVICE = design("cache_advice", components=["skill"], skills=[{"references": {"more.md": "Text."}}])
HOSTILE = [
    "Colons: {braces}, [lists] & *anchors* !tags | > % @ `ticks`",
    "quotes ' and \" and --- dashes\nand a second line",
    "季度汇报 📈: 用于演示",
    "x" * 1024,
]


class Project:
    """A plan and its target."""

    def __init__(self, folder: Path) -> None:
        self.plan = folder / "my.plan.json"
        self.target = folder / "out"

    def run(self, *designs: dict[str, Any], profile: str | None = None, **options: Any) -> Generated:
        self.plan.write_text(json.dumps({"package_name": "pack", "designs": designs}))
        done = generate(load_plan(str(self.plan)), str(self.target), Options(skill_profile=profile, **options))
        assert done.applied or options.get("dry_run"), done.changes
        return done

    def skills(self) -> list[str]:
        return sorted(path.parent.name for path in (self.target / HARNESS).glob("*/skills/*/SKILL.md"))

    def files(self) -> dict[str, bytes]:
        found = [p for p in self.target.rglob("*") if p.is_file() and ".extforge" not in p.parts]
        return {str(p.relative_to(self.target)): p.read_bytes() for p in found}

    def skill(self, name: str) -> Path:
        return self.target / HARNESS / name.replace("-", "_") / "skills" / name / "SKILL.md"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def reference_problems(folder: Path) -> list[str]:
    """Return what the specification's own validator says; it comes last in a test, which is skipped where it is absent."""
    validator = pytest.importorskip("skills_ref.validator", reason="the reference validator: pip install skills-ref")
    return list(validator.validate(folder))


def codes(text: str, folder: str = "sales-deck") -> list[str]:
    return [f.code for f in check_skill(text, "SKILL.md", folder, "agentskills")]


# --------------------------------------------------------------------------- what is written


def test_the_reference_validator_takes_what_is_generated_whatever_the_texts(project: Project) -> None:
    designs = [
        design(f"skill_{n}", components=["skill"], skills=[{"description": text, "trigger": text[::-1]}])
        for n, text in enumerate(HOSTILE)
    ]
    done = project.run(DECK, ADVICE, *designs, profile="agentskills")
    folders = [path.parent for path in project.target.glob(f"{HARNESS}/*/skills/*/SKILL.md")]
    assert sorted(f.name for f in folders) == ["cache-advice", "sales-deck", *(f"skill-{n}" for n in range(4))]
    for root in done.roots:
        report = verify_extension(str(project.target / root))
        assert report.findings == (), report.findings
    for folder in folders:
        assert reference_problems(folder) == [], folder.name


def test_names_and_trigger_are_where_agentskills_has_them_and_all_that_names_the_skill_follows(
    project: Project,
) -> None:
    project.run(DECK, ADVICE, profile="agentskills")
    head = project.skill("sales-deck").read_text().split("---\n")[1].splitlines()
    assert [line.partition(":")[0] for line in head] == ["name", "description", "metadata", "  trigger"]
    tree = project.target / HARNESS / "sales_deck"
    assert "Read the skill sales-deck first" in json.loads((tree / "tools/sales_deck.json").read_text())["description"]
    assert json.loads((tree / "rails/sales_deck.json").read_text())["options"]["skill"] == "sales-deck"
    assert "name: sales-deck\n" in (tree / "skills/sales-deck/skill.yaml").read_text()
    assert "skill_profile: agentskills" in (tree / "harness_config.yaml").read_text()
    assert "skill: sales-deck\n" in (project.target / "acceptance/sales_deck.yaml").read_text()


def test_the_catalog_reads_the_trigger_where_either_profile_has_it() -> None:
    for line in ("trigger: When asked.", "metadata:\n  trigger: When asked."):
        facts = read_skill_facts("deck", f"---\nname: deck\ndescription: D\n{line}\n---\nx\n", "", "deck/SKILL.md")
        assert facts.when == "When asked."


def test_a_workflow_that_the_plan_spells_out_follows_too(project: Project) -> None:
    flow = {"name": "cache_advice", "prompt": "Advise.", "steps": [{"name": "apply", "prompt": "Do."}]}
    project.run({**ADVICE, "workflows": {"cache_advice": flow}}, profile="agentskills")
    assert "name: cache-advice\n" in project.skill("cache-advice").with_name("skill.yaml").read_text()


def test_without_the_option_nothing_is_any_different(project: Project, tmp_path: Path) -> None:
    project.run(DECK)
    (tmp_path / "other").mkdir()
    other = Project(tmp_path / "other")
    other.run(DECK, profile="openjiuwen")
    assert project.files() == other.files()
    assert b"skill_profile" not in b"".join(p.read_bytes() for p in project.target.rglob("*.json"))


@pytest.mark.parametrize(
    ("skills", "code"),
    [
        ([{"description": "x" * 1025}], "plan-skill-description-long"),
        ([{"name": "a_b"}, {"name": "a-b"}], "plan-skill-duplicate"),
    ],
)
def test_what_agentskills_cannot_say_is_refused_with_its_place(
    project: Project, skills: list[dict[str, str]], code: str
) -> None:
    project.run(design("advice", components=["skill"], skills=skills))
    before = project.files()
    with pytest.raises(PlanError) as caught:
        project.run(design("advice", components=["skill"], skills=skills), profile="agentskills")
    assert [f.code for f in caught.value.findings] == [code]
    assert caught.value.findings[0].where.line
    done = run_cli("generate", str(project.plan), "--into", str(project.target), "--skill-profile", "agentskills")
    assert done.returncode == 1
    assert code in done.stderr
    assert "nothing was generated" in done.stderr
    assert project.files() == before


def test_two_designs_are_merged_into_one_extension_of_that_profile(project: Project) -> None:
    done = project.run(DECK, ADVICE, profile="agentskills", merge=True)
    report = verify_extension(str(project.target / done.roots[0]))
    assert (report.verdict, report.findings) == (Verdict.PASS, ())
    project.run(DECK, ADVICE, merge=True)
    assert sorted(p.parent.name for p in project.target.rglob("SKILL.md")) == ["cache-advice", "sales-deck"]


# --------------------------------------------------------------------------- the choice is kept


def test_the_choice_is_kept_until_another_is_made(project: Project) -> None:
    project.run(DECK, profile="agentskills")
    before = project.files()
    assert project.run(DECK).changes.writes == []
    project.run(DECK, ADVICE)
    assert project.skills() == ["cache-advice", "sales-deck"], "a design that is new follows the others"
    renamed = {**DECK, "extension_name": "revenue_deck", "rails": []}
    project.run(renamed, ADVICE)
    assert project.skills() == ["cache-advice", "revenue-deck"]
    project.run(DECK, ADVICE)
    project.run(DECK)
    assert project.files() == before
    project.run(DECK, profile="openjiuwen")
    assert project.skills() == ["sales_deck"]
    assert project.run(DECK).changes.writes == []


def test_the_command_knows_every_profile(tmp_path: Path) -> None:
    done = run_cli("generate", "x", "--into", "out", "--skill-profile", "klingon", cwd=tmp_path)
    assert done.returncode == 2
    assert all(f"'{profile}'" in done.stderr for profile in SKILL_PROFILES)


def test_one_extension_may_be_written_for_others(project: Project) -> None:
    project.run(DECK, ADVICE)
    project.run(DECK, ADVICE, only="cache_advice", profile="agentskills")
    assert project.skills() == ["cache-advice", "sales_deck"]
    assert project.run(DECK, ADVICE).changes.writes == []


def test_plans_from_standard_input_keep_it_too(tmp_path: Path) -> None:
    text = json.dumps([ADVICE])
    for arguments in (["--skill-profile", "agentskills"], []):
        done = run_cli("generate", "-", "--into", "out", "-q", *arguments, cwd=tmp_path, stdin=text)
        assert done.returncode == 0, done.stderr
    assert [p.parent.name for p in tmp_path.rglob("SKILL.md")] == ["cache-advice"]


def test_a_lock_that_names_another_profile_is_damaged(project: Project) -> None:
    project.run(DECK, profile="agentskills")
    lock = project.target / ".extforge/lock.json"
    lock.write_text(lock.read_text().replace("agentskills", "klingon"))
    done = run_cli("generate", str(project.plan), "--into", str(project.target))
    assert done.returncode == 2
    assert "damaged at klingon" in done.stderr


# --------------------------------------------------------------------------- changing it is an update


def test_edits_move_along_there_and_back(project: Project) -> None:
    project.run(DECK, ADVICE)
    path = project.skill("cache_advice").parent.parent / "cache_advice" / "SKILL.md"
    edited = (
        path.read_text().replace("description: Guidance", "description: MY guidance").replace("- Say so", "- MY say")
    )
    path.write_text(f"{edited}\nMY ending.\n")
    path.with_name("mine.txt").write_text("added")
    original = path.read_text()
    done = project.run(DECK, ADVICE, profile="agentskills")
    text = project.skill("cache-advice").read_text()
    assert text.splitlines()[1:5] == [
        "name: cache-advice",
        original.splitlines()[2],
        "metadata:",
        "  " + original.splitlines()[3],
    ]
    assert text.split("---\n", 2)[2] == original.split("---\n", 2)[2]
    old = f"{HARNESS}/cache_advice/skills/cache_advice"
    assert done.changes.rows[f"{old}/mine.txt"].reason.startswith("yours, and left where it is; the skill is now in")
    assert sorted(p.name for p in (project.target / old).iterdir()) == ["mine.txt"]
    project.run(DECK, ADVICE, profile="openjiuwen")
    assert path.read_text() == original


@pytest.mark.parametrize(
    ("mine", "after"),
    [
        pytest.param(
            "name: cache\ndescription: D\ntrigger: MY own\n",
            "name: cache\ndescription: D\nmetadata:\n  trigger: MY own\n",
            id="an edited trigger",
        ),
        pytest.param(
            "name: cache\ndescription: D\ntrigger: T\nmetadata:\n  author: me\n",
            "name: cache\ndescription: D\nmetadata:\n  trigger: T\n  author: me\n",
            id="metadata of one's own",
        ),
        pytest.param(
            "name: cache\nskill_id: 7\ndescription: D\nlicense: MIT\ntrigger: T\n",
            "name: cache\nskill_id: 7\ndescription: D\nlicense: MIT\nmetadata:\n  trigger: T\n",
            id="more keys",
        ),
    ],
)  # fmt: skip
def test_front_matter_that_a_person_changed_is_carried_over(project: Project, mine: str, after: str) -> None:
    skill = {"name": "cache", "description": "D", "trigger": "T"}
    wanted = design("advice", components=["skill"], skills=[skill])
    project.run(wanted)
    path = project.target / HARNESS / "advice/skills/cache/SKILL.md"
    head, body = path.read_text().split("---\n", 2)[1:]
    assert head == "name: cache\ndescription: D\ntrigger: T\n"
    path.write_text(f"---\n{mine}---\n{body}")
    project.run(wanted, profile="agentskills")
    assert path.read_text() == f"---\n{after}---\n{body}"
    project.run(wanted, profile="openjiuwen")
    back = path.read_text().split("---\n", 2)[1]
    assert sorted(back.splitlines()) == sorted(mine.splitlines())


def test_a_merge_that_would_break_the_front_matter_is_a_conflict(project: Project) -> None:
    skill = {"name": "cache", "description": "D", "trigger": "T"}
    wanted = design("advice", components=["skill"], skills=[skill])
    project.run(wanted)
    path = project.target / HARNESS / "advice/skills/cache/SKILL.md"
    text = path.read_text().replace("name: cache\n", "metadata: {author: me}\nname: cache\n")
    path.write_text(text)
    done = run_cli("generate", str(project.plan), "--into", str(project.target), "--skill-profile", "agentskills")
    assert done.returncode == 1
    assert "both changed the front matter" in done.stderr
    assert path.read_text() == text


# --------------------------------------------------------------------------- what verify says of it


def test_both_profiles_pass_and_where_none_is_named_it_is_told_what_others_would_refuse(project: Project) -> None:
    project.run(DECK, profile="agentskills")
    strict = run_cli("verify", str(project.target), "--strict", "--json")
    assert strict.returncode == 0, strict.stdout
    project.run(DECK, profile="openjiuwen")
    strict = run_cli("verify", str(project.target), "--strict", "--json")
    assert strict.returncode == 0, strict.stdout
    manifest = project.target / HARNESS / "sales_deck/harness_config.yaml"
    assert json.loads(strict.stdout)["reports"][0]["findings"] == []
    manifest.write_text(manifest.read_text().partition("metadata:")[0])  # as a tree that nobody generated
    strict = run_cli("verify", str(project.target), "--strict", "--json")
    assert strict.returncode == 0, strict.stdout
    (report,) = json.loads(strict.stdout)["reports"]
    assert {(f["code"], f["severity"]) for f in report["findings"]} == {("skill-agentskills", "info")}
    assert "skill-agentskills" not in run_cli("verify", str(project.target)).stdout


def test_a_tree_that_is_written_for_agentskills_is_held_to_it(project: Project) -> None:
    project.run(DECK, profile="agentskills")
    path = project.skill("sales-deck")
    path.write_text(path.read_text().replace("name: sales-deck\n", "name: sales-deck\nskill_id: 12\n"))
    done = run_cli("verify", str(project.target))
    assert done.returncode == 0
    assert "skills/sales-deck/SKILL.md:3:1: $.skill_id: agentskills does not take it: 'skill_id'" in done.stdout
    assert run_cli("verify", str(project.target), "--strict").returncode == 1
    assert reference_problems(path.parent) != []


GOOD = "---\nname: sales-deck\ndescription: D\nmetadata:\n  version: 1.0\n---\nx\n"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("description: D", "description: D\ntrigger: T", 4),
        ("name: sales-deck", "name: Sales-Deck", 2),
        ("name: sales-deck", "name: sales--deck", 2),
        ("name: sales-deck", f"name: {'x' * 65}", 2),
        ("description: D", f"description: D\ncompatibility: {'x' * 501}", 4),
        ("description: D", "description: D\nallowed-tools: [Read, Bash]", 4),
        ("description: D", "description: &d D", 3),
        ("description: D", "description: !!str D", 3),
        ("  version: 1.0", "  version: {a: b}", 5),
    ],
)  # fmt: skip
def test_a_trap_is_found_with_its_line_and_the_reference_validator_falls_into_it(
    tmp_path: Path, old: str, new: str, line: int
) -> None:
    assert codes(GOOD) == []
    text = GOOD.replace(old, new, 1)
    folder = tmp_path / str(new.partition("name: ")[2] or "sales-deck")
    found = [f for f in check_skill(text, "SKILL.md", folder.name, "agentskills") if f.code == "skill-agentskills"]
    assert [f.where.line for f in found][:1] == [line], found
    folder.mkdir()
    (folder / "SKILL.md").write_text(text)
    assert reference_problems(folder) != []


TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t:#-'\"{}[]|>%&*!@`,?"), max_size=80
)


@given(TEXT.filter(str.strip), TEXT)
def test_what_we_write_is_strict_yaml_whatever_the_text(description: str, trigger: str) -> None:
    fields = {"name": "sales-deck", "description": description, "metadata": {"trigger": trigger}}
    text = front_matter(fields) + "\nbody\n"
    assert "skill-agentskills" not in codes(text)
    parser = pytest.importorskip("skills_ref.parser", reason="the reference validator: pip install skills-ref")
    assert parser.parse_frontmatter(text)[0] == fields


# --------------------------------------------------------------------------- in the host


@pytest.mark.host
def test_the_host_offers_the_skill_and_a_model_reads_it(
    plans: Plans, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.run(DECK, ADVICE, profile="agentskills")
    verified = run_cli("verify", str(project.target), "--host", "--strict", "--json")
    assert verified.returncode == 0, verified.stdout
    checked = [name for report in json.loads(verified.stdout)["reports"] for name in report["checked"]]
    assert {"skill sales-deck", "skill cache-advice"} <= set(checked)

    model = ScriptedModel()
    for name, value in (("BASE_URL", f"http://127.0.0.1:{model.port}/v1"), ("API_KEY", "k"), ("MODEL", "scripted")):
        monkeypatch.setenv(f"OPENAI_{name}", value)
    agent = tmp_path / "adviser.agent.json"
    agent.write_text(json.dumps({"name": "adviser", "instructions": "Advise.", "skills": ["cache-advice"]}))
    model.script[:] = [
        tool_call("skill_tool", {"skill_name": "cache-advice"}, "call-1"),
        {"role": "assistant", "content": "Read it."},
    ]
    done = run_cli("agents", "run", str(agent), "Which cache?", "--skills", str(project.target), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = model.requests
    assert "Guidance for cache advice" in first["messages"][0]["content"], "the description comes from the front matter"
    assert "# Cache advice" in second["messages"][-1]["content"]
