// SPDX-License-Identifier: MIT
#include "support/html_report_data.hpp"

#include <string_view>

#include "analysis/html_report/html_report_sink.hpp"
#include "formats/report/html_report.hpp"
#include "support/pprof_check.hpp"
#include "unit/analysis/html_report/html_report_stream.hpp"

namespace rtev::test {
namespace {

std::string from_base64(std::string_view text) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t value = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    value = value << 6 | static_cast<std::uint32_t>(digits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(value >> bits & 0xff);
  }
  return bytes;
}

}  // namespace

std::string text_between(const std::string& html, const std::string& begin, const std::string& end) {
  const std::size_t at = html.find(begin) + begin.size();
  return html.substr(at, html.find(end, at) - at);
}

std::string packed_report_data(const std::string& html) {
  return text_between(html, "<script id=\"data\" type=\"application/octet-stream\">", "</script>");
}

std::string report_of_made_stream(const std::string& name, std::uint64_t rounds) {
  World world;
  world.registry.process(world.process).comm = world.registry.process(world.process).exe = name;
  world.user_names[1] = name;
  HtmlReportStream stream(world);
  stream.rounds = rounds;
  HtmlReportSink sink({});
  stream.run(sink);
  return html_report(sink.report(world.registry));
}

nlohmann::json report_data_of(const std::string& html) {
  return nlohmann::json::parse(gunzip(from_base64(packed_report_data(html))));
}

}  // namespace rtev::test
