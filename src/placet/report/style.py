"""The look of the report: one style sheet, light and dark, narrow and wide."""

CSS = """
:root{--ink:#1b2430;--soft:#5b6673;--paper:#fff;--line:#d9dfe6;--accent:37,99,170;--other:190,84,40}
@media (prefers-color-scheme:dark){:root{--ink:#e7ebf0;--soft:#9aa5b1;--paper:#14181d;--line:#323a44;
--accent:110,168,230;--other:235,140,95}}
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
.heat .up{background:rgba(var(--accent),calc(.7*var(--p)))}.heat .down{background:rgba(var(--other),calc(.7*var(--p)))}
.tilt{height:7rem;vertical-align:bottom;padding:0}
.tilt span{writing-mode:vertical-rl;transform:rotate(180deg);display:inline-block;max-height:7rem;overflow:hidden}
.facts{width:auto}.facts th{color:var(--soft);padding-right:1.5rem}
.history{width:100%;min-width:40rem}.history text{font-size:12px;fill:var(--soft)}
footer{margin-top:3rem}code{font-size:.9em}
@media (max-width:40rem){th,td{padding:.15rem .25rem}.num .soft{display:none}.ranking .plot{min-width:5rem}}
@media print{.wide{overflow:visible}}
"""
