// SPDX-License-Identifier: MIT
#include <string>

#include "formats/profile/flame_graph_script.hpp"
#include "formats/report/html_report.hpp"

namespace rtev {

namespace {

/// Without the blanks that CSS does not need. There are none of these in its names and values.
std::string compacted(const std::string& style) {
  std::string text;
  const auto is_separator = [](char c) { return c == ';' || c == ':' || c == '{' || c == '}' || c == ','; };
  for (std::size_t i = 0; i < style.size(); ++i) {
    const bool is_blank = style[i] == ' ' || style[i] == '\n';
    const bool is_needless = is_blank && (text.empty() || is_separator(text.back()) || text.back() == ' ' ||
                                          i + 1 == style.size() || style[i + 1] == '{' || style[i + 1] == '}');
    if (!is_needless) text += is_blank ? ' ' : style[i];
  }
  return text;
}

}  // namespace

std::string report_style() {
  std::string style = R"css(
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #57606a; --line: #d1d9e0; --raised: #f6f8fa;
  --link: #0a58ca; --bad: #b3261e; --warning: #8a5300; --info: #0b5cad; --ok: #1a6e37; --grid: #e4e8ec;
  --a: #1f6feb; --b: #c2500c; --c: #6f42c1; --heat: #c2410c; --window: #1f6feb22;
  --minor: #2f81f7; --mark: #8957e5; --sweep: #0f9d8a; --major: #b58cf0; --wait: #d29922; --stw: #8c959f; --explicit: #d6336c; --other: #6e7781;
  --run: #2da44e; --ready: #e8590c; --blocked: #c9d1d9; --unknown: #eff2f5; --on: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --back: #12151a; --text: #e6e9ed; --soft: #a3adb8; --line: #343b43; --raised: #1b2027; --link: #79b8ff;
    --bad: #ff8f87; --warning: #f0b64d; --info: #79b8ff; --ok: #63d184; --grid: #262c33; --a: #58a6ff; --b: #ff9d5c; --c: #c3a6ff;
    --heat: #ff9d5c; --window: #58a6ff2b; --minor: #58a6ff; --mark: #a371f7; --sweep: #2fc4ae; --major: #8660c9; --wait: #d8a52f; --stw: #6e7781;
    --explicit: #f06595; --other: #8c959f; --run: #3fb950; --ready: #ff8c42; --blocked: #3a424c; --unknown: #20262d; --on: #0d1117; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 8px; }
body { margin: 0 auto; max-width: 1240px; padding: 16px 20px 60px; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
h1 { font-size: 22px; line-height: 1.25; margin: 0; }
h2 { font-size: 19px; margin: 40px 0 4px; padding-top: 12px; border-top: 1px solid var(--line); }
h2.bare { border: 0; margin-top: 8px; }
h3 { font-size: 16px; margin: 20px 0 4px; }
p { margin: 4px 0 8px; max-width: 80ch; }
.soft { color: var(--soft); }
code { font: 13px/1.4 ui-monospace, SFMono-Regular, Menlo, monospace; background: var(--raised); border: 1px solid var(--line);
  border-radius: 5px; padding: 1px 5px; }
#facts { margin: 2px 0 14px; }
.score { display: inline-block; min-width: 76px; text-align: center; font-size: 12px; font-weight: 700; letter-spacing: .05em;
  text-transform: uppercase; border: 1.5px solid currentColor; border-radius: 20px; padding: 1px 9px; }
.bad { color: var(--bad); } .warning { color: var(--warning); } .info { color: var(--info); } .ok { color: var(--ok); }
#verdict { border: 1px solid var(--line); border-left: 6px solid currentColor; border-radius: 8px; background: var(--raised); padding: 12px 16px; }
#verdict > * { color: var(--text); } #verdict .score { font-size: 13px; margin-right: 8px; } #verdict .bad { color: var(--bad); } #verdict .warning { color: var(--warning); } #verdict .info { color: var(--info); } #verdict .ok { color: var(--ok); }
#verdict h2 { border: 0; margin: 0; padding: 0; font-size: 18px; } #verdict p { margin: 6px 0 0; max-width: 100ch; font-size: 16px; }
.finding { display: grid; grid-template-columns: 92px 1fr; gap: 2px 10px; padding: 9px 0; border-bottom: 1px solid var(--line); }
.finding p { margin: 2px 0; max-width: 95ch; } .finding h3 { margin: 0; }
ul.plain { list-style: none; margin: 0; padding: 0; }
#tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(122px, 1fr)); gap: 8px; margin: 18px 0 4px; }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: 7px 10px; background: var(--raised); }
.tile dt { color: var(--soft); font-size: 13px; } .tile dd { margin: 0; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile .soft { font-size: 12.5px; font-weight: 400; display: block; }
dl { margin: 0; }
nav { margin: 14px 0 0; font-size: 14px; display: flex; flex-wrap: wrap; gap: 2px 14px; }
svg { display: block; width: 100%; overflow: visible; } svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
svg .label { fill: var(--text); } svg text.strong { font-weight: 700; } svg a text { fill: var(--on); font-weight: 700; } svg text.small { font-size: 11px; }
svg text.in { fill: #10141a; } .wake { stroke: var(--soft); stroke-dasharray: 1 3; }
.grid { stroke: var(--grid); } .axis { stroke: var(--line); }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 13px; color: var(--soft); margin: 4px 0; }
.legend span { display: inline-flex; align-items: center; gap: 5px; } .legend svg { width: 18px; height: 12px; flex: none; }
details { margin: 6px 0; } summary { cursor: pointer; color: var(--link); width: fit-content; }
.scroll { overflow-x: auto; max-height: 420px; overflow-y: auto; border: 1px solid var(--line); border-radius: 6px; margin: 4px 0; }
.scroll > table { border-collapse: collapse; min-width: 100%; font-size: 13.5px; font-variant-numeric: tabular-nums; }
.scroll th, .scroll td { padding: 3px 12px 3px 8px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
.scroll th { position: sticky; top: 0; background: var(--raised); font-weight: 600; }
.scroll .text { text-align: left; } .scroll .long { text-align: left; white-space: normal; min-width: 44ch; } .scroll td { vertical-align: top; }
.pause { border: 1px solid var(--line); border-radius: 8px; padding: 4px 14px 10px; margin: 12px 0; }
.pause > summary { color: var(--text); width: auto; padding: 6px 0; font-size: 15px; } .pause > summary b { font-size: 17px; }
.pause:target, .window:target { outline: 3px solid var(--link); }
.window { fill: var(--window); stroke: var(--a); } .window:target { stroke-width: 3; fill: var(--a); }
@media (max-width: 560px) { body { padding: 12px 12px 40px; } .finding { grid-template-columns: 1fr; } .finding .score { justify-self: start; }
  #tiles { grid-template-columns: repeat(2, 1fr); } .tile dd { font-size: 18px; } h1 { font-size: 19px; } }
@media print { nav, summary, .flame-bar { display: none; } body { max-width: none; } .scroll { max-height: none; overflow: visible; }
  .pause, .finding, figure { break-inside: avoid; } }
figure { margin: 8px 0 14px; }
)css";
  style += flame_graph_style();
  return compacted(style);
}

}  // namespace rtev
