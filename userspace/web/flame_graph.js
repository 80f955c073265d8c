// SPDX-License-Identifier: MIT
// Draws what flame_graph_json() has into an element. It loads nothing. Names come by textContent and onto the canvas,
// never as HTML.
function flameGraph(data, box) {
const make = (tag, name, text) => {
  const one = document.createElement(tag);
  if (name) one.className = name;
  if (text) one.textContent = text;
  return one;
};
const bar = make("div", "flame-bar"), search = make("input"), reset = make("button", "", "whole graph");
const found = make("span", "flame-soft"), legend = make("span"), graph = make("div", "flame-graph");
const canvas = make("canvas", "flame-canvas"), tip = make("div", "flame-tip"), details = make("details", "flame-table");
const table = make("table");
search.type = "search";
search.placeholder = "search functions (regular expression)";
search.setAttribute("aria-label", `search functions of ${data.title}`);
reset.type = "button";
found.setAttribute("role", "status");
canvas.tabIndex = 0;
canvas.setAttribute("role", "img");
canvas.setAttribute("aria-label", `flame graph of ${data.title}: the table below has its figures`);
tip.hidden = true;
bar.append(search, reset, found, legend);
graph.append(canvas);
details.append(make("summary", "", "the functions as a table"), table);
box.append(bar, graph, tip, make("p", "flame-soft", "A frame is as wide as its share; callers are above what they call. "
  + "Click a frame to enlarge it; arrow keys and Enter do the same; Escape shows the whole graph."), details);
const row = 19, nodes = [], kinds = data.kinds;
for (let i = 0; i < data.nodes.length; i += 4)
  nodes.push({ id: i / 4, parent: data.nodes[i], name: data.names[data.nodes[i + 1]], weight: data.nodes[i + 2],
               samples: data.nodes[i + 3], children: [], depth: 0, deepest: 0 });
for (const node of nodes.slice(1)) {
  nodes[node.parent].children.push(node);
  node.depth = nodes[node.parent].depth + 1;
}
for (let i = nodes.length - 1; i >= 0; --i) {
  const node = nodes[i];
  node.deepest = Math.max(node.deepest, node.depth);
  node.children.sort((a, b) => b.weight - a.weight || a.id - b.id);
  if (i > 0) nodes[node.parent].deepest = Math.max(nodes[node.parent].deepest, node.deepest);
}
const root = nodes[0], whole = root.weight || 1;
root.name = ["all", "", kinds.indexOf("process")];

const share = weight => { const p = weight / whole * 100; return p === 0 || p >= 10 ? p.toFixed(0) + "%" : p < 0.01 ? "<0.01%" : p.toFixed(p < 1 ? 2 : 1) + "%"; };
function amount(weight) {
  const scale = data.unit === "ns" ? [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]
    : data.unit === "bytes" ? [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]] : [[1, data.unit]];
  const [factor, unit] = scale.find(([factor]) => weight >= factor) || scale[scale.length - 1];
  return (weight / factor).toPrecision(weight / factor >= 1000 ? 4 : 3).replace(/e\+.*/, "") + " " + unit;
}

const hues = { ocaml: [34, 88, 63], c: [205, 70, 68], kernel: [268, 55, 74], gc: [2, 72, 66], process: [210, 8, 76], other: [210, 8, 82] };
function color(node) {
  const kind = kinds[node.name[2]];
  const [hue, saturation, light] = hues[kind] || hues.other;
  let hash = 0;
  for (const c of node.name[0]) hash = (hash * 31 + c.codePointAt(0)) >>> 0;
  return `hsl(${hue + hash % 19 - 9} ${saturation}% ${light + hash % 9 - 4}%)`;
}
for (const [kind, label] of [["ocaml", "OCaml"], ["gc", "GC"], ["c", "C"], ["kernel", "kernel"], ["other", "unknown"]]) {
  const key = document.createElement("span"), swatch = document.createElement("i");
  key.className = "flame-key";
  swatch.style.background = `hsl(${hues[kind][0]} ${hues[kind][1]}% ${hues[kind][2]}%)`;
  key.append(swatch, label + "\u2003");
  legend.append(key);
}

const context = canvas.getContext("2d");
let zoomed = root, selected = root, matches = null, drawn = [], width = 0, height = 0;

