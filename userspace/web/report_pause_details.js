// SPDX-License-Identifier: MIT
// What stands beside the timelines of pauses: tables, stacks, the section itself.
const frame = of =>
  `${of.function || "[unknown]"}${of.file ? ` ${of.file.replace(/.*\//, "")}${of.line ? ":" + of.line : ""}` : ""}`;
function stack_rows(name, stacks) {
  return (stacks || []).map(seen => [
    name,
    `${seen.kind === "off-cpu" ? "slept" : "ran"} ${duration(seen.ns)}`,
    `${seen.samples} of ${seen.of_samples}`,
    seen.stack.slice(0, 12).map(frame).join(" ← "),
  ]);
}

function pause_details(of, i) {
  const stacks = [
    ...stack_rows(`domain ${of.domain}, in the pause`, of.stacks),
    ...of.waits_for_cpu.flatMap(wait =>
      stack_rows(`${wait.by ? wait.by.comm : "?"}, ${wait.had === "throughout" ? "which had" : "seen on"} the CPU`, wait.stacks),
    ),
    ...of.sections.flatMap(section =>
      section.domains.flatMap(domain => [
        ...stack_rows(`domain ${domain.domain}, before it arrived`, domain.before?.stacks),
        ...stack_rows("who had its CPU", domain.before?.holder_stacks),
      ]),
    ),
  ];
  const asked = section => domain => known(domain.arrived_ns, ns => duration(max(ns - section.begin_ns, 0)));
  return [
    table("phases of the pause", [["phase", "text"], ["times"], ["total"], ["own"]], () =>
      of.phases.map(phase => [
        "\u2003".repeat(phase.depth) + phase.name,
        grouped(phase.count),
        duration(phase.total_ns),
        duration(phase.own_ns),
      ]),
    ),
    of.sections.length === 0
      ? ""
      : table(
          `who arrived when (${counted(of.section_count, "stop-the-world section", "stop-the-world sections")})`,
          [
            ["section"],
            ["domain"],
            ["thread"],
            ["arrived after"],
            ["ran"],
            ["without CPU"],
            ["blocked"],
            ["remark", "text"],
          ],
          () =>
            of.sections.flatMap((section, number) =>
              section.domains.map(domain => {
                const time = domain.before?.time_ns,
                  time_of = ns => known(time && ns(time), duration);
                return [
                  number + 1,
                  domain.domain,
                  domain.tid || "unknown",
                  asked(section)(domain),
                  time_of(of => of.on_cpu),
                  time_of(of => of.runnable),
                  time_of(of => of.sleeping === null ? null : of.sleeping + of.uninterruptible + of.stopped),
                  [
                    domain.leads ? "leads" : "",
                    section.last_to_arrive === domain.domain ? "arrived last" : "",
                    section.last_to_end_minor === domain.domain ? "finished last" : "",
                    domain.role === "backup" ? "backup thread" : "",
                  ]
                    .filter(text => text)
                    .join(", "),
                ];
              }),
            ),
        ),
    of.waits_for_cpu.length + of.wakers.length === 0
      ? ""
      : table("who had its CPU, and who woke it", [["thread", "text"], ["what", "text"], ["times"], ["time"]], () => [
          ...of.waits_for_cpu.map(wait => [
            wait.by ? wait.by.comm + ` (pid ${wait.by.pid})` : "unknown",
            !wait.by
              ? ""
              : (wait.had === "throughout" ? "had " : `was ${wait.had.replaceAll("_", " ")} on `) +
                (wait.cpu === null ? "the CPU" : "CPU " + wait.cpu),
            wait.times,
            duration(wait.ns),
          ]),
          ...of.wakers.map(waker => [`${waker.comm} (pid ${waker.pid})`, "woke it", waker.times, ""]),
        ]),
    stacks.length === 0
      ? ""
      : table(
          "stacks",
          [["thread", "text"], ["what", "text"], ["samples"], ["stack, innermost first", "long"]],
          () => stacks,
          i === 0,
        ),
    data.input
      ? soft(
          "Its events: ",
          html(
            "code",
            {},
            `rtev-bpf dump ${data.input} --from ${max(run_seconds(of.begin_ns) - 0.001, 0).toFixed(3)} ` +
              `--to ${(run_seconds(of.begin_ns + of.duration_ns) + 0.001).toFixed(3)}`,
          ),
        )
      : "",
  ];
}

function worst() {
  const pauses = data.pauses.pauses;
  if (pauses.length === 0) return "";
  const articles = pauses.map((of, i) => {
    const box = html(
      "details",
      { class: "pause", id: `pause-${i + 1}` },
      html(
        "summary",
        {},
        html("b", {}, `${i + 1} · ${duration(of.duration_ns)}`),
        ` · ${who(of)} domain ${of.domain}, at ${since(of.begin_ns)}: ${of.blame.text}`,
      ),
    );
    const open = () => {
      if (box.open && box.childElementCount === 1) {
        box.append(...[parts_bar(of), timeline_of(of, i), pause_details(of, i)].flat(3).filter(child => child));
        redraw();
      }
    };
    box.addEventListener("toggle", open);
    if (i === 0) {
      box.open = true;
      open();
    }
    return box;
  });
  const go = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") {
      target.open = true;
      target.scrollIntoView();
      target.querySelector("summary").focus({ preventScroll: true });
    }
  };
  addEventListener("hashchange", go);
  queueMicrotask(go);
  return section(
    "worst",
    "The worst pauses",
    "Each lane is a domain: above its phases, below what its threads did. The shaded time is the pause.",
    articles,
  );
}
