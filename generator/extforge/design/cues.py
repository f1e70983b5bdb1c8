"""What the words of a gap point to: cues, in English and Chinese, each found as whole words.

A cue is a kind of evidence, not a decision: `extforge.design.deciding` weighs them.  Chinese has no word breaks, so a
Chinese cue counts wherever it stands, except in the longer words that are known to mean something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from extforge.design.gaps import Gap

__all__ = ["FIELDS", "LONGEST_TEXT", "Evidence", "Texts", "clauses_of", "matches"]

# Title and suggestion say what is wanted; the description says what is missing today.
FIELDS = ("feature", "suggested_approach", "gap_description")
LONGEST_TEXT = 2_000  # characters of one field that are looked at

# ASCII words are matched whole and in any case.
CUES: dict[str, str] = {
    # ----- nothing to run
    "no-code": r"no code|without (any )?code|nothing to (run|execute)|no execution|no tool (is )?needed|code[- ]free"
    r"|(无需|不需要|不用|无须)(写|编写|执行|运行)?(任何)?代码|(无需|不需要|不用)(执行|运行)",
    "knowledge": r"guid(e|es|ance|eline|elines)|best practices?|conventions?|etiquette|playbooks?|procedures?|rules|glossary"
    r"|terminology|checklists?|decision (framework|tree|matrix)|handbooks?|know[- ]?how|knowledge( base)?|tips|instructions"
    r"|(when|how|where|whether) to|choosing|vs\.?|norms|policy|policies|principles|methodology|method for|advice"
    r"|standards?|skills?|taxonomy|workflow|lessons|cheat ?sheets?|criteria|examples?|samples?"
    r"|规范|指南|指引|约定|规则|流程(?!图)|示例|样例|案例|最佳实践|知识|话术|口径|决策(框架|树|依据)|选型|术语|经验|手册"
    r"|沉淀|技巧|礼仪|原则|方法论|注意事项|何时|如何|怎么(?!办)|建议|常识|教程|准则|要领|心得|制度",
    # ----- what makes a skill beside a tool: rules of the field, a house style, examples, acceptance
    "norms": r"guid(e|es|ance|eline|elines)|brand( book| rules| style)?|branding|house style|style ?guides?|conventions?"
    r"|best practices?|(brand|layout|drafting|filling|writing|style) (rules|spec|specification)|rules|examples?|samples?"
    r"|acceptance criteria|clause library|checklists?|templates?|playbooks?|policy|policies|glossary|norms|handbooks?"
    r"|规范|指南|指引|品牌|模板|版式|口径|示例|样例|范例|案例|验收标准|流程(?!图)|原则|条款|约定|话术|最佳实践|手册|准则",
    "assets": r"templates?|brand(ing)?|letterheads?|logos?|fonts?|stationery|模板|品牌|抬头|徽标|字体|素材",
    # ----- hard rules
    "prohibit": r"(must|may|shall|can|should) ?(not|n't|never)|never|forbid(s|den)?|prohibit(s|ed)?|not (be )?allowed|disallow(ed)?"
    r"|den(y|ies|ied)|block(s|ed|ing)?|refus(e|es|ed)|reject(s|ed)?|no [a-z ]{1,20} (may|must|can|should)|ban(s|ned)?|prevent(s|ed|ing)?|confin(e|es|ed|ing)|restrict(s|ed|ing)?"
    r"|should(n't| not)( be able)?|limit(s|ed)? [a-z ]{1,40} to|guard(s|ed|ing)?|guardrails?|(black|block|deny) ?-?lists?"
    r"|防止|限制在|限制于|不应|禁止|不得|严禁|不允许|不准|不许|不可(?!用|编辑|见)|阻止|拒绝|拦截|不(能|要|可以|应该?)(再)?(?=出现|包含|提到|提及|透露|写|删|改|修改|覆盖|泄露|输出|执行|调用|访问|带有|含有)|黑名单|杜绝|避免出现",
    "must": r"must(?! be able| support| have)|should (assert|ensure|enforce|check)|(has|have) to|only (allowed|permitted|accept)|only|always|required|mandatory|enforced?"
    r"|必须|强制|一律|只能|只允许|仅允许|仅限|务必|统一为|统一(使用|采用|以)|都要|都应|一定要",
    "protect": r"redact(s|ed|ing|ion)?|mask(s|ed|ing)?|censor(s|ed)?|anonymi[sz]e[sd]?|scrub(s|bed)?|profanity|leak(s|ed|ing)?|expos(e|es|ed|ing)|pii|personal data|sensitive"
    r"|脱敏|打码|屏蔽|遮盖|遮蔽|掩码|匿名化|泄露|泄漏|敏感(词|信息|数据)",
    # ----- what a hard rule can be about
    "file-name": r"file ?names?|names? of (the |all |every )?files?|suffix(es)?|(file )?extensions?|end(s|ing)? (with|in)"
    r"|start(s|ing)? with|naming|only \.?\w{2,8}( or \.?\w{2,8})? files?"
    r"|文件名|后缀|扩展名|文件(的)?命名|命名(规则|方式)?(?=.*文件)|结尾|开头",
    "file-place": r"folders?|director(y|ies)|workspaces?|outside( of)?|paths?|sandbox|project files|filesystem|目录|文件夹|工作区|工作空间|路径|之外|以外",
    "file-act": r"writ(e|es|ing|ten)|sav(e|es|ed|ing)|delet(e|es|ed|ing)|overwrit(e|es|ten|ing)|remov(e|es|ed|ing)|mov(e|es|ing)"
    r"|modif(y|ies|ied|ying)|edit(s|ed|ing)?|download(s|ed|ing)?|upload(s|ed|ing)?|creat(e|es|ed|ing)"
    r"|写入|写到|放到|存到|输出到|写文件|写出|保存|删除|覆盖|修改|移动|落盘|存放|存到|下载|上传|改动",
    "command": r"shell|commands?|bash|curl|wget|rm|sudo|scripts?|tool calls?|命令|脚本|终端|工具调用|调用工具",
    "answer": r"answers?|repl(y|ies)|responses?|model outputs?|output of the model|outputs? to (the )?users?|final text|messages? to users?"
    r"|回答|回复|答复|应答|模型输出|输出(内容)?中|输出的内容|对话输出|对外输出|输出后",
    "results": r"(tool|search|query|retrieval|call) (results?|outputs?)|results? of (the )?(tools?|tool calls?|calls?)"
    r"|工具(的)?(返回)?结果|工具返回(的内容)?|返回(的)?结果|搜索结果|检索结果",
    "model-input": r"prompts?|user (inputs?|messages?)|before (they|it|anything) reach(es)?|outbound|用户输入|提问内容|发送给模型|发给模型",
    # ----- lifecycle
    "period": r"(?:every|each) (?:other |few |second |(?:\d+|n|two|three|four|five|six|seven|eight|nine|ten|twenty|several)(?:th|rd|nd)? )"
    r"(?:of )?(?:agent |conversation |react |model |tool |task )?(?:turns?|rounds?|steps?|iterations?|messages?|calls?|replies|exchanges)"
    r"|periodic(ally)? (?:self|check|remind|review|re-?check|injection|inject)[a-z-]*"
    r"|每(?:隔)?\s*(?:\d+|[nN]|[一二两三四五六七八九十]+|几|若干)\s*(?:个)?(?:轮|步|回合|次|条消息|迭代)"
    r"|周期性(?!报告|报表)|定期(?=自省|自检|检查|回顾|提醒|反思|纠偏)|定时提醒",
    "remind": r"remind(s|ed|er|ers|ing)?|nudg(e|es|ed)|re-?state[sd]?|提醒|提示模型|告警|预警|自省|纠偏|反思",
    "inject": r"inject(s|ed|ing)?(?! attack)|(in|into|to) (its|the|every|each) (system )?(prompt|context|conversation)s?|prompt (section|augmentation)"
    r"|注入(?!攻击|漏洞|风险)|系统提示(词)?(?!工程|规范|写法)",
    "audit": r"audit(s|ed|ing)?( log| trail| record)?s?|(activity|call|usage|access) (log|trail|history)s?|trail"
    r"|(log|record|track|trace)(s|ging|ing)? (\w+ ){0,2}(calls?|invocations?|actions?|toolcalls)|records? of (\w+ ){0,3}(calls?|invocations?|actions?)"
    r"|what (it|they) did|be logged|logged"
    r"|who (called|did|ran|used|invoked)|what the agent did|log(s|ging)? (of )?(every|all|each)|(record|log)s? (every|all|each)( tool)? calls?"
    r"|审计|留痕|记录(工具|模型|接口|所有)?调用|(调用|操作|访问)(日志|记录|轨迹)|记录每(次|个|一次)|谁(在什么时候)?(调用|使用|操作)",
    "budget": r"budgets?|quotas?|allowances?|usage|consum(e[sd]?|ption)|costs?|spend(ing)?|spent|token (limits?|counts?|caps?)|statistics"
    r"|limit(s|ed|ing)? (the )?(number of|tokens|calls|tool calls)|limit of \d+|max(imum)? (number of )?(tool )?calls|max ?tool ?calls|cap(s|ped)? (on|the|at)|count(s|ed|ing)?|rate limits?|accumulat(e[sd]?|ion)"
    r"|次数上限|调用上限|限制.{0,6}次数|预算|用量|额度|配额|消耗|费用|成本|花费|累计|计数|统计|次数|限额",
    "session": r"(tool|model|api|llm) (calls?|usage|invocations?)|toolcalls|calls?|invocations?|sessions?|conversations?|tokens?|agent|so far|turns?|会话|对话|工具|调用|token|模型|agent|智能体|轮",
    "read-back": r"report(s|ed|ing)?|quer(y|ies|ying|ied|yable)|look(s|ed)? up|statistics|summar(y|ies)|read how much|how much is left|on request|expose[sd]?|view|show"
    r"|报告|报表|查询|查看|统计|查阅|汇总|剩余",
    "hook": r"(before|after) (each|every|the|any|all|a)? ?(tool |model |llm )?(calls?|write|request|response)|(before|after) the (tool|model|agent)"
    r"|intercept(s|ed|ion)?|in the background|background (listener|counter|monitor)|listen(s|er)? (to|for)|monitor(s|ed|ing)?|on each turn"
    r"|before_\w+|after_\w+|(工具|模型)(调用|输出)(之)?[前后]|写入(之)?前|调用(之)?[前后]|后台(?!管理|系统|页面)|监听|监控(?!.{0,4}(画面|视频|摄像))|拦截|每次(工具|模型)?调用",
    "claim": r"claim(s|ed|ing)?|pretend(s|ed)?|says? (it|that)|false(ly)?|fabricat(e|es|ed|ing)|hallucinat(e|es|ed|ing)|made[- ]up"
    r"|reports? (that )?(it )?(writing|wrote|saving|saved|creating|created|having)|never (wrote|created|saved|written)|trusts?|unverified|谎报|声称|谎称|却当成成功|假装|说生成了|虚报|误以为",
    "verify": r"verif(y|ies|ied|ying)|check(s|ed|ing)?|compar(e|es|ed|ing)|confirm(s|ed)?|exist(s|ed)?|catch(es|ing)?|校验|检查|核对|核实|验证|真实存在|是否存在",
    "shrink": r"keep(s|ing)? only|only the first|at most [\d,]+ characters|cut(s|ting)?|trim(s|med|ming)?|shorten(s|ed)?|truncat(e[sd]?|ion)|compress(es|ed)?|summari[sz]e[sd]?|filter(s|ed|ing)?|strip(s|ped)?|clean(s|ed|ing)?|drop(s|ped)?"
    r"|截断|过滤|压缩|精简|清洗|裁剪|缩短|去重|摘要",
    # ----- actions
    "produce": r"generat(e|es|ed|ing|ion)|creat(e|es|ing|ion)|produc(e|es|ing|tion)|export(s|ing|able)?|render(s|ing)?|writ(e|es|ing)|build(s|ing)?"
    r"|draw(s|ing|n)?|mak(e|es|ing)|output(s|ting)?|draft(s|ing)?|compil(e|es|ing)|emit(s|ting)?|sav(e|es|ing)|prepar(e|es|ing)|fill(s|ing)?( in| out)?"
    r"|plot(s|ting)?|assembl(e|es|ing)|conver(t|ts|ting)|turn(s|ing)?|print(s|ing|able)?|deliver(s|ing)?|compos(e|es|ing)|layout|typeset(ting)?"
    r"|生成|导出|输出|制作|撰写|绘制|写出|画(?!像|面)|编制|起草|创建|另存为|保存为|转(成|换|为)|产出|填写|填报|出具|打印|排版|渲染|拟定|编写|做成|自动出|写(成|一份)|汇总成",
    "web": r"(http|https|rest|web|graphql|json|soap|open)?[ -]?apis?|https?|rest|webhooks?|endpoints?|graphql|requests?(?= to)|web ?services?"
    r"|接口|网络请求|webhook|开放平台|机器人推送",
    "cli": r"cli|command[- ]lines?|terminal commands?|shell commands?|executables?|subprocess|命令行|执行\s*[a-z][a-z0-9 _.-]{1,30}\s*命令|可执行程序",
    "wrap": r"wrap(s|ped|ping|per)?|as an? (callable )?(action|tool)|callable (action|tool)|封装",
    "run": r"run(s|ning)?|execut(e|es|ing)|invok(e|es|ing)|call(s|ing)? (?=the |a |an |our |out )|调用|执行|运行",
    "sql": r"sql|sqlite|select|postgres(ql)?|mysql|databases?|data ?warehouse|数据库|数仓|只读查询|查(询)?\S{0,6}库|sql查询",
    "ask": r"quer(y|ies|ying)|ask(s|ing)?|look(s|ing)? ?ups?|read[- ]only|parameteri[sz]ed|retriev(e|es|al)|fetch(es|ing)?|count(s)? per"
    r"|查询|检索|查找|只读|查",
    "act": r"send(s|ing)?|post(s|ing)?|notif(y|ies|ication|ications)|fetch(es|ing)?|look(s|ing)? ?ups?|lookup|search(es|ing)?|translat(e|es|ing|ion)|conver(t|ts|sion)"
    r"|calculat(e|es|ing|or|ion)|comput(e|es|ing)|schedul(e|es|ing)|book(s|ing)?|sync(s|ing|hroni[sz]e)?|extract(s|ing)?|pars(e|es|ing)|scrap(e|es|ing)|crawl(s|ing)?"
    r"|upload(s|ing)?|download(s|ing)?|transcrib(e|es|ing)|detect(s|ing)?|merg(e|es|ing)|split(s|ting)?|resiz(e|es|ing)|trimm?(s|ing)?|deploy(s|ing)?|lookups?"
    r"|发送|推送|通知|获取|抓取|爬取|查询|检索|搜索|翻译|换算|计算|预订|预约|同步|提取|解析|识别|上传|下载|转写|合并|拆分|部署|识别",
    # ----- which side of the work a format is on
    "lack": r"(only|just|merely) (answers?|gets?|gives?|returns?|prints?|replies|receives?|sees?|exports?|supports?|generates?|produces?)"
    r"|(can|could|will) only|instead of|rather than|not just|no longer"
    r"|只(返回|能给|给|有|会|输出|能看到|拿到)|仅(返回|有|给出)|而不是|而非|不再",
    "intake": r"from|reads?|reading|pars(e|es|ing)|imports?|imported|gets?|given|receiv(e|es|ed)|uploads?|uploaded|extract(s|ing)?( text)?( from)?|ingests?|conver(t|ts|ting)|turn(s|ing)?|transcrib(e|es)"
    r"|从|读取|解析|导入|上传|收到|根据|基于|把|将|提取|识别",
    "towards": r"into|to|as|in|onto|成|为|至|到",
    "dynamic": r"(current|today'?s|present) (date|time)|now|当前(日期|时间)|今天的日期|实时",
}
_SENTENCE = re.compile(r"[.!?](?=\s|$)|[。！？；;\n]")
_CLAUSE = re.compile(
    r"[.!?,:](?=\s|$)|[。！？；;，：\n]|\s(?:but|and then|so that)\s|并且|而且|且(?=文件|所有|必须|不)|但"
)


@cache
def _pattern(cue: str) -> re.Pattern[str]:
    """Compile a cue: its ASCII alternatives as whole words.  re.ASCII makes a Chinese character end a word."""
    parts = _alternatives(CUES[cue])
    latin = [part for part in parts if part.isascii()]
    chinese = [part for part in parts if not part.isascii()]
    joined = [rf"\b(?:{'|'.join(latin)})\b"] if latin else []
    return re.compile("|".join([*joined, *chinese]), re.IGNORECASE | re.ASCII)


def _alternatives(pattern: str) -> list[str]:
    """Split a pattern at its top-level bars."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(pattern):
        depth += (character in "([") - (character in ")]")
        if character == "|" and depth == 0:
            parts.append(pattern[start:index])
            start = index + 1
    return [*parts, pattern[start:]]


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


