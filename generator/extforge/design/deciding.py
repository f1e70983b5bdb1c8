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

    def because(self, subject: str, value: str, rule: str, *words: Evidence | None) -> Decision:
        """Note a reason; return the decision itself."""
        self.reasons.append(Reason(subject, value, rule, tuple(word for word in words if word)))
        return self

    def doubt(self, why: str) -> Decision:
        """Note why it may be wrong; return the decision itself."""
        self.doubts.append(why)
        return self


def decide(gap: Gap) -> list[Decision]:
    """Return the designs of a gap: one, or a constraint and the capability that it was mixed with."""
    texts = Texts(gap)
    artifacts = artifacts_of(texts)
    written = any(a.strength == 3 for a in artifacts)
    named = written or any(a.strength == 2 and a.named for a in artifacts)
    first = _no_code(texts, written=written)
    for step in (_filtered_results, _record_keeper, _gate):
        first = first or step(texts, written=written)
    if first is None and (rule := _constraint(texts, written=named)):
        products = [a for a in artifacts if a.named and a.apart]
        if not products:
            return [rule]
        rule.because("designs", "two", "the gap mixes a rule with an ability", products[0].evidence)
        rest = _writer(texts, products)
        return [rule, rest.because("kind", "capability", "the rule of the same gap is a design of its own")]
    if first is None:
        wanted = [] if _is_topic(texts) else artifacts
        first = _rail(texts, written=named) or (_writer(texts, wanted) if wanted else None)
        first = first or _action(texts) or _hook(texts) or _ban(texts) or _skill(texts)
    if first.kind == "capability":
        first.because("kind", "capability", "no hard rule about what the agent itself may do")
    return [first]


# --------------------------------------------------------------------------- knowledge


def _no_code(texts: Texts, *, written: bool) -> Decision | None:
    none = texts.find("no-code")
    return Decision(skill=True).because("skill", "yes", "nothing has to run", none) if none and not written else None


def _is_topic(texts: Texts) -> bool:
    """Say whether the gap is knowledge about something, whatever files it mentions."""
    suggested = bool(texts.fields["suggested_approach"])
    fields = ("suggested_approach",) if suggested else ("feature",)
    doing = any(texts.find(cue, fields) for cue in ("produce", "web", "cli", "sql"))
    asked = texts.find("knowledge", fields) or texts.find("question", ("feature",))
    strong = any(a.strength == 3 and a.evidence.field in texts.stated for a in artifacts_of(texts))
    return bool(asked) and not doing and not strong


def _skill(texts: Texts) -> Decision:
    decision = Decision(skill=True)
    if knowledge := texts.find("knowledge"):
        decision.because("skill", "yes", "knowledge or guidance, and nothing to run", knowledge)
        aside = knowledge.field == "gap_description"
        return decision.doubt("only the description speaks of guidance") if aside else decision
    decision.because("skill", "yes", "no word says what should run; the lightest component")
    return decision.doubt("nothing in the gap says what it needs")


def _add_norms(
    decision: Decision, texts: Texts, fields: tuple[str, ...] = FIELDS, cues: tuple[str, ...] = ("norms",)
) -> Decision:
    if norms := next((found for cue in cues if (found := texts.find(cue, fields))), None):
        decision.skill = True
        decision.because("skill", "yes", "the gap brings rules, a style, examples or a template of its field", norms)
    return decision


# --------------------------------------------------------------------------- rails


def _filtered_results(texts: Texts, *, written: bool) -> Decision | None:
    """A rail that changes what a tool returned before the model reads it."""
    results = texts.find("results")
    hard = texts.find("protect") or texts.find("prohibit", texts.stated)
    change = hard or texts.find("shrink")
    if written or not (results and change):
        return None
    decision = Decision("constraint" if hard else "capability", rail="result_filter")
    if hard:
        decision.because("kind", "constraint", "what tools return is not for the model as it is", hard)
    return decision.because("rail", "result_filter", "it changes what a tool returned", change, results)


def _record_keeper(texts: Texts, *, written: bool) -> Decision | None:
    """A rail that counts or records while the agent works, and the tool that reads it back."""
    period, back = texts.find("period"), texts.find("read-back")
    reminds = texts.find("remind") or texts.find("inject")
    calls = texts.find("calls")  # of the agent, and no business process of that name
    for does in ("audit", "budget"):
        counted = None if period and reminds else texts.find(does)
        aside = counted and counted.field not in texts.stated and written and not texts.find("hook")
        if counted and calls and not aside:
            decision = Decision(rail=does, tools=["report"])
            decision.because("rail", does, "it records or counts while the agent works", counted, calls)
            return decision.because("tool", "report", "what a rail accumulates must be read back by a tool", back)
    if period is None:
        return None
    decision = Decision(rail="reminder")
    decision.because("rail", "reminder", "it acts every so many turns or calls", period, reminds)
    if back and back.field in texts.stated and texts.find("budget"):
        decision.tools = ["report"]
        decision.because("tool", "report", "what it counts is to be read back", back)
    return decision


def _gate(texts: Texts, *, written: bool) -> Decision | None:
    """A rail that holds claims of files against the files."""
    claim, verify = texts.find("claim"), texts.find("verify") or texts.find("untrue")
    if written or not (claim and verify and texts.find("file")):
        return None
    if texts.find("knowledge", texts.stated[:2]) and not texts.find("hook") and verify.field == "gap_description":
        return None  # guidance on how to check
    rule = "it checks whether the files that a tool claims are real"
    return Decision(rail="artifact_gate").because("rail", "artifact_gate", rule, claim, verify)


