// SPDX-License-Identifier: MIT
#include "formats/report/report_scripts.hpp"

namespace rtev {

std::string_view report_verdict_script() {
  return R"js(
const words = { bad: "Something is wrong", warning: "Worth a look", info: "It does well", ok: "It does well" };
const badge = score => html("span", { class: `score ${score}` }, score);

function verdict() {
  const severe = data.findings.filter(finding => finding.score === "bad" || finding.score === "warning");
  const first = data.findings[0];
  return html(
    "section",
    { id: "verdict", class: data.score, "aria-labelledby": "verdict-title" },
    html(
      "h2",
      { id: "verdict-title" },
      html("span", { class: `score ${data.score}` }, data.score),
      `${words[data.score]}: ${
        severe.length === 0
          ? "no finding needs attention"
          : severe
              .map(finding => finding.title)
              .slice(0, 3)
              .join("; ")
      }${severe.length > 3 ? `; and ${severe.length - 3} more` : ""}`,
    ),
    severe.length === 0 ? html("p", {}, first.text) : "",
  );
}

function finding(of) {
  return html(
    "li",
    { class: "finding" },
    html("div", {}, badge(of.score)),
    html(
      "div",
      {},
      html("h3", {}, html("a", { href: "#" + of.section }, of.title)),
      html("p", {}, of.text),
      of.next || of.command
        ? soft(of.next, of.next && of.command ? " " : "", of.command ? html("code", {}, of.command) : "")
        : "",
    ),
  );
}

function findings() {
  const calm = data.findings.filter(of => of.score === "ok");
  return [
    html("h2", { id: "findings", class: "bare" }, "Findings"),
    html("ul", { class: "plain" }, data.findings.filter(of => of.score !== "ok").map(finding)),
    calm.length === 0
      ? ""
      : html(
          "details",
          calm.length === data.findings.length ? { open: "" } : {},
          html("summary", {}, `${calm.length} checked and fine: ${calm.map(of => of.title).join("; ")}`),
          html("ul", { class: "plain" }, calm.map(finding)),
        ),
  ];
}

function tiles() {
  const all = data.latency.all,
    total = data.stats.total,
    at = name => known(all.percentiles_ns, of => duration(of[name]));
  const mmu = data.pauses.mmu.find(of => of.window_ns === 1e8) || data.pauses.mmu[data.pauses.mmu.length - 1];
  const heap = data.stats.processes
    .filter(of => of.heap_words)
    .sort((a, b) => b.heap_words.last - a.heap_words.last)[0];
  const of_all = data.stats.processes.length === 1 ? data.stats.processes[0] : total;
  const seconds = max(of_all.wall_ns / 1e9, 1e-9);
  const list = [
    ["pauses", grouped(all.count), `${duration(all.total_ns)} together`],
    ["longest pause", all.count ? duration(all.max_ns) : "none", all.count ? `99.9% below ${at("99.9")}` : ""],
    ["99% below", all.count ? at("99") : "none", all.count ? `50% below ${at("50")}` : ""],
    ["time in the GC", percent(total.gc_share), known(total.gc_cpu_ns, ns => `${duration(ns)} of CPU time`)],
    mmu ? [`MMU of ${short(mmu.window_ns)}`, at_least(mmu.min), "left to the program"] : null,
    heap ? [data.processes > 1 ? `heap of ${heap.comm} at the end` : "heap at the end", size(heap.heap_words.last * 8), `${size(heap.heap_words.first * 8)} at first`] : null,
    [
      "allocated in minor heaps",
      size(total.words.minor * 8),
      `${size((total.words.minor * 8) / seconds)}/s, ${part(total.words.promoted, total.words.minor)} promoted`,
    ],
    [
      "collections",
      grouped(total.collections.minor),
      `${counted(total.collections.major_cycles, "major cycle", "major cycles")}`,
    ],
    [
      "lost of rings",
      total.lost_words ? grouped(total.lost_words) : "nothing",
      total.lost_words ? "words" : `all of ${counted(total.events, "event", "events")}`,
    ],
  ];
  const of_latency = new Map(data.latency.processes.map(of => [of.pid, of]));
  return [
    html(
      "section",
      { id: "tiles-section", "aria-label": "main figures" },
      html(
        "dl",
        { id: "tiles" },
        list
          .filter(of => of)
          .map(([name, value, more]) =>
            html(
              "div",
              { class: "tile" },
              html("dt", {}, name),
              html("dd", {}, value, html("span", { class: "soft" }, more)),
            ),
          ),
      ),
    ),
    table(
      data.processes === 1
        ? "figures of the process as a table"
        : `${counted(data.processes, "process", "processes")} as a table`,
      [
        ["process", "text"],
        ["OCaml", "text"],
        ["seen for"],
        ["CPU time"],
        ["in the GC"],
        ["pauses"],
        ["99% below"],
        ["longest"],
        ["allocated"],
        ["heap at the end"],
        ["events"],
      ],
      () =>
        data.stats.processes.map(of => {
          const pauses = of_latency.get(of.pid);
          return [
            who(of),
            of.version || "unknown",
            duration(of.wall_ns),
            known(of.cpu_ns, duration),
            percent(of.gc_share),
            pauses ? grouped(pauses.count) : "0",
            pauses && pauses.count ? duration(pauses.percentiles_ns["99"]) : "",
            pauses && pauses.count ? duration(pauses.max_ns) : "",
            size(of.words.minor * 8),
            of.heap_words ? size(of.heap_words.last * 8) : "unknown",
            grouped(of.events),
          ];
        }),
    ),
  ];
}
)js";
}

}  // namespace rtev