class Texts:
    """The texts of a gap, searched for cues."""

    def __init__(self, gap: Gap) -> None:
        self.fields = {name: " ".join(str(getattr(gap, name))[:LONGEST_TEXT].split()) for name in FIELDS}
        self.whole = "\n".join(text for text in self.fields.values() if text)
        # Title and suggestion say what is wanted; without a suggestion the description has to.
        self.stated = FIELDS[:2] if self.fields["suggested_approach"] else FIELDS

    def find(self, cue: str, fields: tuple[str, ...] = FIELDS) -> Evidence | None:
        """Return the first place of a cue."""
        for name in fields:
            if match := _pattern(cue).search(_ADDRESS.sub(r"\1", self.fields[name])):
                return Evidence(cue, match[0], name)
        return None

    def together(self, *cues: str, fields: tuple[str, ...] = FIELDS) -> list[Evidence] | None:
        """Return the cues when one field has them all."""
        for name in fields:
            found = [self.find(cue, (name,)) for cue in cues]
            if all(found):
                return [evidence for evidence in found if evidence]
        return None

    def sentences(self) -> list[tuple[str, str]]:
        """Return (field, sentence) for every sentence."""
        return [
            (name, part.strip()) for name, text in self.fields.items() for part in _SENTENCE.split(text) if part.strip()
        ]


def matches(cue: str, text: str) -> list[re.Match[str]]:
    """Return every place of a cue in a text."""
    return list(_pattern(cue).finditer(text))
