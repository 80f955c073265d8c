// SPDX-License-Identifier: MIT
// Elements, figures as text, charts with axes, tables. The files of the report share one scope.
// Names of programs reach the page as text nodes only, or by report_head().
"use strict";
const { max, min } = Math;
let data;
const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== ""));
  return element;
};
const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const soft = (...text) => html("p", { class: "soft" }, ...text);
const titled = (tag, attributes, text) => svg(tag, attributes, svg("title", {}, text));

const digits = value => (value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2));
// Of a round length: "100ms".
const short = ns => duration(ns).replace(/\.0+(?=\D)/, "");
const grouped = number => Math.round(number).toLocaleString("en-US");
function duration(ns) {
  if (ns < 999.5) return Math.round(ns) + "ns";
  for (const [unit, name] of [
    [1e3, "µs"],
    [1e6, "ms"],
  ])
    if (ns < unit * 999.5) return digits(ns / unit) + name;
  return ns < 999.5e9 ? digits(ns / 1e9) + "s" : grouped(ns / 1e9) + "s";
}
function size(bytes) {
  if (bytes < 1000) return Math.round(bytes) + " B";
  for (const [unit, name] of [
    [1e3, "kB"],
    [1e6, "MB"],
    [1e9, "GB"],
  ])
    if (bytes < unit * 999.5) return digits(bytes / unit) + " " + name;
  return digits(bytes / 1e12) + " TB";
}
const percent = share =>
  share === null || share === undefined ? "unknown" : (Math.round(share * 1000) / 10).toFixed(1) + "%";
// Of what is left: rounded down, as less than all must not look like all.
const at_least = share => (Math.floor(share * 1000) / 10).toFixed(1) + "%";
function part(of, whole) {
  const hundredths = whole > 0 ? Math.round((of / whole) * 100) : 0;
  return of > 0 && hundredths === 0 ? "<1%" : hundredths + "%";
}
const counted = (number, one, many) => `${grouped(number)} ${number === 1 ? one : many}`;
const since = ns => ((ns - data.pauses.start_ns) / 1e9).toFixed(3) + " s";
// Since tracing began, for --from and --to.
const run_seconds = ns => (ns - data.run.start) / 1e9;
const who = of => `${of.comm}/${of.pid}`;
const known = (value, show) => (value === null || value === undefined ? "unknown" : show(value));

// A table whose rows are made when it is opened. Columns: a title, and "text" or "long" if it has no figures.
function table(caption, columns, rows, is_open) {
  const details = html("details", is_open ? { open: "" } : {}, html("summary", {}, caption));
  const build = () => {
    if (details.lastChild.tagName === "DIV") return;
    const cell = (tag, text, i) =>
      html(
        tag,
        { class: columns[i][1] || null, scope: tag === "th" ? "col" : null },
        text instanceof Node ? text : String(text),
      );
    details.append(
      html(
        "div",
        { class: "scroll", tabindex: 0, role: "group", "aria-label": caption },
        html(
          "table",
          {},
          html(
            "thead",
            {},
            html(
              "tr",
              {},
              columns.map(([title], i) => cell("th", title, i)),
            ),
          ),
          html(
            "tbody",
            {},
            rows().map(row =>
              html(
                "tr",
                {},
                row.map((text, i) => cell("td", text, i)),
              ),
            ),
          ),
        ),
      ),
    );
  };
  details.addEventListener("toggle", build);
  if (is_open) build();
  return details;
}

// An SVG that is drawn anew when its width changes. `draw` gets the SVG and the width, and returns the height.
const drawn = [];
function chart(label, draw) {
  const box = svg("svg", { role: "group", "aria-label": label });
  let width = 0;
  const redraw = () => {
    const now = Math.floor(box.parentNode ? box.parentNode.clientWidth : 0);
    if (now < 100 || now === width) return;
    width = now;
    box.replaceChildren();
    const height = draw(box, width);
    box.setAttribute("height", height);
    box.setAttribute("viewBox", `0 0 ${width} ${height}`);
  };
  drawn.push(redraw);
  return html("figure", {}, box);
}
const redraw = () => {
  for (const one of drawn) one();
};

function ticks(from, to, most) {
  const step0 = (to - from) / max(most, 1),
    power = 10 ** Math.floor(Math.log10(step0 || 1));
  const step = [1, 2, 5, 10].map(by => by * power).find(step => step >= step0) || power;
  const all = [];
  for (let at = Math.ceil(from / step) * step; at <= to * 1.0000001; at += step) all.push(at);
  return all;
}
// A plot with axes: `x` and `y` map values to places.
function plot(box, width, height, { left = 64, bottom = 24, top = 10, right = 12 }, y_ticks, y, x_ticks, x) {
  const floor = height - bottom;
  for (const [value, text] of y_ticks)
    box.append(
      svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, text),
    );
  box.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: floor, y2: floor }));
  for (const [value, text] of x_ticks)
    box.append(svg("text", { x: min(x(value), width - right - 8), y: height - 6, "text-anchor": "middle" }, text));
}
const line = (points, color, dash) =>
  svg("path", {
    d: "M" + points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L"),
    fill: "none",
    stroke: `var(--${color})`,
    "stroke-width": 2,
    "stroke-dasharray": dash || null,
  });
function legend(entries) {
  return html(
    "div",
    { class: "legend" },
    entries.map(([text, draw]) =>
      html("span", {}, svg("svg", { viewBox: "0 0 18 12", "aria-hidden": "true" }, draw), text),
    ),
  );
}
const swatch = color =>
  svg("rect", { width: 18, height: 12, rx: 2, fill: color.startsWith("url") ? color : `var(--${color})` });
const stroke = (color, dash) =>
  line(
    [
      [0, 6],
      [18, 6],
    ],
    color,
    dash,
  );
