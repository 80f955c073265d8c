// SPDX-License-Identifier: MIT
#include "formats/report/html_report.hpp"

#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/html_text.hpp"
#include "formats/output/gzip_output.hpp"
#include "web/embedded_files.hpp"

namespace rtev {
namespace {

/// As a Content-Security-Policy names the only inline script or style that it allows.
std::string policy_hash(const web::Part& part) {
  return "sha256-" + base64(part.sha256);
}

}  // namespace

std::string html_report(HtmlReport report) {
  const std::string title = html_text(report_title(report)), head = report_head(report);
  const std::string json = html_report_json(report);
  std::string html = fmt::format(R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{} - rtev-bpf report</title>
<style>)html",
                                 policy_hash(web::report_style), policy_hash(web::report_script), title);
  html += web::report_style.text;
  html += "</style>\n</head>\n";
  html += head;
  html += R"(<script id="data" type="application/octet-stream">)";
  html += base64(gzip_compressed(json));
  html += "</script>\n<script>";
  html += web::report_script.text;
  html += "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace rtev
