// SPDX-License-Identifier: MIT
// Everything over time, and MMU.
const section = (id, title, text, ...rest) =>
  html("section", { "aria-labelledby": id }, html("h2", { id }, title), text ? soft(text) : "", ...rest);
// The time of the run as an x axis.
function time_axis(width, left = 64, right = 12) {
  const begin = data.pauses.start_ns,
    end = max(data.pauses.end_ns, begin + 1);
  return {
    x: ns => left + ((ns - begin) / (end - begin)) * (width - left - right),
    begin,
    end,
    ticks: ticks(0, (end - begin) / 1e9, width / 110).map(at => [begin + at * 1e9, `${+at.toPrecision(6)} s`]),
  };
}
const length_from = index => (index === 0 ? 0 : 1000 * 2 ** (index - 1));
const range = (from, width) => `${since(from)} to ${since(from + width)}`;

function heat_map() {
  const series = data.series,
    cells = [];
  for (let i = 0; i < series.pauses.length; i += 3) cells.push(series.pauses.slice(i, i + 3));
  if (cells.length === 0) return section("pauses", "Pauses over time", "No pause was seen.");
  const low = min(...cells.map(cell => cell[1])),
    high = max(...cells.map(cell => cell[1])),
    most = max(...cells.map(cell => cell[2]));
  const rows = high - low + 1;
  const draw = (box, width) => {
    const time = time_axis(width),
      row = max(12, min(22, 230 / rows)),
      top = 16,
      floor = top + rows * row,
      height = floor + 40;
    const y = index => floor - (index - low) * row,
      step = max(time.x(series.begin_ns + series.width_ns) - time.x(series.begin_ns), 1.4);
    const lengths = [];
    for (let index = low; index <= high + 1; ++index)
      if (row > 16 || (index - low) % 2 === 0) lengths.push([index, short(length_from(index))]);
    plot(box, width, height - 14, { bottom: 26 }, lengths, y, time.ticks, time.x);
    for (const [column, index, count] of cells) {
      const from = series.begin_ns + column * series.width_ns,
        share = most > 1 ? Math.log(count) / Math.log(most) : 1;
      box.append(
        titled(
          "rect",
          {
            x: time.x(from).toFixed(1),
            y: y(index + 1),
            width: step.toFixed(1),
            height: row - 1,
            fill: "var(--heat)",
            "fill-opacity": (0.25 + 0.75 * share).toFixed(2),
          },
          `${counted(count, "pause", "pauses")} of ${duration(length_from(index))} ` +
            `to ${duration(length_from(index + 1))}, ${range(from, series.width_ns)}`,
        ),
      );
    }
    // The windows of the MMU curve, for its links.
    for (const of of data.pauses.mmu) {
      if (!of.worst) continue;
      const from = max(time.x(of.worst.begin_ns), 64);
      box.append(
        titled(
          "rect",
          {
            class: "window",
            id: "window-" + of.window_ns,
            x: from,
            y: floor + 2,
            width: max(time.x(of.worst.begin_ns + of.window_ns) - from, 2),
            height: 5,
          },
          `worst ${short(of.window_ns)}: ${at_least(of.min)} left`,
        ),
      );
    }
    data.pauses.pauses.forEach((of, i) => {
      const index = of.duration_ns < 1000 ? 0 : min(Math.floor(Math.log2(of.duration_ns / 1000)) + 1, 24),
        x = min(max(time.x(of.begin_ns), 72), width - 20);
      box.append(
        svg(
          "a",
          {
            href: `#pause-${i + 1}`,
            "aria-label": `pause ${i + 1}, ${duration(of.duration_ns)} at ${since(of.begin_ns)}`,
          },
          svg("circle", { cx: x, cy: y(index) - row / 2, r: 9, fill: "var(--bad)", stroke: "var(--back)" }),
          svg(
            "text",
            { x, y: y(index) - row / 2 + 4, "text-anchor": "middle", class: i < 9 ? null : "small" },
            String(i + 1),
          ),
        ),
      );
    });
    return height - 14;
  };
  return section(
    "pauses",
    "Pauses over time",
    "Each cell counts pauses by when they began and how long they were; a stronger colour is more. " +
      "The numbers are the longest pauses, drawn below. The strips under the axis are the windows of time in which " +
      "pauses left least to the program.",
    chart("heat map of pauses by time and length", draw),
    table(
      "pauses over time as a table",
      [["time", "text"], ["pauses"], ["longest"], ["in pauses, all domains"], ["sections"]],
      () => {
        const counts = new Map();
        for (const [column, , count] of cells) counts.set(column, (counts.get(column) || 0) + count);
        return [...counts].map(([column, count]) => [
          range(series.begin_ns + column * series.width_ns, series.width_ns),
          grouped(count),
          duration(series.longest_ns[column]),
          duration(series.paused_ns[column]),
          grouped(series.sections[column]),
        ]);
      },
    ),
  );
}

