"""Decide what a gap needs, by the decision tree of openJiuwen's design-ext skill, and say why.

Does it need code at run time?  No: a skill.  Does it step into what the agent does?  A rail; a hard rule about what
the agent itself may do is a constraint of its own.  Is it an action that the agent chooses?  A tool, and a skill
beside it when the gap brings rules of its field.  What a gap does not say is not invented: with no words to go by
the lightest component is taken, and marked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from extforge.design.artifacts import Artifact, artifacts_of
from extforge.design.cues import Evidence, Texts

if TYPE_CHECKING:
    from extforge.design.gaps import Gap

__all__ = ["Decision", "Reason", "decide"]

STATED = ("feature", "suggested_approach")  # what is asked for, as opposed to what is the matter today


@dataclass(frozen=True, slots=True)
class Reason:
    """One choice, the rule that made it, and the words it went by."""

    subject: str
    value: str
    rule: str
    words: tuple[Evidence, ...] = ()

    def __str__(self) -> str:
        words = f" ({', '.join(str(word) for word in self.words)})" if self.words else ""
        return f"{self.subject}: {self.value} <- {self.rule}{words}"


@dataclass(slots=True)
class Decision:
    """What one design will be; a gap that asks for a rule and for something else has two."""

    kind: str = "capability"
    rail: str = ""  # what the rail does
    tools: list[str] = field(default_factory=list)  # what each tool does: artifact:pptx, report, http, custom ...
    skill: bool = False
    reasons: list[Reason] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)  # why it may be wrong; empty: it is certain enough

    @property
    def components(self) -> list[str]:
        """What the design has, in the host's words."""
        given = (("rail", bool(self.rail)), ("tool", bool(self.tools)), ("skill", self.skill))
        return [name for name, there in given if there]

    def because(self, subject: str, value: str, rule: str, *words: Evidence | None) -> None:
        """Note a reason."""
        self.reasons.append(Reason(subject, value, rule, tuple(word for word in words if word)))


def decide(gap: Gap) -> list[Decision]:
    """Return the designs of a gap: one, or a constraint and the capability that it was mixed with."""
    texts = Texts(gap)
    artifacts, read = artifacts_of(texts)
    if (none := texts.find("no-code")) and not any(a.strength == 3 for a in artifacts):
        decision = Decision(skill=True)
        decision.because("skill", "yes", "it says that nothing has to run", none)
        return [_named_capability(decision)]
    if keeper := _record_keeper(texts, artifacts):
        return [keeper]
    if rule := _constraint(texts):
        products = [a for a in artifacts if a.strength == 3]
        if not products:
            return [rule]
        rule.because("designs", "two", "the gap mixes a rule with an ability", products[0].evidence)
        rest = _writer(texts, products)
        rest.because("kind", "capability", "the rule of the same gap is a design of its own")
        return [rule, rest]
    return [_named_capability(_capability(texts, artifacts, read))]


def _named_capability(decision: Decision) -> Decision:
    decision.because("kind", "capability", "no hard rule about what the agent itself may do")
    return decision


def _capability(texts: Texts, artifacts: list[Artifact], read: list[str]) -> Decision:
    topic = _is_topic(texts)
    if rail := _rail(texts, artifacts):
        return rail
    if artifacts and not topic:
        return _writer(texts, artifacts)
    if action := _action(texts, read):
        return action
    if hook := texts.find("hook", STATED):
        decision = Decision(rail="custom")
        decision.because("rail", "custom", "it acts at a moment of the agent's work, in a way that has no name here", hook)
        decision.doubts.append("what the rail should do has to be written by a person")
        return decision
    decision = Decision(skill=True)
    knowledge = texts.find("knowledge", STATED) or texts.find("knowledge")
    if knowledge:
        decision.because("skill", "yes", "knowledge or guidance, and nothing to run", knowledge)
        if knowledge.field == "gap_description":
            decision.doubts.append("only the description speaks of guidance")
    else:
        decision.because("skill", "yes", "no word says what should run; the lightest component")
        decision.doubts.append("nothing in the gap says what it needs")
    return decision


