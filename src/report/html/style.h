// The page's style sheet. Every rule stands below .headrace, so that a notebook around it keeps its looks.
//
// Blue is amount (a queue's level, a worker's load), the one accent is what costs: the bottleneck and the
// wait for it. The palette is told apart with any kind of colour blindness, and lightness alone carries it.
#pragma once

#include "markup.h"

namespace headrace::report {

/// For the page that has the browser to itself.
inline constexpr Literal kPageStyle(
    "<style>body.headrace{margin:0;min-height:100vh;border:0;border-radius:0}</style>");

inline constexpr Literal kStyle(R"css(<style>
.headrace {
  --back: #ffffff; --panel: #f5f7f9; --line: #dde3e9; --ink: #1b242d; --soft: #5a6773;
  --accent: #b44600; --accent-pale: #f0b48a; --accent-wash: #fdf3ec; --good: #13744a; --good-wash: #eaf6f0;
  --compute: #93a1af; --today: #b4bfca; --predicted: #2f6fad;
  --busy: #2f6fad; --waits: #bcd6ee; --blocked: #e6c558; --idle: #e4e8ec;
  --l0: #cfe0f0; --l1: #b3d0ea; --l2: #7dadd9; --l3: #4585c0; --l4: #1d5c99;
  --v0: #b3d0ea; --v1: #e8d48a; --v2: #d9bfdc; --v3: #b5dcc8; --on-verdict: #1b242d;
  color-scheme: light dark; container-type: inline-size;
  box-sizing: border-box; color: var(--ink); background: var(--back);
  border: 1px solid var(--line); border-radius: 8px;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  font-variant-numeric: tabular-nums; text-align: left; -webkit-text-size-adjust: 100%;

  @media (prefers-color-scheme: dark) {
    --back: #12171c; --panel: #1a2128; --line: #2e3842; --ink: #e4e9ee; --soft: #9ba8b4;
    --accent: #ff9650; --accent-pale: #8d5833; --accent-wash: #2b1e15; --good: #5fcb98; --good-wash: #14261e;
    --compute: #667480; --today: #55626e; --predicted: #6aa8e2;
    --busy: #5b9bd8; --waits: #2c4a66; --blocked: #b3953a; --idle: #27303a;
    --l0: #2a4258; --l1: #345f86; --l2: #437cb0; --l3: #6aa6dc; --l4: #a8d5fb;
    --v0: #2d5375; --v1: #6b5b1f; --v2: #5e4163; --v3: #2b5c46; --on-verdict: #f2f5f8;
  }

  *, *::before, *::after { box-sizing: border-box; }
  .sheet { max-width: 1152px; margin: 0 auto; padding: 28px 28px 40px; }
  section { margin: 34px 0 0; }
  h1, h2, h3, p, ul, ol, dl, dd, figure { margin: 0; padding: 0; }
  h1 { font-size: 30px; line-height: 1.2; font-weight: 650; letter-spacing: -.01em; color: inherit; text-wrap: balance; }
  h1.sentence::first-letter { text-transform: uppercase; }
  p, dd { text-wrap: pretty; }
  h2 { font-size: 18px; line-height: 1.3; font-weight: 650; margin: 0 0 8px; color: inherit; }
  h3 { font-size: 15px; line-height: 1.3; font-weight: 600; margin: 18px 0 8px; color: inherit; }
  h1, p, dd, summary, th, td { overflow-wrap: anywhere; }
  svg { display: block; width: 100%; overflow: visible; }
  ul, ol { list-style: none; }
  pre { overflow-x: auto; }
  pre span { display: block; white-space: pre; }
  code { font: 600 .94em ui-monospace, "SF Mono", Menlo, Consolas, monospace; color: inherit; background: none; padding: 0; }
  b, strong { font-weight: 650; }
  .read { color: var(--soft); font-size: 13.5px; max-width: 96ch; margin: 6px 0 12px; }
  .scroll { overflow: auto; max-width: 100%; }
  .map svg { min-width: 720px; }
  .scroll.tall { max-height: 480px; }
  .scroll + p { margin-top: 14px; }
  .scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--predicted); outline-offset: 2px; }

  header .run { display: flex; flex-wrap: wrap; gap: 2px 14px; align-items: baseline; color: var(--soft); }
  header strong { color: var(--ink); overflow-wrap: anywhere; }
  header .settings { color: var(--soft); font: 12.5px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }

  .verdict { margin-top: 18px; padding: 20px 22px 22px; border-radius: 10px; background: var(--panel); border-left: 5px solid var(--soft); }
  .verdict.bad { background: var(--accent-wash); border-color: var(--accent); }
  .verdict.good { background: var(--good-wash); border-color: var(--good); }
  .verdict .line { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 4px 20px; margin-bottom: 8px; }
  .verdict .kind { font-weight: 700; font-size: 13px; letter-spacing: .06em; color: var(--soft); }
  .verdict.bad .kind { color: var(--accent); }
  .verdict.good .kind { color: var(--good); }
  .verdict .why { margin-top: 10px; max-width: 80ch; font-size: 16px; }
  .confidence { display: flex; align-items: center; gap: 10px; color: var(--soft); font-size: 13px; white-space: nowrap; }
  .confidence svg { width: 84px; height: 6px; }

  .advice ol { display: grid; grid-template-columns: 1fr 1fr; gap: 12px; }
  .advice li { padding: 14px 16px 16px; border: 1px solid var(--line); border-radius: 10px; min-width: 0; }
  .advice li.first { grid-column: 1 / -1; padding: 18px 22px 20px; border-color: var(--predicted); }
  .advice .change { font-size: 17px; display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 8px; }
  .advice .first .change { font-size: 24px; line-height: 1.3; }
  .advice .said, .advice .first .said { font-size: 18px; line-height: 1.4; }
  .advice .to { color: var(--soft); }
  .advice .gain { margin-left: auto; font-weight: 650; color: var(--predicted); white-space: nowrap; }
  .advice .text, .advice .then { color: var(--soft); font-size: 14px; margin-top: 2px; }
  .advice .bars { display: grid; grid-template-columns: max-content 1fr max-content; gap: 4px 12px; align-items: center; margin: 12px 0 6px; font-size: 14px; }
  .advice .bars svg { height: 20px; }
  .advice .bars .word { color: var(--soft); }
  .advice .other .bars { grid-template-columns: max-content 1fr; }
  .advice .other .figure { grid-column: 2; margin-top: -4px; font-size: 13px; }
  .today { fill: var(--today); }
  .predicted { fill: var(--predicted); }
  .whisker { stroke: var(--ink); stroke-width: 1.5; fill: none; vector-effect: non-scaling-stroke; }

  .bar { height: 12px; border-radius: 3px; background: var(--idle); overflow: hidden; }
  .step .bar { height: 40px; border-radius: 6px; }
  .cost { font-size: 13.5px; color: var(--accent); margin-bottom: 4px; }
  .cost .bracket { border: solid var(--accent); border-width: 1.5px 1.5px 0; height: 7px; margin-top: 2px; min-width: 3px; }
  .legend { display: flex; flex-wrap: wrap; gap: 4px 22px; margin: 10px 0 4px; font-size: 14px; }
  .legend li { display: flex; align-items: center; gap: 7px; }
  .legend i { flex: none; width: 12px; height: 12px; border-radius: 3px; background: currentColor; }
  .starved { fill: var(--accent); color: var(--accent); }
  .floor { fill: var(--accent-pale); color: var(--accent-pale); }
  .compute { fill: var(--compute); color: var(--compute); }
  .busy { fill: var(--busy); color: var(--busy); }
  .waits { fill: var(--waits); color: var(--waits); }
  .blocked { fill: var(--blocked); color: var(--blocked); }
  .idle { fill: var(--idle); color: var(--idle); }
  .hot { fill: var(--accent); }
  .cool { fill: var(--compute); }
  .sure { fill: var(--soft); }
  .rest { fill: var(--line); }
  .l0 { fill: var(--l0); color: var(--l0); }
  .l1 { fill: var(--l1); color: var(--l1); }
  .l2 { fill: var(--l2); color: var(--l2); }
  .l3 { fill: var(--l3); color: var(--l3); }
  .l4 { fill: var(--l4); color: var(--l4); }

