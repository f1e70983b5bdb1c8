"""What the words of a gap point to: cues, in English and Chinese, each found as whole words.

A cue is a kind of evidence, not a decision: `extforge.design.deciding` weighs them.  Chinese has no word breaks, so a
Chinese cue counts wherever it stands, except in the longer words that are known to mean something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from extforge.design.gaps import Gap

__all__ = ["FIELDS", "LONGEST_TEXT", "NUMBER", "Evidence", "Texts", "clauses_of", "matches", "sentences_of"]

# Title and suggestion say what is wanted; the description says what is missing today.
FIELDS = ("feature", "suggested_approach", "gap_description")
NUMBER = (
    r"(?:\d{1,6}|one|two|three|four|five|six|seven|eight|nine|ten|twenty|other|second|third|fourth|fifth|tenth"
    r"|[一二两三四五六七八九十]{1,2})"
)
LONGEST_TEXT = 2_000  # characters of one field that are looked at

# ASCII words are matched whole and in any case; `verb~` stands for all its forms: save, saves, saved, saving.
CUES: dict[str, str] = {
    # ----- nothing to run
    "no-code": r"no code|without (any )?code|nothing to (run|execute)|no execution|no tool (is )?needed|code[- ]free|(knowledge|guidance|advice) only"
    r"|(无需|不需要|不用|无须)(写|编写|执行|运行)?(任何)?代码|(无需|不需要|不用)(执行|运行)|纯知识",
    "knowledge": r"guide~|guidance|guidelines?|best practices?|conventions?|etiquette|playbooks?|runbooks?|procedures?|rules|glossary"
    r"|terminology|checklists?|decision (framework|tree|matrix|help)|handbooks?|know[- ]?how|knowledge( base)?|tips|instructions|pitfalls|pros and cons|trade-?offs?"
    r"|(when|how|where|whether|what|which [a-z]+) to|choosing|vs\.?|norms|policy|policies|principles|methodology|method for|advice"
    r"|standards?|skills?|taxonomy|workflow|lessons|cheat ?sheets?|criteria|(?<!for )examples?|samples?"
    r"|规范|指南|指引|约定|规则|流程(?!图)|步骤|示例|样例|案例|最佳实践|知识|话术|口径|决策(框架|树|依据)|选型|术语|经验|手册"
    r"|沉淀|技巧|礼仪|原则|方法论|注意事项|何时|如何|怎么(?!办)|什么时候|什么情况|建议|常识|教程|准则|要领|心得|制度|误区",
    "question": r"^(how (?!many|much)|when|why|where|which|what|whether|choosing) .*|何时.*|如何.*|怎么.*|什么(时候|情况).*|哪[种个].*|.*选型.*",
    # ----- what makes a skill beside a tool: rules of the field, a house style, examples, acceptance
    "norms": r"guide|guidance|guidelines?|brand( book| rules| style)?|branding|(house|writing) style|style ?guides?|conventions?"
    r"|best practices?|(brand|layout|drafting|filling|writing|style) (rules|spec|specification)|rules|(?<!for )examples?|samples?"
    r"|acceptance criteria|clause library|checklists?|templates?|playbooks?|policy|policies|glossary|norms|handbooks?"
    r"|规范|规定|指南|指引|品牌|模板|版式|口径|示例|样例|范例|案例|验收标准|流程(?!图)|原则|条款|约定|话术|最佳实践|手册|准则",
    "documents": r"runbooks?|procedures?|instructions|checklists?|流程(?!图)|步骤|知识",
    # ----- how hard a rule is
    "prohibit": r"(must|may|shall|should|can|could|would|do|does) ?(not|n't)(?! (have|need) to)|((must|may|shall|should) )?never|nobody|nothing|no [a-z ]{1,20} (may|must|can|should|ever)"
    r"|no ([a-z]+ )?(writes?|deletes?|deletions?|uploads?|downloads?|edits?|access|commands?|mention|[a-z]+ing)"
    r"|forbid~|forbidden|prohibit~|disallow~|deny~|block~|refuse~|reject~|ban~|prevent~|confine~|restrict~|restrictions?|intercept~|protect~|guard~|guardrails?"
    r"|(not|n't) (be )?(allowed|permitted)|read[- ]only access|(stay|keep)(s|ing)? ([a-z-]+ ){0,4}(out of|away|off)|turned away|limit~ ([a-z ]{1,40} to|(the )?(file )?(extensions?|types?))"
    r"|(black|block|deny|allow) ?-?lists?"
    r"|防止|不应|禁止|不得|严禁|不允许|不准|不许|不可(?!用|编辑|见)|阻止|阻断|拒绝|拦截|拦[下住]|不让|杜绝|避免出现|黑名单|退回|(访问)?限制(?!.{0,6}次)"
    r"|不(能|要|可以|应该?)(再)?(?=出现|包含|提到|提及|透露|写|删|改|修改|覆盖|泄露|输出|执行|调用|访问|带有|含有|承诺)",
    "only": r"(?<!-)only|(nothing|nowhere|no other|anything|anywhere|everything) (but|else|except|other)|elsewhere|exclusively|other (paths?|places?|folders?|directories|types?|names?)"
    r"|(restrict|limit|confine)[ds]? ([\w-]+ ){0,6}to|belongs? (in|under)|(stay|keep)(s|ing)? ([a-z-]+ ){0,4}(in|inside|within|under|below)"
    r"|只[能许准可在]|只允许|仅[限能]|仅允许|其[他它余]",
    "must": r"must(?! not| never|n't| be able| support| have)|shall(?! not| never)|should (assert|ensure|enforce|check)|ha(s|ve) to(?! deal)|always|required|mandatory|enforce~"
    r"|必须|须(?!知|求|要)|强制|一律(?!不|禁|拒|阻)|务必|统一为|统一(使用|采用|以)|都要|都应|一定要",
    "protect": r"redact~|redactions?|mask~|censor~|anonymi[sz]e[sd]?|scrub~|hide~|hidden|conceal~|strip~|black(ed)? out|profanity|leak~|expose~|pii|personal data|sensitive|secrets"
    r"|脱敏|打码|屏蔽|遮盖|遮蔽|掩码|匿名化|隐藏|泄露|泄漏|敏感(词|信息|数据)|违规词|违禁词",
    # ----- what a rule can be about
    "file-name": r"file ?names?|names? of (the |all |every )?files?|suffix(es)?|(file )?extensions?|end~ (with|in)|end of (the|its|their) names?"
    r"|start~ with|naming|文件名|后缀|扩展名|文件(的)?命名|命名(规则|方式)?(?=.*文件)|结尾|开头|打头",
    "file-type": r"(file )?extensions?|file ?types?|\.[a-z][a-z0-9]{1,4}(?![(/.\w])|后缀|扩展名|(文件)?类型",
    "file-place": r"folders?|director(y|ies)|workspaces?|outside( of)?|paths?|sandbox~|project files|filesystem|(\.{0,2}|~)/[a-z][\w./-]*|[\w.-]+/(?=[\s,.;]|$)"
    r"|(inside|within|under|below|outside|into|in|to) [\w.-]+/[\w./-]+|[\w/.-]+\s*[下里](面|(?=[写建存放保产生]))|目录|文件夹|工作区|工作空间|路径|之外|以外",
    "file-act": r"write~|written|save~|delete~|deletions?|overwrite~|overwritten|remove~|move~|modify~|edit~|change~|touch~|store~|download~|upload~|create~|access~|(write|edit|create|delete)_\w+|file (tools?|access|operations?)"
    r"|写入|写到|放到|存到|输出到|写文件|写出|建文件|保存|删除|覆盖|修改|移动|落盘|存放|落[在到]|下载|上传|改动|访问",
    "file": r"files?|artifacts?|文件|产物",
    "command": r"shell|commands?|bash|curl|wget|rm|sudo|scripts?|tool calls?|命令|脚本|终端|工具调用|调用工具",
    "answer": r"answers?|repl(y|ies)|responses?|chat|model outputs?|output of the model|outputs? to (the )?users?|final text|messages? to users?"
    r"|(assistant|agent|bot|model|it) (says|writes|answers|replies)"
    r"|回答|回复|答复|应答|模型输出|输出(内容)?中|输出的内容|输出的时候|对话输出|对外输出|输出后|对(客户|用户)说",
    "speech": r"say~|tell~|mention~|promise~|reveal~|disclose~|divulge~|quote~|recommend~|discuss~|swear~|comment~ on|give ([a-z]+ )?advice"
    r"|透露|提到|提及|承诺|披露|泄露|告诉|告知|谈论|评论|说出",
    "results": r"(tools?|search|query|retrieval|call|commands?|shell)('s)? (results?|outputs?|answers?|responses?)|results? of (the )?(tools?|tool calls?|calls?)"
    r"|(what|everything|anything) (the |a |any |our )?(\w+ )?tools? ([a-z]+ )?(returns?|gives? back|brings? back|outputs?)"
    r"|(before|until|reach(es|ing)?|sent to|sending to|enters?|exposed (in)?to) (they |it |that )?(reach(es)? )?(the |an? )?(model|llms?|ai|provider|context|chat history)( sees| reads)?"
    r"|工具(的)?(返回)?结果|工具返回(的内容)?|返回(的)?结果|(搜索|检索|查询|数据库|接口)(返回|结果)|(再|先)?[给让]模型(?=[看读]|$|[，。,. ])",
    "model-input": r"prompts?|user (inputs?|messages?)|outbound|用户输入|提问内容|发送给模型|发给模型",
    # ----- lifecycle
    "period": rf"(every|each) {NUMBER}(th|rd|nd)? ([a-z]+ ){{0,2}}?(turns?|rounds?|steps?|iterations?|messages?|replies|exchanges|(tool |model )?calls?)"
    r"|periodic(ally)? (self|check|remind~|review|re-?check|injection|inject~)[a-z-]*|every (few|several|n) ([a-z]+ )?(turns?|rounds?|steps?|messages?|calls?)"
    rf"|每(隔|过|满|调用)?\s*{NUMBER}\s*个?(次工具|次模型|次|轮|步|回合|条消息|迭代)"
    r"|周期性(?!报告|报表)|每(隔)?(几|若干|[nN])(轮|步|回合|次)|定期(?=自省|自检|检查|回顾|提醒|反思|纠偏)|定时提醒",
    "remind": r"remind~|reminders?|nudge~|re-?state[sd]?|提醒|提示(?!词)|告警|预警|自省|自查|纠偏|反思",
    "inject": r"inject~(?! attack)|(in|into|to|of) (its|the|every|each) (system )?(prompt|context|conversation)s?|(in|into|to) ((the|a) )?system (prompt|context|message)s?|prompt (section|augmentation)"
    r"|注入(?!攻击|漏洞|风险)|(系统)?提示词(?!工程|规范|写法)",
    "audit": r"audit~( log| trail| record)?s?|(activity|call|usage|access) (log|trail|history)s?|(audit |paper )?trail|be logged|logged"
    r"|(log|record|track|trace|persist)(s|ging|ing|ed)? ([a-z]+ ){0,3}((tool )?calls?|invocations?|executions?|actions?|toolcalls|activity)|call~ ([a-z]+ )?(log|record|detail)s"
    r"|records? of ([a-z]+ ){0,3}(calls?|invocations?|actions?|who [a-z]+ which)|log(s|ging)? (of )?(every|all|each)|(record|log)s? (every|all|each)"
    r"|who (called|did|ran|used|invoked)|(what|which tools?) (it|they|the agent) (did|does|ran|used|called)"
    r"|审计|留痕|记录(工具|模型|接口|所有)?调用|(调用|操作|访问)(日志|记录|轨迹)|记(录)?(下)?每(次|个|一次|一步)|谁(在什么时候)?(调用|使用|操作)",
    "budget": r"budget~|quotas?|allowances?|usage|consume[sd]?|consumption|costs?|spend~|spent|statistics|count~|caps?|capped|rate limits?|accumulat(e[sd]?|ion)"
    r"|(limit|cap|bound|max)[a-z]* ([a-z0-9-]+ ){0,5}?(of \d+|calls?|tokens|turns|iterations?|rounds|steps|cycles|requests)|max_?(tool_?calls|iterations|turns)"
    r"|(tool|call|token|turn|iteration)s? (limits?|counts?|caps?)|(at most|no more than|up to|more than|after) \d[\d,]* ([a-z]+ ){0,2}(calls|tokens|requests|turns|iterations|seconds|minutes)"
    r"|次数上限|调用上限|限制.{0,6}次数|预算|用量|额度|配额|消耗|费用|成本|花费|累计|计数|统计|次数|限额|余量|(最多|至多|不?超过|上限)\s*\d+\s*次",
    "limit": r"at most|no more than|up to|max(imum|imal)?( of)?|limit~|cap(s|ped)?|more than|over|above|beyond|exceed~|budgets?|quotas?|allowances?|may (use|make|have)|after"
    r"|超过|超出|最多|至多|上限|达到|满|限|预算|额度|配额",
    "calls": r"(tool|model|api|llm|function)[- ]?(calls?|calling|usage|invocations?|executions?|budgets?)|toolcalls|tools? (is|are|was|were) (used|called)|which tools?"
    r"|sessions?|conversations?|token (usage|budget|limit|count|cost)|tokens|agent('s)? (did|does|actions?|activity)|actions? of the agent|(all|every|each|which|what) ([a-z]+ ){0,3}actions?|actions? (that|taken|performed)|who did"
    r"|工具调用|调用(过|了)?(什么|哪些)?工具|记录.{0,4}调用|智能体调用|会话|对话|调用次数|次工具|模型调用|每次调用|用了哪些工具|(智能体|agent) ?(的)?\S{0,3}(行为|操作|步)|[\w-]*token",
    "session": r"(tool|model) (calls?|usage)|sessions?|conversations?|tokens?|agents?|so far|turns?|iterations?|rounds|loops?|messages?|会话|对话|工具|调用|token|模型|智能体|轮",
    "read-back": r"report~|query~|queryable|look(s|ed)? up|statistics|summar(y|ies)|read how much|how much is left|on request|expose[sd]?|view|show~"
    r"|报告|报表|查询|查看|统计|查阅|汇总|剩余",
    "hook": r"(before|after) (each|every|the|any|all|a)? ?(tool |model |llm )?(calls?|write|request|response)|(before|after) the (tool|model|agent)"
    r"|intercept~|interception|in the background|background (listener|counter|monitor)|listen(s|er)? (to|for)|monitor~|on each turn"
    r"|before_\w+|after_\w+|(工具|模型)(调用|输出)(之)?[前后]|写入(之)?前|调用(之)?[前后]|后台(?!管理|系统|页面)|监听|监控(?!.{0,4}(画面|视频|摄像))|拦截|每次(工具|模型)?调用",
    "enforce": r"refuse~|reject~|deny~|turned away|拒绝|退回|阻断|不让",
    "claim": r"claim~|pretend~|report(s|ed) (that|as|success)|wrongly reported|sa(ys?|id) (it|that|the)|false(ly)?|fabricate~|hallucinate~|made[- ]up"
    r"|reports? (that )?(it )?(writing|wrote|saving|saved|creating|created|having)|never (wrote|created|saved|written)|trusts?|unverified|谎报|声称|谎称|却当成成功|假装|说生成了|虚报|误以为",
    "untrue": r"never (wrote|created|saved|written)|false(ly)?|wrongly|fabricate~|谎报|谎称|虚报|假装",
    "verify": r"verify~|check~|compare~|confirm~|exist~|catch~|校验|检查|核对|核实|验证|真实存在|是否存在",
    "shrink": r"keep(s|ing)? only|only the first|at most [\d,]+ characters|cut~|trim~|shorten~|truncate~|truncation|compress~|summari[sz]e[sd]?|filter~|clean~|drop~"
    r"|截断|过滤|压缩|精简|清洗|裁剪|缩短|去重|去掉|摘要",
    # ----- actions
    "produce": r"generate~|generation|create~|creation|produce~|production|export~|exportable|render~|write~|build~|dump~|list(s|ing)?"
    r"|draw~|drawn|mak(e|es|ing)|output~|draft~|compile~|emit~|save~|prepare~|fill~( in| out)?"
    r"|plot~|assemble~|convert~|turn~|print~|printable|deliver~|giv(e|es|ing) (me|us)|compose~|layout|typeset(ting)?"
    r"|生成|导出|输出|制作|撰写|绘制|写出|画(?!像|面)|编制|起草|创建|另存为|保存为|存成|写成|整理成|转(成|换|为)|产出|填写|填报|出具|打印|排版|渲染|拟定|编写|做成|自动出|写一份|汇总成",
    "web": r"(http|https|rest|web|graphql|json|soap|open)?[ -]?apis?|https?|rest|webhooks?|endpoints?|graphql|requests?(?= to (the |an? )?(server|service|host|site))|web ?services?"
    r"|接口|网络请求|webhook|开放平台|机器人推送",
    "cli": r"(run|execute|call|invoke|wrap) `[\w -]+`|cli|command[- ]lines?|terminal commands?|shell commands?|executables?|subprocess|[a-z][\w-]+ command|命令行|执行\s*[a-z][a-z0-9 _.-]{1,30}\s*命令|[\w-]+\s*命令|可执行程序",
    "wrap": r"wrap~|wrappers?|as an? (callable )?(action|tool)|callable (action|tool)|封装",
    "run": r"run~|execute~|invoke~|call(s|ing)? (?=the |a |an |our |out )|shell~ out|调用|执行|运行",
    "sql": r"sql|sqlite|select|postgres(ql)?|mysql|databases?|data ?warehouse|[\w-]+\.(db|sqlite3?)|数据库|数仓|只读查询|查(询)?\S{0,6}库|sql查询",
    "ask": r"query~|ask~|questions?|look(s|ing)? ?ups?|read[- ]only|parameteri[sz]ed|retrieve~|retrieval|fetch~|count(s)? per"
    r"|查询|检索|查找|只读|查",
    "act": r"retrieve~|read~|scan~|send~|post~|notify~|notifications?|fetch~|look(s|ing)? ?ups?|lookups?|search~|translate~|translation|convert~|conversion|track~"
    r"|calculate~|calculat(or|ion)|compute~|schedule~|book(s|ing)?|sync~|synchroni[sz]e|extract~|parse~|scrape~|crawl~"
    r"|upload~|download~|transcribe~|detect~|merge~|split~|resize~|trim~|deploy~|integrat(e|es|ion)"
    r"|发送|推送|通知|获取|抓取|爬取|查询|检索|搜索|翻译|换算|计算|预订|预约|同步|提取|解析|识别|上传|下载|转写|合并|拆分|部署",
    # ----- which side of the work a format is on
    "lack": r"(similar to|than)( in)?|(only|just|merely) (answers?|gets?|gives?|returns?|prints?|replies|receives?|sees?|exports?|supports?|generates?|produces?)"
    r"|(can|could|will) only|instead of|rather than|besides|apart from|in addition to|not just|no longer"
    r"|只(返回|能给|给|有|会|输出|能看到|拿到)|仅(返回|有|给出)|而不是|而非|不再",
    "today": r"currently|at the moment|at present|so far|today|目前|现在|现状",
    "intake": r"from|read~|parse~|import~|given|receive~|upload~|extract~( text)?( from)?|ingest~|convert~|turn~|transcribe~"
    r"|从|读取|解析|导入|上传|收到|根据|基于|把|将|提取|识别",
    "dynamic": r"(current|today'?s|present) (date|time)|now|当前(日期|时间)|今天的日期|实时",
}
_SENTENCE = re.compile(r"[.!?](?=\s|$)|[。！？；;\n]")
_CLAUSE = re.compile(
    r"[.!?,:](?=\s|$)|[。！？；;，：\n]|\s(?:but|and then|so that)\s|并且|而且|且(?=文件|所有|必须|不)|但"
)


@cache
def _pattern(cue: str) -> re.Pattern[str]:
    """Compile a cue: what begins or ends in ASCII is a whole word there; a Chinese character ends a word."""
    words = rf"(?:(?<!\w)|(?=[^\x00-\x7f]))(?:{_VERB.sub(_forms, CUES[cue])})(?:(?!\w)|(?<=[^\x00-\x7f]))"
    return re.compile(words, re.IGNORECASE | re.ASCII)


_VERB = re.compile(r"([a-z]+)~")


def _forms(verb: re.Match[str]) -> str:
    """Return the regular forms of an English verb: `trim~` is trim, trims, trimmed, trimming."""
    stem = verb[1]
    if stem.endswith("e"):
        return rf"{stem[:-1]}(?:e|es|ed|ing)"
    if re.search(r"[^aeiou]y$", stem):
        return rf"{stem[:-1]}(?:y|ies|ied|ying)"
    return rf"{stem}(?:s|es|{stem[-1]}?(?:ed|ing))?"


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


def clauses_of(text: str) -> list[str]:
    """Return the clauses of a text."""
    return [part.strip() for part in _CLAUSE.split(text) if part and part.strip()]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A cue that was found: the words, and the field they stand in."""

    cue: str
    words: str
    field: str

    def __str__(self) -> str:
        return f"{self.words!r} in {self.field}"


