// SPDX-License-Identifier: MIT
#include "formats/profile/flame_graph_template.hpp"

namespace rtev {

std::string_view flame_graph_template() {
  // The data is JSON in an element that browsers do not execute.
  return R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@@</title>
<style>
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #59636e; --line: #d1d9e0; --raised: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14171b; --text: #e6e9ed; --soft: #9aa4af; --line: #343b43; --raised: #1d2127; }
}
* { box-sizing: border-box; }
body { margin: 0; padding: 12px 16px; background: var(--back); color: var(--text); font: 14px/1.45 system-ui, sans-serif; }
h1 { margin: 0 0 2px; font-size: 18px; }
p { margin: 0 0 8px; }
@@</style>
</head>
<body>
<h1 id="title"></h1>
<p id="sentence"></p>
<div id="flames"></div>
<noscript>This page needs JavaScript. It loads nothing from elsewhere.</noscript>
<script id="data" type="application/json">@@</script>
<script>
"use strict";
@@
const data = JSON.parse(document.getElementById("data").textContent);
document.getElementById("title").textContent = data.title;
document.getElementById("sentence").textContent = data.sentence;
flameGraph(data, document.getElementById("flames"));
</script>
</body>
</html>
)html";
}

}  // namespace rtev
