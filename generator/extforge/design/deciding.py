"""Decide what a gap needs, by the decision tree of openJiuwen's design-ext skill, and say why.

Does it need code at run time?  No: a skill.  Does it step into what the agent does?  A rail; a hard rule about what
the agent itself may do is a constraint of its own.  Is it an action that the agent chooses?  A tool, and a skill
beside it when the gap brings rules of its field.  What a gap does not say is not invented: with no words to go by
the lightest component is taken, and marked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from extforge.design.artifacts import Artifact, artifacts_of
from extforge.design.cues import FIELDS, Evidence, Texts

if TYPE_CHECKING:
    from extforge.design.gaps import Gap

__all__ = ["Decision", "Reason", "decide"]


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
    artifacts = artifacts_of(texts)
    written = any(a.strength == 3 for a in artifacts)
    if (none := texts.find("no-code")) and not written:
        decision = Decision(skill=True)
        decision.because("skill", "yes", "it says that nothing has to run", none)
        return [_named_capability(decision)]
    for step in (_filtered_results, _record_keeper, _gate):
        if decision := step(texts, written=written):
            return [_named_capability(decision)]
    stated = [a for a in artifacts if a.named and a.strength > 1]
    if rule := _constraint(texts, written=bool(stated)):
        products = [a for a in artifacts if a.named and a.apart]
        if not products:
            return [rule]
        rule.because("designs", "two", "the gap mixes a rule with an ability", products[0].evidence)
        rest = _writer(texts, products)
        rest.because("kind", "capability", "the rule of the same gap is a design of its own")
        return [rule, rest]
    return [_named_capability(_capability(texts, artifacts))]


def _named_capability(decision: Decision) -> Decision:
    if decision.kind == "capability":
        decision.because("kind", "capability", "no hard rule about what the agent itself may do")
    return decision


def _capability(texts: Texts, artifacts: list[Artifact]) -> Decision:
    topic = _is_topic(texts)
    if rail := _rail(texts, written=any(a.strength == 3 or (a.strength == 2 and a.named) for a in artifacts)):
        return rail
    if artifacts and not topic:
        return _writer(texts, artifacts)
    if action := _action(texts):
        return action
    if hook := texts.find("hook", texts.stated):
        decision = Decision(rail="custom")
        decision.because(
            "rail", "custom", "it acts at a moment of the agent's work, in a way that has no name here", hook
        )
        decision.doubts.append("what the rail should do has to be written by a person")
        return decision
    decision = Decision(skill=True)
    knowledge = texts.find("knowledge", texts.stated) or texts.find("knowledge")
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
    doing = any(texts.find(cue, fields) for cue in ("produce", "web", "cli", "sql"))
    known = texts.find("knowledge", fields) and (suggested or texts.find("knowledge", ("feature",)))
    return not doing and bool(known or texts.find("question", ("feature",))) and not _strong(texts)


def _strong(texts: Texts) -> bool:
    """Say whether the title asks for a file in so many words."""
    return any(a.strength == 3 and a.evidence.field in texts.stated for a in artifacts_of(texts))


# --------------------------------------------------------------------------- rails


def _filtered_results(texts: Texts, *, written: bool) -> Decision | None:
    """A rail that changes what a tool returned before the model reads it."""
    results = texts.find("results", texts.stated) or texts.find("results")
    if results is None or written:
        return None
    hard = texts.find("protect") or texts.find("prohibit", texts.stated)
    change = hard or texts.find("shrink", texts.stated) or texts.find("shrink")
    if change is None:
        return None
    decision = Decision("constraint" if hard else "capability", rail="result_filter")
    if hard:
        decision.because("kind", "constraint", "what tools return is not for the model as it is", hard)
    decision.because(
        "rail", "result_filter", "it changes what a tool returned before the model reads it", change, results
    )
    return decision


def _record_keeper(texts: Texts, *, written: bool) -> Decision | None:
    """A rail that counts or records while the agent works, and the tool that reads it back."""
    period = texts.find("period")
    reminds = texts.find("remind") or texts.find("inject")
    if period and reminds:
        return _reminder(texts, period, reminds)
    for does in ("audit", "budget"):
        counted, session = texts.find(does, texts.stated) or texts.find(does), texts.find("session")
        if not (counted and session and _about_calls(texts)):
            continue
        aside = counted.field not in texts.stated
        if aside and written and not texts.find("hook"):
            continue
        decision = Decision(rail=does, tools=["report"])
        decision.because("rail", does, "it records or counts while the agent works", counted, session)
        back = texts.find("read-back")
        decision.because("tool", "report", "what a rail accumulates must be read back by a tool", back)
        return decision
    return _reminder(texts, period, None) if period else None


def _reminder(texts: Texts, period: Evidence, reminds: Evidence | None) -> Decision:
    decision = Decision(rail="reminder")
    decision.because("rail", "reminder", "it acts every so many turns or calls", period, reminds)
    if (back := texts.find("read-back", texts.stated)) and texts.find("budget"):
        decision.tools = ["report"]
        decision.because("tool", "report", "what it counts is to be read back", back)
    return decision


_CALLS = re.compile(
    r"\b(tool|model|api|llm|function)[- ]?(calls?|calling|usage|invocations?|executions?|budgets?)\b|\btools? (is|are|was|were) (used|called)|\bwhich tools?\b"
    r"|\b(per|each|every|this|the|a) session|\bsessions?\b|\bconversations?\b|\btoken (usage|budget|limit|count|cost)|\btokens\b"
    r"|\bagent('s)? (did|does|actions?|activity)|\bactions? of the agent"
    r"|工具调用|调用(过|了)?(什么|哪些)?工具|记录.{0,4}调用|智能体调用|会话|对话|调用次数|次工具|模型调用|每次调用|用了哪些工具|(智能体|agent) ?(的)?\S{0,3}(行为|操作|步)|\btoken",
    re.IGNORECASE | re.ASCII,
)


def _about_calls(texts: Texts) -> bool:
    """Say whether it is about the agent's calls and sessions, not about a business process of that name."""
    return _CALLS.search(texts.whole) is not None