def _rail(texts: Texts, *, written: bool) -> Decision | None:
    """A rail that steps in without a rule about something that it names."""
    if written:
        return None
    if inject := texts.find("inject"):
        if moving := texts.together("inject", "dynamic"):
            decision = Decision(rail="custom").doubt("the text has to be computed by a person's code")
            return decision.because("rail", "custom", "the text to inject changes, so code must make it", *moving)
        decision = Decision(rail="prompt")
        decision.because("rail", "prompt", "it puts a text into the prompt while the agent works", inject)
        return _add_norms(decision, texts, cues=("norms", "documents"))
    if (remind := texts.find("remind", texts.stated)) and (session := texts.find("session")):
        rule = "it reminds while the agent works"
        return Decision(rail="reminder").because("rail", "reminder", rule, remind, session)
    protect = texts.find("protect", texts.stated) or (texts.find("shrink") and texts.find("protect"))
    if protect and not texts.find("knowledge", texts.stated):
        decision = Decision("constraint", rail="output_guard")
        decision.because("kind", "constraint", "something is to stay hidden", protect)
        decision.because("rail", "output_guard", "what is hidden must not be said", protect)
        return decision.doubt("the gap does not say where it is to be hidden; what the agent says is assumed")
    return None


def _hook(texts: Texts) -> Decision | None:
    if (hook := texts.find("hook", texts.stated)) is None:
        return None
    decision = Decision(rail="custom").doubt("what the rail should do has to be written by a person")
    rule = "it acts at a moment of the agent's work, in a way that has no name here"
    return decision.because("rail", "custom", rule, hook)


def _ban(texts: Texts) -> Decision | None:
    """A rule that forbids something for which there is no word here."""
    ban = texts.find("prohibit", texts.stated)
    if ban is None or texts.find("knowledge", texts.stated):
        return None
    decision = Decision("constraint", rail="guard").doubt("what is forbidden could not be told from the words")
    decision.because("kind", "constraint", "it forbids something", ban)
    return decision.because("rail", "guard", "a constraint acts through a rail, before each call", ban)


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
            cues = [(word, thing) for thing in objects for word in hard]
            pairs = [texts.together(*both, fields=fields) for both in cues]
            pairs += [texts.together(*both, fields=fields, anywhere=True) for both in cues if both[0] != "must"]
            found = next((pair for pair in pairs if pair and _acts(texts, pair[1])), None)
            if found is None or (aside and (topic or (written and objects[0] != "file-name"))):
                continue
            decision = Decision("constraint", rail=does)
            decision.because("kind", "constraint", "a hard rule about what the agent itself may do", *found)
            decision.because("rail", does, "a constraint acts through a rail, before or after each call", found[1])
            if aside:
                decision.doubt("only the description states the rule")
            if does == "custom":
                decision.doubt("what comes in has no rail of its own; a person writes its body")
            return decision
    return None


def _acts(texts: Texts, thing: Evidence) -> bool:
    """Say whether the rule is about the agent's own acts: a folder alone may be a folder of anything."""
    alone = thing.cue in ("file-name", "file-type", "answer", "speech", "model-input") or "/" in thing.words
    return alone or any(texts.find(cue) for cue in ("file-act", "hook", "answer", "command", "enforce"))


# --------------------------------------------------------------------------- tools


def _writer(texts: Texts, artifacts: list[Artifact]) -> Decision:
    decision = Decision(tools=[f"artifact:{artifact.format}" for artifact in artifacts])
    for artifact in artifacts:
        rule = "it writes a file" if artifact.strength == 3 else "a file of this format is named"
        decision.because("tool", f"artifact {artifact.format}", rule, artifact.evidence)
        if not artifact.named:
            decision.doubt(f"the format {artifact.format} is only suggested, by {artifact.evidence}")
        elif artifact.strength == 1:
            decision.doubt("only the description names the format")
    return _add_norms(decision, texts)


def _action(texts: Texts) -> Decision | None:
    """An action that the agent chooses to take."""
    cues = ("knowledge", "web", "cli", "wrap", "act", "run", "produce")
    knowledge, web, cli, wrap, act, run, produce = (texts.find(cue, texts.stated) for cue in cues)
    sql, ask = texts.find("sql"), texts.find("ask") or wrap or run
    act, produce = (None, None) if knowledge else (act, produce)
    doing = act or wrap or run or not knowledge
    unsaid = "the gap does not say how the action is done; a person writes its body"
    choices = (
        (sql and ask, "query", "it asks a database", (sql, ask), ""),
        (web and doing, "http", "it calls a web API", (web,), ""),
        (cli or (wrap and not knowledge), "command", "it wraps a command line program", (cli, wrap or run), ""),
        (act, "custom", "an action with inputs and a result", (act,), unsaid),
        (produce, "custom", "it produces something, in no format that is named", (produce,), "the gap names no file format"),
    )  # fmt: skip
    for chosen, does, rule, words, doubt in choices:
        if chosen:
            decision = Decision(tools=[does]).because("tool", does, rule, *words)
            decision.doubts += [doubt] if doubt else []
            return _add_norms(decision, texts, texts.stated)
    return None