function draw() {
  const rows = zoomed.deepest + 1, scale = window.devicePixelRatio || 1;
  width = graph.clientWidth;
  height = Math.min(rows * row, Math.max(window.innerHeight, 200));
  graph.style.height = rows * row + "px";
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  const scrolled = Math.min(Math.max(0, -graph.getBoundingClientRect().top), rows * row - height);
  drawn = [];
  const paint = (node, x, w) => {
    const y = node.depth * row - scrolled;
    if (y > height || w < 0.4) return false;
    if (y > -row) {
      const isFound = matches && matches.has(node);
      context.fillStyle = isFound ? "#e254d8" : color(node);
      context.globalAlpha = matches && !isFound ? 0.45 : node.depth < zoomed.depth ? 0.6 : 1;
      context.fillRect(x, y, Math.max(w - 0.6, 0.4), row - 1);
      context.globalAlpha = 1;
      if (node === selected) { context.strokeStyle = "#0969da"; context.lineWidth = 2; context.strokeRect(x + 1, y + 1, Math.max(w - 2.6, 1), row - 3); }
      if (w > 28) {
        context.fillStyle = "#1b1f24";
        let text = node.name[0];
        const room = Math.floor((w - 8) / 6.1);
        if (text.length > room) text = text.slice(0, Math.max(room - 1, 0)) + "…";
        context.save();
        context.beginPath();
        context.rect(x, y, w - 2, row);
        context.clip();
        context.fillText(text, x + 4, y + row / 2);
        context.restore();
      }
      drawn.push({ node, x, w, y });
    }
    return true;
  };
  for (let node = zoomed; node !== root; ) { node = nodes[node.parent]; paint(node, 0, width); }
  const open = [[zoomed, 0, width]];
  while (open.length > 0) {
    const [node, x, w] = open.pop();
    if (!paint(node, x, w)) continue;
    let left = x;
    for (const child of node.children) {
      const size = node.weight > 0 ? w * child.weight / node.weight : 0;
      if (size < 0.4) break;
      open.push([child, left, size]);
      left += size;
    }
  }
}

const at = event => {
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  return drawn.find(one => x >= one.x && x < one.x + one.w && y >= one.y && y < one.y + row)?.node;
};
function describe(node) {
  tip.replaceChildren();
  const line = (tag, text) => { if (!text) return; const one = document.createElement(tag); one.textContent = text; tip.append(one); };
  line("b", node.name[0]);
  line("span", node.name[1]);
  const own = node.weight - node.children.reduce((sum, child) => sum + child.weight, 0);
  line("span", `${share(node.weight)} · ${amount(node.weight)} · ${node.samples} samples`);
  if (node.children.length > 0 && own > 0) line("span", `itself ${share(own)}`);
  tip.hidden = false;
}
function place(x, y) {
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, window.innerWidth - box.width - 8)) + "px";
  tip.style.top = Math.max(4, y + 18 + box.height > window.innerHeight ? y - box.height - 10 : y + 18) + "px";
}
function zoom(node) { zoomed = selected = node; draw(); }
function show(node) {
  selected = node;
  draw();
  const one = drawn.find(one => one.node === node);
  if (!one) return;
  describe(node);
  const box = canvas.getBoundingClientRect();
  place(box.left + one.x, box.top + one.y);
}
canvas.addEventListener("mousemove", event => {
  const node = at(event);
  if (!node) { tip.hidden = true; return; }
  describe(node);
  place(event.clientX, event.clientY);
});
canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
canvas.addEventListener("click", event => { const node = at(event); if (node) zoom(node); });
canvas.addEventListener("keydown", event => {
  const parent = nodes[selected.parent], siblings = parent.children, index = siblings.indexOf(selected);
  const next = { ArrowUp: parent, ArrowDown: selected.children[0], ArrowLeft: siblings[index - 1], ArrowRight: siblings[index + 1] }[event.key];
  if (event.key === "Enter") zoom(selected);
  else if (next) show(next);
  else return;
  event.preventDefault();
});
window.addEventListener("keydown", event => { if (event.key === "Escape") { tip.hidden = true; zoom(root); } });
reset.addEventListener("click", () => zoom(root));
search.addEventListener("input", event => {
  const text = event.target.value;
  matches = null;
  found.textContent = "";
  if (text !== "") {
    let test = name => name.toLowerCase().includes(text.toLowerCase());
    try { const pattern = new RegExp(text, "i"); test = name => pattern.test(name); } catch { /* searched as it is */ }
    matches = new Set(nodes.slice(1).filter(node => test(node.name[0])));
    let weight = 0;
    const inside = new Uint8Array(nodes.length);
    for (const node of nodes.slice(1)) {
      inside[node.id] = inside[node.parent];
      if (matches.has(node) && !inside[node.id]) { weight += node.weight; inside[node.id] = 1; }
    }
    found.textContent = `${share(weight)} in ${matches.size} frames`;
  }
  draw();
});
window.addEventListener("scroll", draw, { passive: true });
window.addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

const add = (cells, tag) => {
  const line = table.insertRow();
  for (const text of cells) { const cell = document.createElement(tag); cell.textContent = text; line.append(cell); }
};
add(["self", "total", "samples", "function", "place"], "th");
for (const [name, self, total, samples] of data.functions)
  add([share(self), share(total), samples, data.names[name][0], data.names[name][1]], "td");
draw();
}