function causes() {
  const found = data.pauses;
  if (found.groups.length === 0) return "";
  return section(
    "causes",
    "Causes of long pauses",
    `The ${counted(found.long_pauses, "pause", "pauses")} of ${duration(found.long_ns)} and longer, ` +
      "by what explains most of each.",
    table(
      "long pauses by cause",
      [
        ["pauses"],
        ["cause", "long"],
        ["process", "text"],
        ["least"],
        ["most"],
        ["together"],
        ["who had the CPU", "text"],
      ],
      () =>
        found.groups.map((of, i) => [
          grouped(of.pauses),
          data.causes[i],
          of.several_processes ? of.comm : who(of),
          duration(of.least_ns),
          duration(of.greatest_ns),
          duration(of.total_ns),
          of.cpu_had_by
            .slice(0, 3)
            .map(holder => `${holder.comm || "others"} ${duration(holder.ns)}`)
            .join(", "),
        ]),
      true,
    ),
  );
}

function pause_of_window(of) {
  const { begin_ns, pid, domain } = of.worst,
    end = begin_ns + of.window_ns;
  return data.pauses.pauses.findIndex(
    pause =>
      pause.pid === pid &&
      pause.domain === domain &&
      pause.begin_ns < end &&
      pause.begin_ns + pause.duration_ns > begin_ns,
  );
}

function mmu() {
  const windows = data.pauses.mmu;
  if (windows.length === 0)
    return section(
      "mmu",
      "What pauses left to the program",
      "The run was too short to tell, or events are missing.",
    );
  const lines = [
    ["min", "least (MMU)", "a", ""],
    ["p99_9", "99.9% of windows leave more", "b", "7 4"],
    ["p99", "99% of windows leave more", "c", "2 3"],
  ];
  const draw = (box, width) => {
    const height = 230,
      left = 64,
      low = Math.log(windows[0].window_ns),
      high = Math.log(windows[windows.length - 1].window_ns) || low + 1;
    const x = ns => left + 14 + (high > low ? (Math.log(ns) - low) / (high - low) : 0.5) * (width - left - 42),
      y = share => 12 + (1 - share) * (height - 40);
    plot(
      box,
      width,
      height,
      {},
      [0, 0.25, 0.5, 0.75, 1].map(share => [share, share * 100 + "%"]),
      y,
      windows.filter((_, i) => width > 500 || i % 2 === 0).map(of => [of.window_ns, short(of.window_ns)]),
      x,
    );
    for (const [name, , color, dash] of lines)
      box.append(
        line(
          windows.map(of => [x(of.window_ns), y(of[name])]),
          color,
          dash,
        ),
      );
    for (const of of windows)
      box.append(
        titled(
          "circle",
          { cx: x(of.window_ns), cy: y(of.min), r: 4, fill: "var(--a)" },
          `in any ${short(of.window_ns)} pauses left at least ${at_least(of.min)}`,
        ),
      );
    return height;
  };
  return section(
    "mmu",
    "What pauses left to the program",
    "Minimum mutator utilization (MMU): of any window of this length, pauses left at least this share to the " +
      "program. A request of 10 ms meets what 10 ms says.",
    chart("utilization by length of window", draw),
    legend(lines.map(([, text, color, dash]) => [text, stroke(color, dash)])),
    table(
      "utilization as a table, with the worst windows",
      [["window"], ["least"], ["99.9%"], ["99%"], ["worst window", "text"]],
      () =>
        windows.map(of => {
          if (!of.worst) return [short(of.window_ns), at_least(of.min), at_least(of.p99_9), at_least(of.p99), ""];
          const pause = pause_of_window(of),
            text = `from ${since(of.worst.begin_ns)}, pid ${of.worst.pid} domain ${of.worst.domain}`;
          return [
            short(of.window_ns),
            at_least(of.min),
            at_least(of.p99_9),
            at_least(of.p99),
            html(
              "span",
              {},
              html("a", { href: "#window-" + of.window_ns }, text),
              pause < 0 ? "" : [" ", html("a", { href: `#pause-${pause + 1}` }, `timeline of pause ${pause + 1}`)],
            ),
          ];
        }),
      true,
    ),
  );
}