_ADDRESS = re.compile(r"\b(https?)://[^\s，。；,;\"'<>）)]+")  # its words are names, not what the gap says


_LACK = re.compile("(can|could|would|do|does) ?(not|n't)|never|nobody|nothing|no [a-z]+ing|退回", re.IGNORECASE)
_PEOPLE = re.compile(r"\b(i|we|you|they|users?|people|staff)( still)? $", re.IGNORECASE)
_COMMAND = re.compile(r"(^|[.!?;。；]\s*)$")


def _is_lack(name: str, text: str, match: re.Match[str]) -> bool:
    """Say whether a negation states what is missing today: in a description, or of people; `Never do` is a rule."""
    if not _LACK.fullmatch(match[0]):
        return False
    before = text[: match.start()]
    order = match[0].lower().startswith(("never", "do")) and _COMMAND.search(before)
    cannot = match[0].lower().startswith(("can", "could"))
    return not order and (name == "gap_description" or bool(_PEOPLE.search(before) if before else cannot))


class Texts:
    """The texts of a gap, searched for cues."""

    def __init__(self, gap: Gap) -> None:
        self.fields = {name: " ".join(str(getattr(gap, name))[:LONGEST_TEXT].split()) for name in FIELDS}
        # Title and suggestion say what is wanted; without a suggestion the description has to.
        self.stated = FIELDS[:2] if self.fields["suggested_approach"] else FIELDS

    def find(self, cue: str, fields: tuple[str, ...] = FIELDS) -> Evidence | None:
        """Return the first place of a cue."""
        for name in fields:
            text = _ADDRESS.sub(r"\1", self.fields[name])
            for match in _pattern(cue).finditer(text):
                if cue != "prohibit" or not _is_lack(name, text, match):
                    return Evidence(cue, match[0], name)
        return None

    def together(self, *cues: str, fields: tuple[str, ...] = FIELDS, anywhere: bool = False) -> list[Evidence] | None:
        """Return the cues when one field has them all; `anywhere`: when these fields have them between them."""
        for names in [fields] if anywhere else [(name,) for name in fields]:
            found = [self.find(cue, names) for cue in cues]
            if all(found):
                return [evidence for evidence in found if evidence]
        return None

    def sentences(self) -> list[tuple[str, str]]:
        """Return (field, sentence) for every sentence."""
        return [(name, part) for name, text in self.fields.items() for part in sentences_of(text)]


@lru_cache(512)
def matches(cue: str, text: str) -> tuple[re.Match[str], ...]:
    """Return every place of a cue in a text."""
    return tuple(_pattern(cue).finditer(text))
