"""Reports as one self-contained web page: no request leaves it, everything in it is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from extforge_verifiers.findings import Finding, Report, Severity, Verdict
from extforge_verifiers.reports.json import overall
from extforge_verifiers.reports.text import PARTIAL, shown_facts, summary
from extforge_verifiers.reports.thumbnails import Thumbnail, make_thumbnails
from extforge_verifiers.reports.webpage import shown, web_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Describe = Callable[[str], str] | None

__all__ = ["render"]

_STYLE = """
:root{--pass:#116c3a;--fail:#b3261e;--undetermined:#8a5a00}
@media(prefers-color-scheme:dark){:root{--pass:#6fd699;--fail:#ff9a90;--undetermined:#f2c46d}}
main,header{max-width:68rem;margin:0 auto;padding:1rem}
h2{font-size:1.05rem;margin:0;overflow-wrap:anywhere}
a.skip{position:absolute;left:-99rem}a.skip:focus{left:1rem;top:1rem;background:var(--paper);padding:.5rem;z-index:1}
form{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:center;margin:1rem 0}
fieldset{border:0;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:.25rem 1rem}legend{float:left;padding:.35rem 0}
input[type=search]{font:inherit;padding:.35rem .6rem;border:1px solid var(--soft);border-radius:.4rem;background:var(--paper);
color:inherit;min-width:14rem;flex:1 1 14rem}
label{padding:.35rem 0;cursor:pointer}
article{background:var(--paper);border:1px solid var(--line);border-left:.35rem solid var(--tone);border-radius:.5rem;
padding:1rem;margin:0 0 1rem;display:grid;grid-template-columns:10rem 1fr;gap:1rem}
article.plain{grid-template-columns:1fr}
.pass{--tone:var(--pass)}.fail{--tone:var(--fail)}.undetermined{--tone:var(--undetermined)}
.verdict{color:var(--tone);font-weight:700;text-transform:uppercase;font-size:.85rem;letter-spacing:.04em}
.meta{color:var(--soft);font-size:.9rem;margin:.15rem 0 .5rem;overflow-wrap:anywhere}
figure{margin:0}figure img{max-width:100%;max-height:10rem;width:auto;height:auto;border:1px solid var(--line);border-radius:.25rem;background:#fff;display:block}
.none{display:grid;place-items:center;text-align:center;min-height:7rem;border:1px dashed var(--line);border-radius:.25rem;
color:var(--soft);font-size:.85rem;padding:.5rem}
ul{margin:.5rem 0 0;padding:0;list-style:none}li{padding:.4rem 0;border-top:1px solid var(--line);overflow-wrap:anywhere}
.severity{font-weight:600}.error{color:var(--fail)}.warning{color:var(--undetermined)}.info{color:var(--soft)}
code{font:.875em ui-monospace,"Noto Sans Mono",monospace;background:var(--back);padding:.1em .3em;border-radius:.2em}
.fix,.about{color:var(--soft);font-size:.9rem;margin:.15rem 0 0}
table{border-collapse:collapse;width:100%;font-size:.9rem;margin:.5rem 0}th,td{text-align:left;padding:.3rem .5rem;
border-top:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
[hidden]{display:none!important}
@media(max-width:40rem){article{grid-template-columns:1fr}figure{max-width:14rem}main,header{padding:.75rem}}
@media print{form,a.skip{display:none}body{background:#fff}article{break-inside:avoid}}
""".strip()
_SCRIPT = """
(function(){
var form=document.getElementById('filter'),none=document.getElementById('none');
if(!form)return;
form.hidden=false;
function apply(){
var words=form.elements.words.value.toLowerCase(),verdict=form.elements.verdict.value,shown=0;
document.querySelectorAll('article').forEach(function(card){
var fits=(!verdict||card.classList.contains(verdict))&&card.textContent.toLowerCase().indexOf(words)>=0;
card.hidden=!fits;if(fits)shown++;});
none.hidden=shown>0;}
var wanted=document.querySelector('input[name=verdict][value="'+location.hash.slice(1).replace(/[^a-z]/g,'')+'"]');
if(wanted&&wanted.value){wanted.checked=true;apply();}
form.addEventListener('input',apply);
form.addEventListener('submit',function(event){event.preventDefault();});
})();
""".strip()


def render(
    reports: Sequence[Report], *, describe: Describe = None, partial: bool = False
) -> str:
    """Return a page with a summary, a card per subject with its picture, and every finding with its evidence."""
    pictures = make_thumbnails(reports)
    cards = "\n".join(_card(r, pictures.get(r.path), describe) for r in reports)
    verdict = overall(reports, partial=partial).value
    counts = summary(reports) or "nothing was verified"
    if partial:
        counts += f"; {PARTIAL}"
    body = f"""<a class="skip" href="#reports">Skip to the reports</a>
<header>
<h1>extforge verify</h1>
<p class="{verdict}"><span class="verdict">{verdict}</span> {escape(counts)}</p>
<form id="filter" hidden>
<label for="words">Filter</label>
<input type="search" id="words" name="words" autocomplete="off" placeholder="path, message or code">
<fieldset><legend>Show</legend>{_choices()}</fieldset>
</form>
</header>
<main id="reports" tabindex="-1">
<p id="none" role="status" hidden>Nothing fits the filter.</p>
{cards}
</main>"""
    title = f"extforge verify: {verdict}"
    return web_page(title, body, style=_STYLE, script=_SCRIPT)


def _choices() -> str:
    choices = [("", "all"), *((verdict.value, verdict.value) for verdict in Verdict)]
    return "".join(
        f'<label><input type="radio" name="verdict" value="{value}"{"" if value else " checked"}> {words}</label>'
        for value, words in choices
    )


def _card(report: Report, picture: Thumbnail | None, describe: Describe) -> str:
    verdict = report.verdict.value
    plain = "" if picture else " plain"
    facts = shown_facts(report)
    meta = shown(report.kind + (f" · {facts}" if facts else ""))
    return f"""<article class="{verdict}{plain}">
{_figure(picture)}<div>
<h2>{shown(report.path)}</h2>
<p class="meta"><span class="verdict">{verdict}</span> {meta}</p>
{_claims(report)}{_findings(report, describe)}</div>
</article>"""


def _figure(picture: Thumbnail | None) -> str:
    if picture is None:
        return ""
    source, words = picture
    if not source:
        return f'<figure><div class="none">{shown(words)}</div></figure>\n'
    return (
        f'<figure><img src="{source}" alt="{shown(words)}" loading="lazy"></figure>\n'
    )


def _claims(report: Report) -> str:
    claims = report.facts.get("claims")
    if not claims:
        return ""
    rows = "".join(
        f'<tr class="{escape(claim["verdict"])}"><td class="verdict">{escape(claim["verdict"])}</td>'
        f"<td>{shown(claim['path'])}</td><td>{shown(claim['by'])}</td><td>{shown(claim['where'])}</td></tr>"
        for claim in claims
    )
    head = "<tr><th>verdict</th><th>file</th><th>claimed by</th><th>where</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>\n"


def _findings(report: Report, describe: Describe) -> str:
    items = [_finding(finding, describe) for finding in report.findings]
    items += [f"<li>{words}</li>" for words in _unchecked(report)]
    return f"<ul>{''.join(items)}</ul>\n" if items else ""


def _finding(finding: Finding, describe: Describe) -> str:
    severity = finding.severity.value
    place = str(finding.where)
    parts = [
        f'<span class="severity {severity}">{severity}</span> ',
        f"<code>{shown(place)}</code> " if place else "",
        f"{shown(finding.message)} <code>{escape(finding.code)}</code>",
        f'<p class="fix">Fix: {shown(finding.fix)}</p>' if finding.fix else "",
    ]
    if describe is not None and finding.severity is not Severity.INFO:
        parts.append(f'<p class="about">{shown(describe(finding.code))}</p>')
    return f"<li>{''.join(parts)}</li>"


def _unchecked(report: Report) -> Iterator[str]:
    if report.verdict is Verdict.FAIL:
        return
    if report.open_question:
        yield f'<span class="severity warning">undetermined</span> {shown(report.open_question)}'
    for name, reason in report.skipped.items():
        yield f'<span class="severity info">not checked</span> {shown(name)}: {shown(reason)}'