// Lines over time. Lines: {name, color, dash, points: [[ns, value]]}.
function lines_chart(label, lines, show) {
  const points = lines.flatMap(of => of.points),
    top_value = max(...points.map(([, value]) => value), 0);
  if (top_value === 0) return [html("p", {}, `${label}: none in this time.`)];
  const draw = (box, width) => {
    const height = 190,
      time = time_axis(width, 72),
      y = value => height - 24 - (value / (top_value * 1.05)) * (height - 36);
    plot(
      box,
      width,
      height,
      { left: 72 },
      ticks(0, top_value * 1.05, 4).map(value => [value, show(value)]),
      y,
      time.ticks,
      time.x,
    );
    for (const of of lines) {
      if (of.points.length > 1)
        box.append(
          line(
            of.points.map(([at, value]) => [time.x(at), y(value)]),
            of.color,
            of.dash,
          ),
        );
      if (of.points.length === 1 || of.points.length < 40)
        for (const [at, value] of of.points)
          box.append(
            titled(
              "circle",
              { cx: time.x(at), cy: y(value), r: 2.5, fill: `var(--${of.color})` },
              `${of.name}: ${show(value)} at ${since(at)}`,
            ),
          );
    }
    return height;
  };
  return [chart(label, draw), legend(lines.map(of => [of.name, stroke(of.color, of.dash)]))];
}

const colors = ["a", "b", "c", "sweep", "explicit", "other"];
function heap() {
  const shown = data.stats.processes.filter(of => of.heap_words || of.live_words).slice(0, 6);
  if (shown.length === 0) return section("heap", "Heap", "No runtime reported the size of its heap.");
  const lines = shown.flatMap((of, i) =>
    [
      ["heap", of.heap_words, ""],
      ["live after cycles", of.live_words, "3 3"],
    ]
      .filter(([, trend]) => trend && trend.samples.length > 0)
      .map(([name, trend, dash]) => ({
        name: shown.length > 1 ? `${name} of ${who(of)}` : name,
        color: colors[i],
        dash,
        points: trend.samples.map(sample => [sample.ts, sample.words * 8]),
      })),
  );
  const growing = shown.filter(of => of.heap_words && of.heap_words.rises_all_the_time).map(who);
  return section(
    "heap",
    "Heap",
    growing.length > 0
      ? `The heap of ${growing.join(", ")} rises all the time.`
      : "Size of the major heap, and what of it was live after each major cycle.",
    lines_chart("size of the heap over time", lines, size),
    table(
      "heap as a table",
      [["process", "text"], ["figure", "text"], ["first"], ["last"], ["over"], ["rises all the time", "text"]],
      () =>
        shown.flatMap(of =>
          [
            ["heap", of.heap_words],
            ["live after cycles", of.live_words],
          ]
            .filter(([, trend]) => trend)
            .map(([name, trend]) => [
              who(of),
              name,
              size(trend.first * 8),
              size(trend.last * 8),
              duration(trend.span_ns),
              known(trend.rises_all_the_time, rises => (rises ? "yes" : "no")),
            ]),
        ),
    ),
    table("each value of the heap", [["figure", "text"], ["time"], ["size"]], () =>
      lines.flatMap(of => of.points.map(([at, value]) => [of.name, since(at), size(value)])),
    ),
  );
}