def _rail(texts: Texts, *, written: bool) -> Decision | None:
    """A rail that steps in without a rule about something that it names."""
    if written:
        return None
    decision = Decision()
    if inject := texts.find("inject", texts.stated) or texts.find("inject"):
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
    elif (remind := texts.find("remind", texts.stated)) and texts.find("session"):
        decision.rail = "reminder"
        decision.because("rail", "reminder", "it reminds while the agent works", remind)
        decision.doubts.append("no period is said; 5 model calls are assumed")
    elif not texts.find("knowledge", texts.stated) and (
        protect := texts.find("protect", texts.stated) or (texts.find("shrink") and texts.find("protect"))
    ):
        decision.kind, decision.rail = "constraint", "output_guard"
        decision.because("kind", "constraint", "something is to stay hidden", protect)
        decision.because("rail", "output_guard", "what is hidden must not be said", protect)
        decision.doubts.append("the gap does not say where it is to be hidden; what the agent says is assumed")
    else:
        return None
    return decision


def _gate(texts: Texts, *, written: bool) -> Decision | None:
    """A rail that holds claims of files against the files."""
    claim = texts.find("claim")
    verify = texts.find("verify") or texts.find("untrue")
    if written or not (
        claim and verify and re.search(r"\bfiles?\b|\bartifacts?\b|文件|产物", texts.whole, re.IGNORECASE)
    ):
        return None
    if texts.find("knowledge", texts.stated[:2]) and not texts.find("hook") and verify.field == "gap_description":
        return None  # guidance on how to check
    decision = Decision(rail="artifact_gate")
    decision.because("rail", "artifact_gate", "it checks whether the files that a tool claims are real", claim, verify)
    return decision


