// SPDX-License-Identifier: MIT
// Tables, flame graphs, method, and what puts the report together.
// Bars that share one scale. Rows: [name, [[part, value, color]]].
function bars(label, rows, show) {
  const most = max(...rows.map(([, parts]) => parts.reduce((sum, [, value]) => sum + value, 0)), 1e-9);
  return chart(label, (box, width) => {
    const left = min(220, width * 0.42),
      room = Math.floor(left / 7);
    rows.forEach(([name, parts], i) => {
      let x = left;
      const y = i * 20,
        sum = parts.reduce((sum, [, value]) => sum + value, 0);
      box.append(
        svg(
          "text",
          { class: "label", x: left - 8, y: y + 13, "text-anchor": "end" },
          name.length > room ? name.slice(0, room - 1) + "…" : name,
        ),
      );
      for (const [what, value, color] of parts) {
        const w = (value / most) * (width - left - 70);
        if (w > 0)
          box.append(
            titled(
              "rect",
              { x, y: y + 2, width: max(w, 0.5), height: 14, fill: `var(--${color})` },
              `${name}: ${what} ${show(value)}`,
            ),
          );
        x += w;
      }
      box.append(svg("text", { x: x + 6, y: y + 13 }, show(sum)));
    });
    return max(rows.length * 20, 4);
  });
}

function phases() {
  const found = data.phases.slice().sort((a, b) => b.own_ns - a.own_ns);
  if (found.length === 0) return section("phases", "Phases", "No phase ended.");
  return section(
    "phases",
    "Phases of the GC",
    "Time of all domains in each phase, without the phases inside it.",
    bars(
      "own time by phase",
      found.slice(0, 14).map(of => [of.name, [["own time", of.own_ns, phase_color(of.name)]]]),
      duration,
    ),
    table(
      "phases as a table",
      [["phase", "text"], ["times"], ["own time"], ["with phases inside"], ["longest"]],
      () =>
        found.map(of => [
          of.name,
          grouped(of.count),
          duration(of.own_ns),
          duration(of.total_ns),
          duration(of.longest_ns),
        ]),
    ),
  );
}

const span_parts = time => [
  ["own code", time.code, "run"],
  ["GC", time.gc, "minor"],
  ["waits for domains in the GC", time.domains, "wait"],
  ["without a CPU", time.no_cpu, "ready"],
  ["blocked", time.blocked, "blocked"],
  ["unknown", time.unknown, "unknown"],
];
const span_legend = () => legend(span_parts({}).map(([name, , color]) => [name, swatch(color)]));

function spans() {
  // That one is Eio's own wait for events.
  const found = data.spans.spans.filter(of => of.count > 0 && of.name !== "eio.suspend_domain");
  if (found.length === 0)
    return section(
      "spans",
      "User spans",
      "The program marks no spans of its own. With Runtime_events.User it could: " +
        "then this page says what slow requests wait for.",
    );
  const of_name = of =>
    found.some(other => other.name === of.name && other.pid !== of.pid) ? `${of.name} (${who(of)})` : of.name;
  return section(
    "spans",
    "User spans",
    "Spans that the program marks itself, by what their time was spent on.",
    bars(
      "time of user spans",
      found.slice(0, 20).map(of => [of_name(of), span_parts(of.time_ns)]),
      duration,
    ),
    span_legend(),
    table(
      "user spans as a table",
      [
        ["span", "text"],
        ["process", "text"],
        ["count"],
        ["half below"],
        ["99% below"],
        ["longest"],
        ["total"],
        ["in the GC"],
        ["unfinished"],
      ],
      () =>
        found.map(of => [
          of.name,
          who(of),
          grouped(of.count),
          known(of.percentiles_ns["50"], duration),
          known(of.percentiles_ns["99"], duration),
          duration(of.max_ns),
          duration(of.total_ns),
          known(gc_time(of.time_ns), ns => part(ns, of.total_ns)),
          grouped(of.unfinished),
        ]),
      true,
    ),
    table(
      "the slowest of each",
      [["span", "text"], ["length"], ["at"], ["domain"], ["pauses in it"], ["longest pause"]],
      () =>
        found.flatMap(of =>
          of.slowest.map(span => [
            of.name,
            duration(span.duration_ns),
            since(span.begin_ns),
            span.domain,
            grouped(span.pauses),
            duration(span.longest_pause_ns),
          ]),
        ),
    ),
  );
}

