"""How the page looks, and the two things that it does: sort tables, unfold what is folded before it is printed."""

CSS = """
:root { color-scheme: light dark;
  --paper: #ffffff; --ink: #1b1d20; --soft: #5b6067; --line: #d5d8dc; --band: #f4f5f7; --link: #1f5fa8;
  --grid: #dcdddf; --shade: #ebecee; --measured: #1f6fb4; --predicted: #d97400; --residual: #7d7f83; --unseen: #c2417f;
  --good: #1d7a46; --doubt: #9a6500; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #15171a; --ink: #e4e6e9; --soft: #a2a8b0; --line: #363a40; --band: #1e2125; --link: #7fb4f0;
  --grid: #2e3238; --shade: #24282d; --measured: #58a6e8; --predicted: #f2a33c; --residual: #9aa0a8; --unseen: #ea7fb1;
  --good: #5fcf92; --doubt: #f0bd54; --bad: #ff8a80; } }
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100% }
body { margin: 0 auto; max-width: 76rem; padding: 1rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }
h1 { font-size: 1.55rem; line-height: 1.25; margin: .6rem 0 .2rem; overflow-wrap: anywhere }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .5rem; padding-bottom: .2rem; border-bottom: 1px solid var(--line) }
h3 { font-size: 1rem; margin: 1.5rem 0 .3rem; overflow-wrap: anywhere }
p, ul { max-width: 60rem; margin: .5rem 0 }
a { color: var(--link) }
nav { font-size: .9rem; margin: .6rem 0; display: flex; flex-wrap: wrap; gap: .1rem 1rem }
.soft, figcaption, dd { color: var(--soft) }
.verdict { border: 1px solid var(--line); border-left: .45rem solid var(--tone); background: var(--band);
  border-radius: .3rem; padding: .7rem 1rem; margin: 1rem 0 }
.verdict strong.status { color: var(--tone); font-size: 1.1rem }
.trust { --tone: var(--good) } .doubts { --tone: var(--doubt) } .distrust { --tone: var(--bad) }
.verdict li { margin: .35rem 0 } .fatal { color: var(--bad); font-weight: 600 }
.keys { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .6rem; margin: 1rem 0 }
.keys div { background: var(--band); border-radius: .3rem; padding: .5rem .75rem }
.keys b { display: block; font-size: 1.25rem; font-weight: 600 } .keys span { font-size: .85rem; color: var(--soft) }
.wide { overflow-x: auto; margin: .6rem 0 }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
th { background: var(--band); vertical-align: bottom; white-space: nowrap; font-weight: 600 }
td.n, th.n { text-align: right; white-space: nowrap } td.tight { white-space: nowrap } tr.all td { font-weight: 600 }
td.name { min-width: 14rem; overflow-wrap: anywhere } td.given { color: var(--soft) }
td.bad, .bad { color: var(--bad) } td.good { color: var(--good) } td.doubt { color: var(--doubt) }
th button { all: unset; cursor: pointer } th button:focus-visible { outline: 2px solid var(--link) }
th[aria-sort=ascending] button::after { content: " \\2191" }
th[aria-sort=descending] button::after { content: " \\2193" }
abbr[title] { text-decoration: underline dotted; text-underline-offset: .2em; cursor: help }
details { margin: .5rem 0 } summary { cursor: pointer; color: var(--link); font-size: .9rem }
td details { margin: 0 } td summary { color: inherit; font-size: inherit }
dl { margin: .4rem 0 .4rem; font-size: .9rem; max-width: 60rem } dt { font-weight: 600; margin-top: .45rem }
dd { margin: 0 }
pre, code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .85em }
pre { background: var(--band); border-radius: .3rem; padding: .6rem .8rem; white-space: pre-wrap;
  overflow-wrap: anywhere }
@media (max-width: 48rem) { table:not(#base-parameters) :is(td, th):first-child { position: sticky; left: 0 }
  td:first-child { background: var(--paper) } td.name { min-width: 9rem } }
.sum { overflow-wrap: anywhere }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: .4rem 1.5rem }
figure { margin: .3rem 0; break-inside: avoid } figcaption { font-size: .8rem; font-weight: 600 }
figure.tall { max-width: 46rem }
svg, img { width: 100%; height: auto; display: block }
svg * { stroke-linejoin: round; stroke-linecap: butt }
footer { margin-top: 3rem; font-size: .85rem; color: var(--soft) }
@media (max-width: 30rem) { body { padding: .6rem .7rem 3rem; font-size: 15px } th, td { padding: .25rem .4rem } }
@media print { :root { --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --band: #f3f3f3; --link: #000;
    --grid: #ddd; --shade: #eee; --measured: #1f6fb4; --predicted: #d97400; --residual: #777; --unseen: #c2417f;
    --good: #1d7a46; --doubt: #9a6500; --bad: #b3261e }
  body { max-width: none; padding: 0; font-size: 10pt; print-color-adjust: exact } nav { display: none }
  .wide { overflow: visible } table { font-size: 7.5pt } th, td { padding: .1rem .3rem } td.name { min-width: 0 }
  h2, h3 { break-after: avoid } tr { break-inside: avoid } .pictures { grid-template-columns: 1fr 1fr }
  summary { color: inherit } }
"""

SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, k) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    const key = row => {
      const cell = row.cells[k], value = cell.dataset.value;
      return value === undefined ? cell.textContent.trim() : value === "" ? null : Number(value);
    };
    const rows = [...body.rows].map(row => [key(row), row]);
    rows.sort(([a], [b]) => a === null ? (b === null ? 0 : 1) : b === null ? -1 :
      (down ? -1 : 1) * (typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true })));
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows.map(([, row]) => row));
  }));
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true }));
"""