# What a rule is about, what its rail does, and how hard the words must be: `must` is a rule about files, but a wish
# about an answer.
_RULES = (
    ("guard", ("file-name", "file-place"), ("prohibit", "only", "must")),
    ("guard", ("file-type",), ("prohibit", "only")),
    ("guard", ("command",), ("prohibit",)),
    ("output_guard", ("answer",), ("prohibit", "protect")),
    ("custom", ("model-input",), ("protect",)),
    ("guard", ("file-act",), ("prohibit",)),
    ("output_guard", ("speech",), ("prohibit",)),
)


def _constraint(texts: Texts, *, written: bool) -> Decision | None:
    """A hard rule about what the agent may do: with files, with commands, or in what it says.

    Where title and suggestion ask for a file, the description alone makes a rule about files only; where they ask
    for knowledge, none.
    """
    topic = _is_topic(texts)
    for does, objects, hard in _RULES:
        for fields in (texts.stated, ("gap_description",)):
            aside = fields == ("gap_description",) and texts.stated != FIELDS
            if aside and (topic or (written and objects[0] != "file-name")):
                continue
            both = [texts.together(word, thing, fields=fields) for thing in objects for word in hard]
            both += [
                _pair(texts.find(word, fields), texts.find(thing, fields))
                for thing in objects
                for word in hard
                if word != "must"
            ]
            found = next((pair for pair in both if pair and _acts(texts, pair)), None)
            if found is None:
                continue
            decision = Decision("constraint", rail=does)
            decision.because("kind", "constraint", "a hard rule about what the agent itself may do", *found)
            decision.because("rail", does, "a constraint acts through a rail, before or after each call", found[1])
            if aside:
                decision.doubts.append("only the description states the rule")
            if does == "custom":
                decision.doubts.append("what comes in has no rail of its own; a person writes its body")
            return decision
    return None


def _pair(*found: Evidence | None) -> list[Evidence] | None:
    return [one for one in found if one] if all(found) else None


def _acts(texts: Texts, found: list[Evidence]) -> bool:
    """Say whether the rule is about the agent's own acts: a folder alone may be a folder of anything."""
    acts = any(texts.find(cue) for cue in ("file-act", "hook", "answer", "command"))
    return (
        acts or found[1].cue in ("file-name", "file-type", "answer", "speech", "model-input") or "/" in found[1].words
    )


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
    if norms := texts.find("norms", texts.stated) or texts.find("norms"):
        decision.skill = True
        decision.because("skill", "yes", "the gap brings rules, a style, examples or a template of its field", norms)


def _action(texts: Texts) -> Decision | None:
    """An action that the agent chooses to take."""
    knowledge = texts.find("knowledge", texts.stated)
    web, cli, sql, wrap, act = (texts.find(cue, texts.stated) for cue in ("web", "cli", "sql", "wrap", "act"))
    run, ask = texts.find("run", texts.stated), texts.find("ask")
    decision = Decision()
    if sql and (ask or wrap or run):
        decision.tools = ["query"]
        decision.because("tool", "query", "it asks a database", sql, ask or wrap or run)
    elif web and not (knowledge and not (act or wrap or run)):
        decision.tools = ["http"]
        decision.because("tool", "http", "it calls a web API", web)
    elif cli or (wrap and not knowledge):
        decision.tools = ["command"]
        decision.because("tool", "command", "it wraps a command line program", cli, wrap or run)
    elif act and not knowledge:
        decision.tools = ["custom"]
        decision.because("tool", "custom", "an action with inputs and a result", act)
        decision.doubts.append("the gap does not say how the action is done; a person writes its body")
    elif (produce := texts.find("produce", texts.stated)) and not knowledge:
        decision.tools = ["custom"]
        decision.because("tool", "custom", "it produces something, in a format that the gap does not name", produce)
        decision.doubts.append("the gap names no file format")
    else:
        return None
    if norms := texts.find("norms", texts.stated):
        decision.skill = True
        decision.because("skill", "yes", "the gap brings rules, a style, examples or a template of its field", norms)
    return decision