const time_titles = [["own code"], ["GC"], ["without CPU"], ["blocked"]];
const gc_time = of => (of.gc === null ? null : of.gc + of.domains);
const time_cells = of => [of.code, gc_time(of), of.no_cpu, of.blocked].map(ns => known(ns, duration));

function stalls() {
  const found = data.stalls.programs
    .flatMap(of => of.stalls.map(stall => ({ ...stall, program: of })))
    .sort((a, b) => b.duration_ns - a.duration_ns)
    .slice(0, 20);
  if (data.stalls.programs.length === 0) return "";
  if (found.length === 0)
    return section(
      "stalls",
      "Stalls of event loops",
      `No turn of an event loop lasted ${duration(data.stalls.min_ns)} or longer.`,
    );
  return section(
    "stalls",
    "Stalls of event loops",
    `Turns of an event loop of ${duration(data.stalls.min_ns)} and longer that are far above the median, ` +
      "by what their time was spent on.",
    bars(
      "longest stalls",
      found.map(of => [`${who(of.program)} at ${since(of.begin_ns)}`, span_parts(of.time_ns)]),
      duration,
    ),
    span_legend(),
    table(
      "stalls as a table",
      [
        ["process", "text"],
        ["thread"],
        ["at"],
        ["length"],
        ...time_titles,
        ["blocked in", "text"],
        ["fiber or task", "text"],
        ["user span", "text"],
        ["stack", "long"],
      ],
      () =>
        found.map(of => [
          who(of.program),
          of.tid,
          since(of.begin_ns),
          duration(of.duration_ns),
          ...time_cells(of.time_ns),
          of.blocked_in_ns > 0 ? of.blocked_in : "",
          of.task || "",
          of.span || "",
          of.stacks
            ? of.stacks
                .slice(0, 1)
                .map(seen => seen.stack.slice(0, 6).map(frame).join(" ← "))
                .join("")
            : "",
        ]),
      true,
    ),
  );
}

function task_name(of) {
  return of.id + (of.name ? ` "${of.name}"` : of.context_name ? ` of "${of.context_name}"` : "");
}

const waiting = wait =>
  `${task_name(wait.task)} ${wait.certain ? "" : "up to "}${duration(wait.ns)}` +
  (wait.operation ? ` (${wait.operation})` : "");

function task_tables(programs) {
  const operations = programs
    .flatMap(program => [
      { ...program.waits_to_run, name: "to run", program },
      ...program.operations.map(of => ({ ...of, program })),
    ])
    .filter(of => of.count > 0)
    .sort((a, b) => b.max_ns - a.max_ns);
  const failures = programs.flatMap(program => program.failures.map(of => ({ ...of, program })));
  return [
    table(
      "what they waited for",
      [["process", "text"], ["waited for", "text"], ["times"], ["total"], ["longest"], ["by", "text"]],
      () =>
        operations.map(of => [
          who(of.program),
          of.name,
          grouped(of.count),
          duration(of.total_ns),
          duration(of.max_ns),
          task_name(of.task),
        ]),
      true,
    ),
    failures.length === 0
      ? ""
      : table(
          "those that failed",
          [["process", "text"], ["fiber or task", "text"], ["at"], ["error", "long"]],
          () => failures.map(of => [who(of.program), task_name(of.task), since(of.failed_ns), of.error]),
          true,
        ),
  ];
}