  .flow { display: flex; flex-wrap: wrap; align-items: center; gap: 18px 0; }
  .stage { display: flex; align-items: center; min-width: 0; }
  .queues { display: grid; gap: 8px; width: 85px; flex: none; padding: 0 2px 0 7px; }
  .queue { font-size: 12px; line-height: 1.35; color: var(--soft); min-width: 0; }
  .queue .name, .queue .level, .queue .ends { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .queue .name { color: var(--ink); white-space: normal; }
  .direct { width: 24px; flex: none; }
  .queue .ends { white-space: normal; overflow-wrap: anywhere; }
  .tank { fill: none; stroke: var(--compute); stroke-width: 1; }
  .tank.unbounded { stroke-dasharray: 3 3; }
  .arrow { fill: none; stroke: var(--soft); stroke-width: 1.5; }
  .boxes { display: grid; gap: 10px; min-width: 0; }
  .box { width: 151px; max-width: 100%; padding: 8px 10px 10px; border: 1px solid var(--line); border-radius: 8px; background: var(--panel); position: relative; }
  .box.bottleneck { border: 2px solid var(--accent); background: var(--accent-wash); }
  .box.sink { width: 148px; }
  .box .mark { position: absolute; top: -10px; right: 10px; padding: 0 7px; border-radius: 4px; font-size: 12px; line-height: 18px; font-weight: 650; color: var(--back); background: var(--accent); }
  .box .who { font-size: 12px; color: var(--soft); margin-bottom: 4px; }
  .box li { display: grid; grid-template-columns: 1fr max-content; gap: 1px 6px; font-size: 12px; line-height: 1.4; color: var(--soft); white-space: nowrap; }
  .box li + li { margin-top: 7px; }
  .box li .name { grid-column: 1 / -1; font-size: 14px; line-height: 1.3; color: var(--ink); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .box li.here .name { font-weight: 650; color: var(--accent); }
  .box li .bar { grid-column: 1 / -1; height: 5px; border-radius: 2px; }
  .more { font-size: 12px; color: var(--soft); }

  .histograms { display: grid; grid-template-columns: repeat(auto-fill, minmax(160px, 1fr)); gap: 20px 24px; }
  figure { min-width: 0; }
  figcaption { font-size: 14px; font-weight: 600; margin-bottom: 6px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .shares { font-size: 12.5px; line-height: 1.4; color: var(--soft); }
  figure svg { height: 60px; border-bottom: 1px solid var(--compute); }
  figure rect { stroke: none; }
  .nothing { height: 60px; color: var(--soft); font-size: 13px; }
  .axis { display: flex; justify-content: space-between; gap: 8px; font-size: 12px; color: var(--soft); }

  table { border-collapse: collapse; border: 0; width: 100%; margin: 0; font-size: 13.5px; color: inherit; table-layout: auto; }
  tr, tbody tr { background: none !important; }
  th, td { padding: 4px 10px 4px 0; text-align: left; vertical-align: middle; border: 0; border-bottom: 1px solid var(--line); font-weight: 400; white-space: nowrap; max-width: none; }
  thead th { color: var(--soft); font-size: 12.5px; position: sticky; top: 0; background: var(--back); }
  tbody tr:last-child > * { border-bottom: 0; }
  .number { text-align: right; }
  td.picture { width: 34%; min-width: 90px; }
  tr.here > th { color: var(--accent); font-weight: 650; }
  tr.own > th { font-weight: 650; }
  th[scope=row] { max-width: 260px; overflow: hidden; text-overflow: ellipsis; }
  table.ledger th[scope=row] { max-width: 420px; white-space: normal; }
  .figures td { max-width: 360px; }
  .figures td:first-child { white-space: normal; min-width: 140px; }
  details table:not(.states) { width: auto; min-width: 45%; }

  details { margin-top: 10px; }
  summary { cursor: pointer; font-size: 14px; color: var(--soft); padding: 3px 0; }
  summary:hover { color: var(--ink); }

  .time { display: grid; grid-template-columns: minmax(0, 140px) minmax(0, 1fr); gap: 5px 12px; align-items: center; margin-top: 12px; }
  .time .label { font-size: 13px; color: var(--soft); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; text-align: right; }
  .time .label.here { color: var(--accent); font-weight: 650; }
  .waits-over-time { height: 110px; shape-rendering: crispEdges; }
  .waits-over-time .space { fill: var(--panel); }
  .waits-over-time .grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
  .curve { height: 160px; }
  .areas { height: 220px; }
  .areas .idle, .legend .idle { fill: var(--idle); color: var(--idle); }
  .v1 { fill: var(--v1); color: var(--v1); }
  .v2 { fill: var(--v2); color: var(--v2); }
  .v3 { fill: var(--v3); color: var(--v3); }
  .curve path { fill: none; vector-effect: non-scaling-stroke; }
  .curve .grid { stroke: var(--line); }
  .curve .band { fill: var(--l0); }
  .curve .own { stroke: var(--soft); stroke-dasharray: 5 4; }
  .curve .line { stroke: var(--predicted); stroke-width: 2; }
  .curve .dot { stroke: var(--predicted); stroke-width: 9; stroke-linecap: round; }
  .curve .dot.today { stroke: var(--ink); }
  .curve .dot.measured { stroke: var(--busy); stroke-width: 12; }
  .curve .range { stroke: var(--predicted); opacity: .6; }
  .scatter { position: relative; }
  .scatter .curve { height: 360px; }
  .scatter span { position: absolute; transform: translate(-50%, -50%); min-width: 19px; padding: 0 4px; border-radius: 10px; font-size: 12px; line-height: 19px; font-weight: 650; text-align: center; color: var(--back); background: var(--predicted); }
  .service { height: 14px; }
  .service path { fill: none; vector-effect: non-scaling-stroke; }
  .service .grid { stroke: var(--line); }
  .service .line { stroke: var(--busy); stroke-width: 1.5; }
  .service .usual { stroke: var(--busy); stroke-width: 9; }
  .service .dot { stroke: var(--busy); stroke-width: 7; stroke-linecap: round; }
  .ranges { display: flex; flex-wrap: wrap; gap: 2px 18px; font-size: 14px; }
  .ranges .scripted { color: var(--soft); }
  @media (scripting: none) { .scripted { display: none; } }
  .lanes a { color: var(--predicted); font-size: 14px; }
  .axis.upright { flex-direction: column; align-self: stretch; align-items: flex-end; }
  .values { display: grid; grid-auto-flow: column; grid-auto-columns: 1fr; text-align: center; font-size: 13px; color: var(--soft); }
  .values .today { color: var(--ink); font-weight: 650; }
  .levels { shape-rendering: crispEdges; height: 14px; border-radius: 2px; overflow: hidden; }
  .strip { position: relative; height: 24px; background: var(--panel); border-radius: 3px; overflow: hidden; }
  .strip span { position: absolute; top: 0; height: 24px; padding: 0 5px; font-size: 12px; line-height: 24px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; color: var(--on-verdict); border-right: 1px solid var(--back); }
  .strip .calm { color: var(--soft); }
  .strip .v0 { background: var(--v0); }
  .strip .v1 { background: var(--v1); }
  .strip .v2 { background: var(--v2); }
  .strip .v3 { background: var(--v3); }

  .evidence dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 6px 18px; }
  dt { color: var(--soft); font-weight: 400; overflow-wrap: anywhere; }
  dd { margin: 0; }
  .columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); gap: 10px 48px; }
  .columns h3 { margin-top: 8px; }
  .facts dl { display: grid; grid-template-columns: minmax(0, 1fr) fit-content(70%); gap: 2px 14px;
    font-size: 13.5px; }
  .facts dd { text-align: right; max-width: 170px; }
  footer { margin-top: 36px; color: var(--soft); font-size: 12.5px; }