function rates() {
  if (data.stats.not_recorded) return "";
  const series = data.series,
    width = series.width_ns;
  if (series.columns === 0) return "";
  // Columns shorter than the time between collections would draw a comb: a point is the mean of several then.
  const used = max(series.minor_bytes.filter(bytes => bytes > 0).length, 1),
    each = used > series.columns * 0.9 ? 1 : max(min(Math.ceil((3 * series.columns) / used), series.columns >> 3), 1);
  const means = (values, unit_ns) =>
    values
      .filter((_, i) => i % each === 0)
      .map((_, i) => {
        const part = values.slice(i * each, (i + 1) * each),
          time = part.length * width;
        return [series.begin_ns + i * each * width + time / 2, (part.reduce((a, b) => a + b) * unit_ns) / time];
      });
  const total = data.stats.total.explicit,
    calls = Object.entries(total).filter(([, count]) => count > 0);
  return section(
    "rates",
    "Rates",
    "What domains allocated in minor heaps, and what of it survived. " +
      "A minor collection reports the allocations before it.",
    lines_chart(
      "allocation rate over time",
      [
        { name: "allocated per second", color: "a", points: means(series.minor_bytes, 1e9) },
        { name: "promoted per second", color: "b", dash: "6 3", points: means(series.promoted_bytes, 1e9) },
      ],
      bytes => size(bytes) + "/s",
    ),
    soft("Time in pauses, of all domains together: 100% is one domain that does nothing else."),
    lines_chart(
      "time in pauses over time",
      [
        {
          name: "time in pauses",
          color: "c",
          points: means(series.paused_ns, 1),
        },
      ],
      share => (share * 100).toFixed(share < 0.1 ? 1 : 0) + "%",
    ),
    html(
      "p",
      {},
      calls.length === 0
        ? "The program made no explicit collection."
        : `Explicit calls of the Gc module: ${calls.map(([name, count]) => `${name} ${grouped(count)}`).join(", ")}.`,
    ),
    table(
      "rates as a table",
      [["time", "text"], ["allocated"], ["promoted"], ["in pauses"], ["explicit calls"], ["events"], ["lost words"]],
      () =>
        series.minor_bytes.map((bytes, i) => [
          range(series.begin_ns + i * series.width_ns, series.width_ns),
          size(bytes),
          size(series.promoted_bytes[i]),
          duration(series.paused_ns[i]),
          grouped(series.explicit_calls[i]),
          grouped(series.events[i]),
          known(series.lost_words[i], grouped),
        ]),
    ),
  );
}

function arrivals() {
  const of = data.arrivals,
    series = data.series;
  if (of.count === 0)
    return section("arrivals", "Stop-the-world arrivals", "No section with several domains was seen.");
  // Of few sections there are no percentiles.
  const in_most = (percentile, most) =>
    of.percentiles_ns[percentile] === null ? "" : `${duration(of.percentiles_ns[percentile])} in ${most}, `;
  const points = series.longest_arrival_ns
    .map((ns, i) => [series.begin_ns + (i + 0.5) * series.width_ns, ns])
    .filter(([, ns]) => ns > 0);
  return section(
    "arrivals",
    "Stop-the-world arrivals",
    `A collection waits until all domains have stopped. ` +
      `In ${counted(of.count, "section", "sections")} the last domain arrived ` +
      `after ${in_most("50", "half of them")}${in_most("99", "99%")}${duration(of.max_ns)} at most.`,
    lines_chart(
      "longest arrival over time",
      [{ name: "longest time until all domains arrived", color: "b", points }],
      duration,
    ),
    table(
      "who arrived last",
      [["process", "text"], ["domain"], ["times last"], ["together"], ["longest"]],
      () =>
        of.last.map(domain => [
          who(domain),
          domain.domain,
          grouped(domain.sections),
          duration(domain.total_ns),
          duration(domain.longest_ns),
        ]),
      true,
    ),
    table("arrivals over time as a table", [["time"], ["longest arrival"]], () =>
      points.map(([at, ns]) => [since(at), duration(ns)]),
    ),
  );
}
