// SPDX-License-Identifier: MIT
// The timelines of the worst pauses.
const states = [
  ["unknown", "unknown"],
  ["running", "run"],
  ["runnable: waits for a CPU", "ready"],
  ["blocked", "blocked"],
  ["blocked in the kernel", "blocked"],
  ["stopped", "blocked"],
];
const phase_color = name =>
  /barrier|condition|spin/.test(name)
    ? "wait"
    : /explicit|compact/.test(name)
      ? "explicit"
      : /minor/.test(name)
        ? "minor"
        : /mark/.test(name)
          ? "mark"
          : /sweep/.test(name)
            ? "sweep"
            : /stw|interrupt/.test(name)
              ? "stw"
              : /major/.test(name)
                ? "major"
                : "other";

function parts_of(pause) {
  const besides = pause.besides_ns,
    blocked = besides.sleeping + besides.uninterruptible + besides.stopped;
  return [
    ["waited for domains to stop", pause.start_wait_ns, "wait"],
    ["waited for domains to finish", pause.finish_wait_ns, "wait"],
    ["ran", besides.on_cpu, "run"],
    ["had no CPU", besides.runnable, "ready"],
    ["was blocked", blocked, "blocked"],
    ["unknown", besides.unknown, "unknown"],
  ].filter(([, ns]) => ns > pause.duration_ns / 1000);
}

function parts_bar(pause) {
  const parts = parts_of(pause);
  const draw = (box, width) => {
    let x = 0;
    for (const [name, ns, color] of parts) {
      const w = (ns / pause.duration_ns) * width;
      box.append(
        titled(
          "rect",
          { x, y: 0, width: max(w - 1, 0.5), height: 16, fill: `var(--${color})`, stroke: "var(--line)" },
          `${name}: ${duration(ns)}`,
        ),
      );
      x += w;
    }
    return 16;
  };
  return [
    chart("what the pause consists of", draw),
    legend(
      parts.map(([name, ns, color]) => [`${name} ${duration(ns)} (${part(ns, pause.duration_ns)})`, swatch(color)]),
    ),
  ];
}

// The flat lists of timeline_json.cpp as objects.
function unpack(timeline) {
  const groups = (list, length) =>
    Array.from({ length: list.length / length }, (_, i) => list.slice(i * length, (i + 1) * length));
  const lanes = new Map(),
    lane = domain => lanes.get(domain) || lanes.set(domain, { domain, phases: [], threads: [] }).get(domain);
  for (const of of timeline.domains)
    lane(of.domain).phases = groups(of.phases, 4).map(([depth, name, from, ns]) => ({
      depth,
      name: timeline.phases[name],
      from,
      ns,
    }));
  for (const of of timeline.threads)
    lane(of.domain).threads.push({
      tid: of.tid,
      states: groups(of.states, 6).map(([state, from, ns, cpu, other, woken]) => ({
        state,
        from,
        ns,
        cpu,
        by: other < 0 ? null : timeline.others[other],
        woken,
      })),
      samples: [],
    });
  const threads = [...lanes.values()].flatMap(of => of.threads);
  for (const [tid, at, stack, kind] of groups(timeline.samples, 4))
    threads.find(of => of.tid === tid)?.samples.push({ at, text: timeline.stacks[stack], kind });
  return [...lanes.values()];
}