  @container (max-width: 640px) {
    .sheet { padding: 16px 16px 28px; }
    h1 { font-size: 23px; }
    section { margin-top: 28px; }
    .verdict { padding: 14px 14px 16px; }
    .advice ol { grid-template-columns: minmax(0, 1fr); }
    .advice li.first { padding: 14px 14px 16px; }
    .advice .first .change { font-size: 19px; }
    .advice .bars, .advice .other .bars { grid-template-columns: max-content 1fr; }
    .advice .bars .figure { grid-column: 2; margin-top: -4px; font-size: 13px; }
    .step .legend { flex-direction: column; }
    .flow { flex-direction: column; align-items: stretch; gap: 12px; }
    .queues + .boxes, .boxes { flex: 1; }
    .box, .box.sink { width: 100%; }
    table.ledger tr { display: grid; grid-template-columns: 1fr max-content 56px; padding: 6px 0; border-bottom: 1px solid var(--line); }
    table.ledger tr > * { border: 0; padding: 0; max-width: none; }
    table.ledger th[scope=row] { grid-column: 1 / -1; max-width: none; }
    table.ledger td.picture { padding-top: 3px; }
    table.ledger td.number { padding-left: 8px; }
    table.states thead { display: none; }
    table.states tr { display: flex; flex-wrap: wrap; gap: 0 14px; padding: 6px 0; border-bottom: 1px solid var(--line); }
    table.states tr > * { border: 0; padding: 0; }
    table.states th[scope=row] { flex: 1 0 100%; max-width: 100%; }
    table.states td.picture { flex: 1 0 100%; padding: 4px 0; }
    table.states td.number::before { content: attr(data-title) " "; color: var(--soft); }
    .cpu, th.cpu { display: none; }
    td.picture { width: auto; min-width: 70px; }
    th[scope=row] { max-width: 120px; }
    .scroll th, .scroll td { white-space: normal; overflow-wrap: anywhere; }
    .time { grid-template-columns: minmax(0, 84px) minmax(0, 1fr); gap: 5px 8px; }
    .evidence dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
    .evidence dd { margin-bottom: 8px; }
  }
  @media print {
    h2, h3, figcaption { break-after: avoid; }
    figure, svg, tr, li, .box, .scroll { break-inside: avoid; }
    .scroll { overflow: visible; max-height: none; }
  }
}
</style>)css");

}  // namespace headrace::report