def _is_topic(texts: Texts) -> bool:
    """Say whether the gap is knowledge about something, whatever files it mentions."""
    suggested = bool(texts.fields["suggested_approach"])
    fields = ("suggested_approach",) if suggested else ("feature",)
    known = texts.find("knowledge", fields)
    doing = any(texts.find(cue, fields) for cue in ("produce", "web", "cli", "sql"))
    return bool(known) and not doing and bool(texts.find("knowledge", ("feature",)) or suggested) and not _strong(texts)


def _strong(texts: Texts) -> bool:
    """Say whether the title asks for a file in so many words."""
    return any(a.strength == 3 and a.evidence.field in STATED for a in artifacts_of(texts)[0])


# --------------------------------------------------------------------------- rails


def _record_keeper(texts: Texts, artifacts: list[Artifact]) -> Decision | None:
    """A rail that counts or records while the agent works, and the tool that reads it back."""
    written = any(a.strength == 3 for a in artifacts)
    for does, cue in (("audit", "audit"), ("budget", "budget")):
        found = texts.together(cue, "session", fields=STATED) or texts.together(cue, "session")
        if not found:
            continue
        about_calls = any(texts.find(c) for c in ("hook", "period")) or _about_calls(texts)
        if not about_calls or (written and not _about_calls(texts)):
            continue
        if does == "audit" and not texts.find("audit", STATED):
            continue
        decision = Decision(rail=does, tools=["report"])
        decision.because("rail", does, "it records or counts while the agent works", *found)
        back = texts.find("read-back")
        decision.because("tool", "report", "what a rail accumulates must be read back by a tool", back)
        decision.because("kind", "capability", "it records; it forbids nothing")
        return decision
    if period := texts.find("period"):
        found = texts.find("remind") or texts.find("inject")
        decision = Decision(rail="reminder")
        decision.because("rail", "reminder", "it acts every so many turns or calls", period, found)
        if texts.find("read-back") and texts.find("budget"):
            decision.tools = ["report"]
            decision.because("tool", "report", "what it counts is to be read back", texts.find("read-back"))
        decision.because("kind", "capability", "it reminds; it forbids nothing")
        return decision
    return None


def _about_calls(texts: Texts) -> bool:
    """Say whether it is about the agent's calls and sessions, not about a business process of that name."""
    return any(
        word in texts.whole.lower()
        for word in (
            *("tool call", "tool usage", "tools are used", "which tool", "session", "token", "model call", "conversation", "the agent"),
            *("工具调用", "调用了什么工具", "调用工具", "会话", "对话", "调用次数", "次工具", "模型调用", "用了哪些工具", "agent", "智能体"),
        )
    )


def _rail(texts: Texts, artifacts: list[Artifact]) -> Decision | None:
    """A rail that steps in without forbidding anything."""
    decision = Decision()
    written = any(a.strength == 3 for a in artifacts)
    if not written and (found := texts.together("claim", "tool-result") or _claims_files(texts)):
        decision.rail = "artifact_gate"
        decision.because("rail", "artifact_gate", "it checks whether the files that a tool claims are real", *found)
        return decision
    if not written and (found := texts.together("shrink", "tool-result")):
        decision.rail = "result_filter"
        decision.because("rail", "result_filter", "it changes what a tool returned before the model reads it", *found)
        return decision
    inject = texts.find("inject", STATED) or texts.find("inject")
    if inject and not written:
        if moving := texts.together("inject", "dynamic"):
            decision.rail = "custom"
            decision.because("rail", "custom", "the text to inject changes, so code must make it", *moving)
            decision.doubts.append("the text has to be computed by a person's code")
            return decision
        decision.rail = "prompt"
        decision.because("rail", "prompt", "it puts a text into the prompt while the agent works", inject)
        if norms := texts.find("norms"):
            decision.skill = True
            decision.because("skill", "yes", "the rail injects rules of the field, which are a skill", norms)
        return decision
    if not written and (remind := texts.find("remind", STATED)) and texts.find("session"):
        decision.rail = "reminder"
        decision.because("rail", "reminder", "it reminds while the agent works", remind)
        decision.doubts.append("no period is said; 5 model calls are assumed")
        return decision
    return None


