// SPDX-License-Identifier: MIT
#include "formats/report/report_page.hpp"

#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/sha256.hpp"
#include "formats/output/gzip_output.hpp"

namespace rtev {
namespace {

/// "sha256-...", as a Content-Security-Policy names the only inline script or style that it allows.
std::string policy_hash(std::string_view text) {
  const Sha256 digest = sha256(text);
  return "sha256-" + base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace

std::string report_page(PageReport report) {
  const std::string style = report_style(), script = report_script();
  const std::string json = report_page_json(report);
  // The title of the window is set by the script: names come by textContent only.
  std::string page = fmt::format(R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rtev-bpf report</title>
<style>)html",
                                 policy_hash(style), policy_hash(script));
  page += style;
  page += "</style>\n</head>\n";
  page += report_body();
  page += R"(<script id="data" type="application/octet-stream">)";
  page += base64(gzip_compressed(json));
  page += "</script>\n<script>";
  page += script;
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace rtev