function tasks() {
  const programs = data.tasks.programs;
  if (programs.length === 0) return "";
  const found = programs
    .flatMap(of => of.longest.map(run => ({ ...run, program: of })))
    .sort((a, b) => b.duration_ns - a.duration_ns)
    .slice(0, 20);
  const several = programs.length > 1;
  const counts = programs.map(of => {
    const parts = ["finished", "failed", "cancelled", "running", "runnable", "suspended"]
      .filter(what => of[what] > 0)
      .map(what => `${grouped(of[what])} ${what}`);
    return `${who(of)}: ${parts.join(", ")}.`;
  });
  return section(
    "tasks",
    "Fibers and tasks",
    counts.join(" "),
    found.length === 0
      ? soft(`None ran for ${duration(data.tasks.min_ns)} without letting others run.`)
      : [
          soft("The longest times in which one ran without letting others run, by what they were spent on."),
          bars(
            "longest runs",
            found.map(of => [
              `${task_name(of.task)}${several ? ` of ${who(of.program)}` : ""} at ${since(of.begin_ns)}`,
              span_parts(of.time_ns),
            ]),
            duration,
          ),
          span_legend(),
          table(
            "runs as a table",
            [
              ["process", "text"],
              ["fiber or task", "text"],
              ["at"],
              ["length"],
              ["kept waiting", "long"],
              ["domain"],
              ...time_titles,
            ],
            () =>
              found.map(of => [
                who(of.program),
                task_name(of.task),
                since(of.begin_ns),
                duration(of.duration_ns),
                of.waits.map(waiting).join(", "),
                of.domain,
                ...time_cells(of.time_ns),
              ]),
            true,
          ),
        ],
    task_tables(programs),
  );
}

function flames() {
  if (data.profiles.length === 0)
    return section("flames", "Flame graphs", "This run has no stacks: --stacks takes them.");
  const boxes = data.profiles.map((profile, i) => {
    const box = html("div", {}),
      details = html("details", {}, html("summary", {}, profile.title), html("p", {}, profile.sentence), box);
    const open = () => {
      if (details.open && !box.firstChild) flameGraph(profile, box);
    };
    details.addEventListener("toggle", open);
    return { details, open, is_first: i === 0 };
  });
  for (const of of boxes)
    if (of.is_first)
      pending.push(() => {
        of.details.open = true;
        of.open();
      });
  return section(
    "flames",
    "Flame graphs",
    "",
    boxes.map(of => of.details),
  );
}

function method() {
  const counts = data.pauses.counts,
    total = data.stats.total,
    run = data.run,
    drops = Object.entries(data.counts.drops);
  const rows = [
    ["words of rings that were lost", total.lost_words],
    ["words overwritten before the ring was read", counts.words_before],
    ["rings that were not read to their end", counts.rings_missed],
    ["pauses without an end", counts.unfinished && Object.values(counts.unfinished).reduce((sum, count) => sum + count, 0)],
    ["ends of phases without a begin", counts.ends_without_begin],
    ["scheduler events that were dropped", counts.scheduler_dropped],
    ["switches that contradict others", counts.scheduler_contradictions],
    ["gaps of probes", counts.unprobed],
    ["events out of order", data.counts.late],
    ["times that memory ran short", data.counts.forced],
    ...drops
      .filter(([, count]) => count > 0)
      .map(([kind, count]) => [`records that the kernel had no room for: ${kind}`, count]),
  ];
  const self = data.counts.self;
  return section(
    "method",
    "What was lost, and how it was measured",
    "",
    table(
      "what was lost",
      [["what", "text"], ["count"]],
      () => rows.map(([what, count]) => [what, known(count, grouped)]),
      true,
    ),
    html(
      "p",
      {},
      "A pause is the outermost runtime span of a domain, from the events that OCaml's runtime writes into its ring. ",
      counts.scheduler_seen
        ? counts.all_switches_seen
          ? "All switches of the scheduler were traced."
          : "Switches of the scheduler were traced from and to OCaml threads only: " +
              "of others that had a CPU the first and the last are known (--sched all traces all)."
        : "No scheduler events were traced: what threads did in pauses is unknown.",
      " Stacks were ",
      data.profiles.length > 0 ? "sampled." : "not sampled.",
    ),
    html(
      "p",
      {},
      "Scores: the longest pause is a warning from 10 ms and bad from 100 ms, the 99th percentile from 5 ms and 50 ms; " +
        "time in the GC from 10% and 30%; arrivals from 5 ms and 50 ms; waits for a CPU from 10% and 30% of the time " +
        "in pauses; stalls from 50 ms and 500 ms. A heap that grows all the time is a warning, bad if it doubled and " +
        "grew by 64 MB.",
    ),
    html(
      "p",
      {},
      "Figures are those of latency, pauses and stats of the same events. Percentiles have three digits. " +
        `Charts over time have at most 480 columns, here of ${duration(data.series.width_ns)}. ` +
        (data.processes > data.stats.processes.length
          ? `Of ${data.processes} processes those ${data.stats.processes.length} with most time in the GC are listed; ` +
            "sums are of all."
          : ""),
    ),
    table(
      "the run",
      [
        ["what", "text"],
        ["value", "long"],
      ],
      () => [
        ["host", run.host || "unknown"],
        ["kernel", run.kernel || "unknown"],
        ["machine", run.machine || "unknown"],
        ["version", "rtev-bpf " + data.version],
        ["command line", run.command_line.join(" ")],
        ["duration", duration(data.pauses.end_ns - data.pauses.start_ns)],
        ["events", known(total.events, grouped)],
        ["CPU time of the tracer", known(self.cpu_ns, duration)],
        ["memory of the tracer", known(self.max_rss_bytes, size)],
      ],
    ),
  );
}

