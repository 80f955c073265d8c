// SPDX-License-Identifier: MIT
#include "support/page_data.hpp"

#include <string_view>

#include "analysis/page/page_sink.hpp"
#include "formats/report/report_page.hpp"
#include "support/pprof_check.hpp"
#include "unit/analysis/page/page_stream.hpp"

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

std::string text_between(const std::string& page, const std::string& begin, const std::string& end) {
  const std::size_t at = page.find(begin) + begin.size();
  return page.substr(at, page.find(end, at) - at);
}

std::string packed_page_data(const std::string& page) {
  return text_between(page, "<script id=\"data\" type=\"application/octet-stream\">", "</script>");
}

std::string page_of_made_stream(const std::string& name, std::uint64_t rounds) {
  World world;
  world.registry.process(world.process).comm = world.registry.process(world.process).exe = name;
  world.user_names[1] = name;
  PageStream stream(world);
  stream.rounds = rounds;
  PageSink sink({});
  stream.run(sink);
  return report_page(sink.report(world.registry));
}

nlohmann::json page_data_of(const std::string& page) {
  return nlohmann::json::parse(gunzip(from_base64(packed_page_data(page))));
}

}  // namespace rtev::test