function timeline_of(pause, index) {
  const timeline = data.timelines[data.timeline_of[index]];
  if (!timeline) return soft("What the domains did around it was not kept.");
  // Of a timeline that several pauses share the part around this one.
  const margin = pause.duration_ns / 6,
    begin = timeline.begin_ns,
    max_lanes = 24;
  const start = max(pause.begin_ns - margin - begin, 0),
    whole = min(pause.begin_ns + pause.duration_ns + margin, timeline.end_ns) - begin - start;
  const concerned = new Set([
    pause.domain,
    pause.blame.domain,
    ...pause.sections.flatMap(of => [of.last_to_arrive, of.last_to_end_minor]),
  ]);
  const busy = of =>
    of.threads.reduce(
      (sum, thread) => sum + thread.states.reduce((ns, state) => ns + (state.state === 1 ? state.ns : 0), 0),
      0,
    ) + of.phases.length;
  const all = unpack(timeline).sort(
    (a, b) =>
      concerned.has(b.domain) - concerned.has(a.domain) || (b.domain >= 0) - (a.domain >= 0) || busy(b) - busy(a),
  );
  const lanes = all.slice(0, max_lanes).sort((a, b) => (a.domain < 0) - (b.domain < 0) || a.domain - b.domain);
  const arrivals = new Map(
    pause.sections.flatMap(of =>
      of.domains
        .filter(domain => domain.arrived_ns)
        .map(domain => [
          `${of.id}/${domain.domain}`,
          [domain.domain, domain.arrived_ns, of.begin_ns, domain.domain === of.last_to_arrive],
        ]),
    ),
  );
  const draw = (box, width) => {
    const left = width > 560 ? 118 : 64,
      x = ns => left + min(max((ns - start) / whole, 0), 1) * (width - left - 6),
      strip_at = new Map();
    const pattern = `ready-${index}`;
    box.append(
      svg(
        "defs",
        {},
        svg(
          "pattern",
          { id: pattern, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
          svg("rect", { width: 5, height: 5, fill: "var(--back)" }),
          svg("rect", { width: 3, height: 5, fill: "var(--ready)" }),
        ),
      ),
    );
    const from = pause.begin_ns - begin,
      to = from + pause.duration_ns,
      shade = svg("rect", { x: x(from), y: 16, width: max(x(to) - x(from), 1), fill: "var(--window)" });
    box.append(shade);
    let y = 22;
    for (const of of lanes) {
      const visible = of.phases.filter(phase => phase.depth <= 6 && x(phase.from + phase.ns) - x(phase.from) >= 0.3),
        deepest = max(-1, ...visible.map(phase => phase.depth));
      const lives = of.threads.filter(thread =>
        thread.states.some(
          state => (state.state === 1 || state.state === 2) && x(state.from + state.ns) > x(state.from),
        ),
      );
      const shown = (
        lives.length > 0 ? lives : of.threads.filter(thread => thread.states.some(state => state.state !== 0))
      )
        .sort((a, b) => b.states.length - a.states.length)
        .slice(0, of.domain < 0 ? 4 : 3);
      if (deepest < 0 && shown.length === 0) continue;
      box.append(
        svg(
          "text",
          { class: of.domain === pause.domain ? "label strong" : "label", x: 0, y: y + 11 },
          of.domain < 0 ? "others" : width > 560 ? `domain ${of.domain}` : `dom ${of.domain}`,
        ),
      );
      for (const phase of visible) {
        const w = max(x(phase.from + phase.ns) - x(phase.from), 0.5),
          at = y + phase.depth * 13;
        box.append(
          titled(
            "rect",
            {
              x: x(phase.from).toFixed(2),
              y: at,
              width: w.toFixed(2),
              height: 12,
              fill: `var(--${phase_color(phase.name)})`,
            },
            `${phase.name}: ${duration(phase.ns)}, domain ${of.domain}`,
          ),
        );
        if (w > phase.name.length * 6.4 + 8)
          box.append(
            svg("text", { x: x(phase.from) + 4, y: at + 10, "pointer-events": "none", class: "in" }, phase.name),
          );
      }
      y += (deepest + 1) * 13 + 2;
      for (const thread of shown) {
        strip_at.set(thread.tid, y);
        if (width > 560) box.append(svg("text", { x: 8, y: y + 9, class: "small" }, `thread ${thread.tid}`));
        for (const state of thread.states) {
          const w = x(state.from + state.ns) - x(state.from),
            [name, color] = states[state.state];
          if (w < 0.15) continue;
          const by =
            state.by && state.state === 2
              ? `, ${state.woken ? "woken by" : "the CPU went to"} ${state.by[2] || "?"} (pid ${state.by[0]})`
              : "";
          box.append(
            titled(
              "rect",
              {
                x: x(state.from).toFixed(2),
                y: state.state === 1 ? y : y + 1,
                width: max(w, 0.5).toFixed(2),
                height: state.state === 1 ? 10 : 8,
                fill: state.state === 2 ? `url(#${pattern})` : `var(--${color})`,
                stroke: state.state === 2 ? "var(--ready)" : null,
                "stroke-width": 0.5,
              },
              `thread ${thread.tid} ${name}: ${duration(state.ns)}${state.cpu >= 0 ? `, CPU ${state.cpu}` : ""}${by}`,
            ),
          );
        }
        for (const sample of thread.samples.filter(sample => sample.at >= start && sample.at <= start + whole))
          box.append(
            titled(
              "path",
              { d: `M${x(sample.at) - 3} ${y + 15}l3 -5l3 5z`, fill: "var(--text)" },
              `${sample.kind === 1 ? "slept" : sample.kind === 2 ? "allocated" : "ran"} in ${sample.text}`,
            ),
          );
        y += thread.samples.length > 0 ? 17 : 13;
      }
      for (const [domain, arrived, asked, is_last] of arrivals.values())
        if (domain === of.domain && arrived >= begin + start && arrived <= begin + start + whole)
          box.append(
            titled(
              "line",
              {
                x1: x(arrived - begin),
                x2: x(arrived - begin),
                y1: y - 24,
                y2: y,
                stroke: is_last ? "var(--bad)" : "var(--text)",
                "stroke-width": is_last ? 3 : 1.5,
              },
              `domain ${domain} arrived ${duration(arrived - asked)} after the request` +
                (is_last ? ", as the last one" : ""),
            ),
          );
      y += 6;
    }
    for (const thread of lanes.flatMap(of => of.threads))
      for (const state of thread.states
        .filter(
          state =>
            state.woken &&
            state.by &&
            strip_at.has(state.by[1]) &&
            strip_at.has(thread.tid) &&
            state.by[1] !== thread.tid &&
            state.from >= start &&
            state.from <= start + whole,
        )
        .slice(0, 20)) {
        const at = x(state.from),
          to_y = strip_at.get(thread.tid) + 5;
        box.append(
          titled(
            "path",
            {
              d: `M${at} ${strip_at.get(state.by[1]) + 5}L${at} ${to_y}M${at - 3} ${to_y}h6`,
              class: "wake",
              fill: "none",
            },
            `thread ${state.by[1]} woke thread ${thread.tid}`,
          ),
        );
      }
    shade.setAttribute("height", y - 14);
    for (const at of ticks(start - from, start + whole - from, width / 130))
      box.append(
        svg(
          "text",
          { x: min(x(at + from), width - 24), y: 11, "text-anchor": "middle" },
          at === 0 ? "begin" : `${at < 0 ? "-" : "+"}${short(Math.abs(at))}`,
        ),
        svg("line", { class: "axis", x1: x(at + from), x2: x(at + from), y1: 14, y2: 19 }),
      );
    return y;
  };
  const used = new Set(lanes.flatMap(of => of.phases.map(phase => phase_color(phase.name))));
  const names = {
    minor: "minor collection",
    mark: "marking",
    sweep: "sweeping",
    major: "major slice",
    wait: "waits for domains",
    stw: "stop-the-world section",
    explicit: "explicit collection",
    other: "other phases",
  };
  const rows = () =>
    all
      .flatMap(of => [
        ...of.phases.map(phase => [of.domain, phase.name, phase.from, phase.ns, ""]),
        ...of.threads.flatMap(thread =>
          thread.states
            .filter(state => state.state !== 0)
            .map(state => [
              of.domain,
              `thread ${thread.tid} ${states[state.state][0]}`,
              state.from,
              state.ns,
              state.by && state.state === 2
                ? `${state.woken ? "woken by" : "CPU went to"} ${state.by[2]} (pid ${state.by[0]})`
                : "",
            ]),
        ),
      ])
      .filter(row => row[2] < pause.begin_ns - begin + pause.duration_ns && row[2] + row[3] > pause.begin_ns - begin)
      .sort((a, b) => b[3] - a[3])
      .slice(0, 400);
  return [
    chart(`timeline of pause ${index + 1}`, draw),
    legend(
      [...used]
        .map(color => [names[color], swatch(color)])
        .concat([
          ["running", swatch("run")],
          ["runnable, without a CPU", swatch("ready")],
          ["blocked", swatch("blocked")],
          ["arrived last", svg("line", { x1: 9, x2: 9, y1: 0, y2: 12, stroke: "var(--bad)", "stroke-width": 3 })],
          ["stack sample", svg("path", { d: "M5 10l4 -7l4 7z", fill: "var(--text)" })],
        ]),
    ),
    soft(
      all.length > lanes.length ? `${all.length - lanes.length} more domains are in the table only. ` : "",
      timeline.is_cut ? "Very short phases, or the time before, are left out." : "",
    ),
    table(
      "timeline as a table, longest first",
      [["domain"], ["what", "text"], ["begin"], ["length"], ["by", "text"]],
      () =>
        rows().map(row => [
          row[0] < 0 ? "" : row[0],
          row[1],
          `${row[2] + begin < pause.begin_ns ? "-" : "+"}${duration(Math.abs(row[2] + begin - pause.begin_ns))}`,
          duration(row[3]),
          row[4],
        ]),
    ),
  ];
}
