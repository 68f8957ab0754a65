"""Style sheets of the report: light and dark, narrow, wide and in print."""

CSS = """
:root{--ink:#1b2430;--soft:#56616e;--paper:#fff;--line:#d9dfe6;--accent:37,99,170;--other:190,84,40;--deep:.7}
@media (prefers-color-scheme:dark){:root{--ink:#e7ebf0;--soft:#a3aeba;--paper:#14181d;--line:#323a44;
--accent:110,168,230;--other:235,140,95;--deep:.45}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.7rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line)}
.lead{font-size:1.1rem}.soft,footer,caption{color:var(--soft);font-size:.85rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%}th,td{padding:.2rem .5rem;text-align:left;font-weight:400}
thead th{color:var(--soft);font-size:.85rem}tbody tr{border-top:1px solid var(--line)}
.rank,.num{white-space:nowrap;font-variant-numeric:tabular-nums}.num{text-align:right}
.ranking .tier{border-top:2px solid rgb(var(--accent))}
.ranking .tier th{color:var(--soft);font-size:.75rem;padding:0 .5rem}
.ranking th[scope=row]{min-width:4.5rem}
.ranking .plot{width:45%;min-width:7rem}.ranking svg{display:block;width:100%;height:14px}
.axis{stroke:var(--line);stroke-width:1;vector-effect:non-scaling-stroke}
.bar{fill:rgba(var(--accent),.35)}.dot{fill:rgb(var(--accent))}
.strip rect{fill:rgba(var(--accent),calc(.08 + .92*var(--p)))}
.heat{width:auto;font-size:.75rem}.heat td{min-width:2rem;text-align:center;padding:.15rem}
.heat caption{caption-side:bottom;text-align:left;padding-top:.4rem}.heat th[scope=row]{white-space:nowrap}
.heat .up{background:rgba(var(--accent),calc(var(--deep)*var(--p)))}
.heat .down{background:rgba(var(--other),calc(var(--deep)*var(--p)))}
.tilt{height:7rem;vertical-align:bottom;padding:0}
.tilt span{writing-mode:vertical-rl;transform:rotate(180deg);display:inline-block;max-height:7rem;overflow:hidden}
.facts{width:auto}.facts th{color:var(--soft);padding-right:1.5rem}
.history{width:100%;min-width:40rem}.history text{font-size:12px;fill:var(--soft)}
footer{margin-top:3rem}code{font-size:.9em}
@media (max-width:40rem){th,td{padding:.15rem .25rem}.num .soft{display:none}.ranking .plot{min-width:5rem}}
@media print{.wide{overflow:visible}}
"""
"""Styles that the page shares with the studio."""

PAGE_CSS = """
:root{--link:#1d568f;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--link:#8fc0f2}}
main{max-width:66rem}h1{line-height:1.25}h1,h2,p,li,td,.ranking th[scope=row]{overflow-wrap:anywhere}
thead th{vertical-align:bottom}a{color:var(--link)}:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.league{table-layout:fixed}.league th[scope=row]{overflow-wrap:anywhere}
.league .plot{position:relative;height:1.9rem;padding:0;width:27%}
.league td.plot{background:linear-gradient(var(--line),var(--line)) center/100% 1px no-repeat}
.league thead .plot{height:auto}.ends{display:flex;justify-content:space-between;font-variant-numeric:tabular-nums}
.plot i,.plot b{position:absolute;top:50%;display:block}
.plot i{height:6px;margin-top:-3px;background:rgba(var(--accent),.4);border-radius:3px;min-width:2px}
.plot b{height:14px;width:4px;margin:-7px 0 0 -2px;background:rgb(var(--accent));border-radius:2px}
.league .starts{border-top:2px solid rgb(var(--accent))}
.league.resorted .starts,.league.searched .starts{border-top:1px solid var(--line)}
.tall{max-height:44rem;overflow:auto}
.tall thead th{position:sticky;top:0;background:var(--paper);z-index:1;box-shadow:0 1px var(--line)}
thead button{font:inherit;color:inherit;background:none;border:0;padding:.15rem 0;min-height:1.5rem;text-align:inherit;
cursor:pointer;text-decoration:underline dotted;text-underline-offset:.2em}
[aria-sort] button{color:var(--ink);font-weight:600}
[aria-sort=ascending] button::after{content:" \\25b2"}[aria-sort=descending] button::after{content:" \\25bc"}
.search{margin:.4rem 0}.search input{font:inherit;color:inherit;background:var(--paper);border:1px solid var(--soft);
border-radius:4px;padding:.2rem .5rem;width:16rem;max-width:60vw}
.heat{font-size:.8rem}.heat td{min-width:2.2rem}
.heat th[scope=row]{min-width:6rem;max-width:14rem;white-space:normal;overflow-wrap:anywhere;position:sticky;left:0;
background:var(--paper)}
.heat th[scope=row] bdi{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:3;overflow:hidden}
.tilt{height:auto;padding:.2rem 0}.tilt span{max-height:8rem;text-overflow:ellipsis;white-space:nowrap}
.strips .plot{width:40%}.strips th[scope=row]{width:34%}
.answers{table-layout:fixed}.answers .question{width:30%}.answers .answer{width:15%}
.answers th,.answers td{vertical-align:top}
.facts th{vertical-align:top}.facts code{overflow-wrap:anywhere}
.history{min-width:36rem}
.keys{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem}
.keys svg{width:1.2rem;height:.5rem;margin-right:.4rem}
@media (max-width:40rem){.answers .question{width:34%}.answers .answer{width:20%}.answers{font-size:.85rem}
.strips .plot{min-width:4rem}
.league,.league thead,.league tbody{display:block}
.league tr{display:grid;grid-template-columns:4.6rem 1fr var(--last);padding:.25rem 0;align-items:start}
.league tr[hidden]{display:none}.league th,.league td{width:auto!important;border:0}
.league .place{grid-area:1/1;text-align:left}.league .name{grid-area:1/2}.league .score{grid-area:1/3}
.league .span{grid-area:2/1}.league .plot{grid-area:2/2;align-self:center;height:1.4rem;margin:0 .25rem}
.league .support{grid-area:2/3}.league .tier,.league .between{display:none}
.league .span,.league .support{font-size:.85rem}}
@media print{.tall{overflow:visible;max-height:none}.search{display:none}.tall thead th{position:static}}
"""
"""Styles of the page only: searchable and sortable tables, long names, phones."""