def _claims_files(texts: Texts) -> list[Evidence] | None:
    claim, hook = texts.find("claim"), texts.find("hook")
    file = "file" in texts.whole.lower() or "文件" in texts.whole
    return [claim, hook] if claim and hook and file else None


# What a rule is about, what its rail does, and how hard the words must be: `must` is a rule about files, but a wish
# about an answer.
_RULES = (
    ("guard", ("file-name", "file-place"), ("prohibit", "must")),
    ("guard", ("command",), ("prohibit",)),
    ("output_guard", ("answer",), ("prohibit", "protect")),
    ("result_filter", ("tool-result",), ("prohibit", "protect")),
    ("guard", ("file-act",), ("prohibit",)),
)


def _constraint(texts: Texts) -> Decision | None:
    """A hard rule about what the agent may do: with files, with commands, or in what it says."""
    for does, objects, hard in _RULES:
        for fields in (STATED, ("gap_description",)):
            pairs = [texts.together(word, thing, fields=fields) for thing in objects for word in hard]
            found = next((pair for pair in pairs if pair and _acts(texts, pair)), None)
            if found is None:
                continue
            decision = Decision("constraint", rail=does)
            decision.because("kind", "constraint", "a hard rule about what the agent itself may do", *found)
            decision.because("rail", does, "a constraint acts through a rail, before or after each call", found[1])
            if fields == ("gap_description",):
                decision.doubts.append("only the description states the rule")
            return decision
    return None


def _acts(texts: Texts, found: list[Evidence]) -> bool:
    """Say whether the rule is about the agent's own acts: a folder alone may be a folder of anything."""
    acts = any(texts.find(cue) for cue in ("file-act", "hook", "answer", "command"))
    return acts or found[1].cue in ("file-name", "answer", "tool-result")


# --------------------------------------------------------------------------- tools


def _writer(texts: Texts, artifacts: list[Artifact]) -> Decision:
    decision = Decision(tools=[f"artifact:{artifact.format}" for artifact in artifacts])
    for artifact in artifacts:
        rule = "it writes a file" if artifact.strength == 3 else "a file of this format is named"
        decision.because("tool", f"artifact {artifact.format}", rule, artifact.evidence)
        if not artifact.named:
            decision.doubts.append(f"the format {artifact.format} is only suggested, by {artifact.evidence}")
        elif artifact.strength == 1:
            decision.doubts.append("only the description names the format")
    _add_norms(decision, texts)
    return decision


def _add_norms(decision: Decision, texts: Texts) -> None:
    if norms := texts.find("norms", STATED) or texts.find("norms"):
        decision.skill = True
        decision.because("skill", "yes", "the gap brings rules, a style, examples or a template of its field", norms)


def _action(texts: Texts, read: list[str]) -> Decision | None:
    """An action that the agent chooses to take."""
    del read
    knowledge = texts.find("knowledge", STATED)
    web, cli, sql = (texts.find(cue, STATED) for cue in ("web", "cli", "sql"))
    wrap, ask, act = (texts.find(cue, STATED) for cue in ("wrap", "ask", "act"))
    decision = Decision()
    if sql and (ask or wrap):
        decision.tools = ["query"]
        decision.because("tool", "query", "it asks a database", sql, ask or wrap)
    elif web and not (knowledge and not (act or wrap)):
        decision.tools = ["http"]
        decision.because("tool", "http", "it calls a web API", web)
    elif cli or (wrap and wrap.cue == "wrap" and not knowledge):
        decision.tools = ["command"]
        decision.because("tool", "command", "it wraps a command line program", cli, wrap)
    elif act and not knowledge:
        decision.tools = ["custom"]
        decision.because("tool", "custom", "an action with inputs and a result", act)
        decision.doubts.append("the gap does not say how the action is done; a person writes its body")
    elif (produce := texts.find("produce", STATED)) and not knowledge:
        decision.tools = ["custom"]
        decision.because("tool", "custom", "it produces something, in a format that the gap does not name", produce)
        decision.doubts.append("the gap names no file format")
    else:
        return None
    if norms := texts.find("norms", STATED):
        decision.skill = True
        decision.because("skill", "yes", "the gap brings rules, a style, examples or a template of its field", norms)
    return decision
