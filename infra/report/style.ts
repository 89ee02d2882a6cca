/** The style sheet, light and dark. Data has one hue; only outcomes and fates have colours of their own. */
export const style = `
:root { color-scheme: light dark; --ink:#1b1f24; --soft:#5d6670; --faint:#8b949e; --paper:#fbfbf9; --card:#fff; --line:#e3e4e0;
  --data:#1f6f8b; --band:#1f6f8b1f; --accent:#c2410c; --good:#2e7d4f; --bad:#b3403a; --warn:#b7791f; --violet:#7357a8; --grey:#9aa3ad; --pale:#cdd2d7;
  --add:#e7f5ec; --del:#fcebea; --mono:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6e8ea; --soft:#a3adb7; --faint:#79838d; --paper:#15181b; --card:#1c2024; --line:#2e343a;
  --data:#5fb3d1; --band:#5fb3d126; --accent:#f08a4b; --good:#5cb984; --bad:#e07a72; --warn:#dba94f; --violet:#a990db; --grey:#77818b; --pale:#4a525a;
  --add:#16301f; --del:#3a1d1c; } }
* { box-sizing:border-box }
body { margin:0; background:var(--paper); color:var(--ink); font:15px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif }
main { max-width:980px; margin:0 auto; padding:40px 28px 64px }
.brand { margin:0; font-weight:700; letter-spacing:.14em; text-transform:uppercase; font-size:12px; color:var(--data) }
h1 { margin:.25em 0 .35em; font-size:30px; line-height:1.2; letter-spacing:-.015em; text-wrap:balance }
h2 { margin:0 0 14px; font-size:18px; letter-spacing:-.005em }
h3 { margin:22px 0 8px; font-size:14px; color:var(--soft) }
.lead { margin:0 0 18px; color:var(--soft); max-width:74ch } .lead b, .lead code { color:var(--ink) }
code { font:.88em var(--mono); overflow-wrap:anywhere }
section { margin-top:26px; padding:22px 24px 20px; background:var(--card); border:1px solid var(--line); border-radius:10px }
.tiles { display:grid; grid-template-columns:repeat(auto-fit,minmax(140px,1fr)); gap:1px; margin:0; background:var(--line); border:1px solid var(--line); border-radius:10px; overflow:hidden }
.tiles div { display:flex; flex-direction:column; background:var(--card); padding:12px 16px } .tiles dt { color:var(--soft); font-size:12px }
.tiles dd { margin:auto 0 0; padding-top:2px; font-size:20px; font-weight:600; font-variant-numeric:tabular-nums; white-space:nowrap }
svg { display:block; width:100%; height:auto; overflow:visible; font-size:12px }
.axis text { fill:var(--faint); font-variant-numeric:tabular-nums } .axis .grid { stroke:var(--line) } .axis .base { stroke:var(--grey) }
.line { fill:none; stroke:var(--data); stroke-width:2.2; stroke-linejoin:round; stroke-linecap:round } .spark .line { stroke-width:1.6 }
.mean { fill:var(--data); stroke:var(--card); stroke-width:1.2 } .group { fill:var(--data); opacity:.38 } .band { fill:var(--band) }
.heldout { fill:var(--accent); stroke:var(--card); stroke-width:1.2 } .end { fill:var(--data); font-weight:700; font-size:14px }
.bar { fill:var(--data); opacity:.85 } .whisker { stroke:var(--soft); stroke-width:1.4 } .name { fill:var(--ink); font-family:var(--mono); font-size:11.5px }
.value { fill:var(--ink); font-size:11.5px; font-variant-numeric:tabular-nums } .quiet { fill:var(--faint) }
.key { margin:12px 0 0; color:var(--soft); font-size:12.5px } .key i { display:inline-block; vertical-align:middle; margin:0 6px 2px 14px } .key i:first-child { margin-left:0 }
.k-line { width:18px; height:3px; background:var(--data); border-radius:2px } .k-band { width:16px; height:12px; background:var(--band) }
.k-dot { width:5px; height:5px; border-radius:50%; background:var(--data); opacity:.5 } .k-diamond { width:9px; height:9px; background:var(--accent); transform:rotate(45deg) }
.k-bar { width:16px; height:10px; background:var(--data); opacity:.85; border-radius:1px } .k-whisker { width:16px; height:0; border-top:2px solid var(--soft) }
.pair { display:grid; grid-template-columns:repeat(auto-fit,minmax(320px,1fr)); gap:22px 32px } figure { margin:0; min-width:0 } figcaption { color:var(--soft); font-size:13px; margin-bottom:8px } figcaption b { color:var(--ink) }
.share .track { display:flex; gap:2px; height:16px; border-radius:4px; overflow:hidden; background:var(--line) } .share .track span { flex-basis:0; min-width:3px }
.share ul { display:flex; flex-wrap:wrap; gap:3px 18px; margin:10px 0 0; padding:0; list-style:none; font-size:13px; font-variant-numeric:tabular-nums }
.share i { display:inline-block; width:10px; height:10px; border-radius:3px; margin-right:6px } .share small { color:var(--faint) } .share .zero { color:var(--faint) } .share .zero i { opacity:.35 }
.kind-scored, .kind-trained { background:var(--good) } .kind-infra { background:var(--bad) } .kind-stale { background:var(--warn) } .kind-invalid-task { background:var(--violet) }
.kind-cancelled { background:var(--grey) } .kind-zero-variance { background:var(--data) } .kind-withheld { background:var(--pale) } .kind-in-flight { background:var(--accent) }
.metrics { display:grid; grid-template-columns:repeat(auto-fill,minmax(200px,1fr)); gap:16px 28px; margin-top:20px; padding-top:18px; border-top:1px solid var(--line) }
.metrics figcaption { display:flex; justify-content:space-between; gap:8px; margin-bottom:2px; font-size:12px } .metrics span { white-space:nowrap; font-variant-numeric:tabular-nums }
table { width:100%; border-collapse:collapse; font-size:13px } th { text-align:left; color:var(--soft); font-weight:500 } th, td { padding:6px 12px 6px 0; border-bottom:1px solid var(--line); vertical-align:top; overflow-wrap:anywhere } .n { text-align:right; padding-right:20px; font-variant-numeric:tabular-nums } small { color:var(--faint) }
.tag { display:inline-block; padding:0 8px; border-radius:20px; color:var(--card); font-size:12.5px; font-weight:600 } .tag.good { background:var(--good) } .tag.bad { background:var(--bad) }
.warning { border-left:3px solid var(--bad); padding-left:12px } .conversation { display:grid; gap:10px }
article { border:1px solid var(--line); border-radius:8px; padding:8px 14px 10px; min-width:0 } article.said { border-left:3px solid var(--data) } article.given { background:var(--paper) }
article header { display:flex; justify-content:space-between; gap:12px; font-size:12.5px; color:var(--soft) } article.said header b { color:var(--data) }
pre { margin:6px 0 0; font:12.5px/1.5 var(--mono); white-space:pre-wrap; overflow-wrap:anywhere; tab-size:4 } article pre { max-height:420px; overflow:auto }
.diff { border:1px solid var(--line); border-radius:8px; overflow:hidden; padding:6px 0 } .diff span { display:block; padding:0 14px } .diff .added { background:var(--add) } .diff .removed { background:var(--del) } .diff .file, .diff .meta { color:var(--faint) } .diff .hunk { color:var(--data) }
.tokens .given { color:var(--soft) } .tokens .masked { text-decoration:underline dotted; text-underline-offset:3px } .tokens .cut { color:var(--faint); font-style:italic } p .tokens { font:12px var(--mono) }
.tokens .p4, .tokens .p3, .tokens .p2, .tokens .p1, .tokens .p0 { border-radius:2px; background:color-mix(in srgb, var(--data) var(--shade), transparent) } .tokens .p4 { --shade:10% } .tokens .p3 { --shade:24% } .tokens .p2 { --shade:40% } .tokens .p1 { --shade:58% } .tokens .p0 { background:color-mix(in srgb, var(--accent) 55%, transparent) }
details { margin-top:8px } summary { cursor:pointer; color:var(--soft); font-size:13px } details pre { max-height:420px; overflow:auto; padding:10px 14px; background:var(--paper); border-radius:8px }
svg.interval { width:180px; height:16px } .interval .point { fill:var(--data) }
footer { margin-top:28px; color:var(--faint); font-size:12.5px }
@media (max-width:760px) { main { padding:24px 14px 48px } section { padding:18px 14px 16px } table { display:block; overflow-x:auto } th, td { min-width:76px } }
@media print { body { background:#fff } section { break-inside:avoid } article pre, details pre { max-height:none } }
`;