function processes() {
  const of_latency = new Map(data.latency.processes.map(of => [of.pid, of]));
  return table(
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
          known(of.wall_ns, duration),
          known(of.cpu_ns, duration),
          percent(of.gc_share),
          pauses ? grouped(pauses.count) : known(of.gc_ns, () => "0"),
          pauses && pauses.count ? known(pauses.percentiles_ns["99"], duration) : "",
          pauses && pauses.count ? duration(pauses.max_ns) : "",
          known(of.words.minor, words => size(words * 8)),
          of.heap_words ? size(of.heap_words.last * 8) : "unknown",
          known(of.events, grouped),
        ];
      }),
  );
}

const pending = [];
async function show() {
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent), c => c.charCodeAt(0));
  const text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  // Names may hold characters that are not seen, or turn the text around them.
  const odd = /[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]/g,
    hex = byte => "\\x" + byte.toString(16).toUpperCase().padStart(2, "0"),
    seen = c => Array.from(new TextEncoder().encode(c), hex).join("");
  data = JSON.parse(text, (_, value) => (typeof value === "string" ? value.replace(odd, seen) : value));
  for (const of of [data.latency, data.pauses, data.spans, data.stalls, data.tasks])
    of.processes ||= of.pauses ||= of.groups ||= of.spans ||= of.programs ||= [];
  data.pauses.mmu ||= [];
  const sections = [
    heat_map(),
    causes(),
    mmu(),
    worst(),
    heap(),
    rates(),
    phases(),
    arrivals(),
    spans(),
    stalls(),
    tasks(),
    flames(),
    method(),
  ]
    .flat()
    .filter(of => of);
  const links = sections.map(of => {
    const title = of.querySelector("h2");
    return html("a", { href: "#" + title.id }, title.textContent);
  });
  const main = document.getElementById("main");
  document.getElementById("loading").remove();
  main.append(
    processes(),
    html("nav", { "aria-label": "sections" }, links),
    ...sections,
  );
  redraw();
  for (const one of pending) one();
  let timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(redraw, 120);
  });
  document.documentElement.dataset.ready = "yes";
}
show().catch(error => {
  const text = `The charts cannot be drawn: ${error.message}. They need a browser of 2023 or later.`;
  (document.getElementById("loading") || document.getElementById("main").appendChild(html("p"))).textContent = text;
});
