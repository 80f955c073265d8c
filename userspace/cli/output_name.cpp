// SPDX-License-Identifier: MIT
#include "cli/output_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/escape.hpp"
#include "formats/profile/profile_files.hpp"

namespace rtev::cli {
namespace {

constexpr std::string_view text_suffixes[] = {".txt", ".log"}, json_suffixes[] = {".json", ".jsonl"};

std::unexpected<Error> refuse_name(const std::string& path, std::string why, std::string hint) {
  return std::unexpected(
      Error{.what = "cannot write to", .subject = path, .why = std::move(why), .hint = std::move(hint)});
}

constexpr std::string_view svg_suffix = ".svg";

std::unexpected<Error> refuse_svg(const std::string& path) {
  return refuse_name(
      path, "no command writes SVG",
      "rtev-bpf profile -o FILE.html writes a flame graph, -o FILE.folded what flamegraph.pl makes one of");
}

/// Suffixes that several formats are at home in.
bool fits(Format written, Format of_suffix) {
  return written == of_suffix || (written == Format::jsonl && of_suffix == Format::chrome) ||
         (written == Format::brief && of_suffix == Format::text);
}

/// True if any format of streams has the suffix.
bool is_known(const std::string& suffix) {
  return std::ranges::any_of(all_formats(), [&](const FormatInfo& info) {
    return std::ranges::find(info.suffixes, suffix) != info.suffixes.end();
  });
}

}  // namespace

std::string default_file_name(std::string_view suffix) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, sizeof "20261126-101502"> time{};
  std::strftime(time.data(), time.size(), "%Y%m%d-%H%M%S", &local);
  const std::string stem = fmt::format("rtev-{}-{}", host.data(), time.data());
  std::string name = stem + std::string(suffix);
  // Runs of the same second must not replace each other's files.
  struct stat existing{};
  for (std::uint32_t number = 2; ::lstat(name.c_str(), &existing) == 0; ++number)
    name = fmt::format("{}-{}{}", stem, number, suffix);
  return name;
}

Result<Format> format_of_output(const std::string& path, std::optional<Format> asked, Format otherwise) {
  if (!asked && profile_file_of(path))
    return refuse_name(
        path, path.ends_with(".html") ? "an HTML report is no stream of events" : "this is the name of a profile",
        path.ends_with(".html") ? "rtev-bpf report -o FILE.html writes one, rtev-bpf profile -o FILE.html a "
                                  "flame graph, both also of a recording (-i)"
                                : "rtev-bpf profile -o FILE writes it, also of a recording (-i)");
  if (!asked && path.ends_with(svg_suffix)) return refuse_svg(path);
  auto of_suffix = format_of_file(path, asked.value_or(otherwise));
  if (!asked) return of_suffix;
  if (!of_suffix || fits(*asked, *of_suffix)) return *asked;
  return refuse_name(
      path, fmt::format("its suffix is that of {}, and -f asks for {}", info_of(*of_suffix).name, info_of(*asked).name),
      fmt::format("omit -f, or give a file with the suffix {}", info_of(*asked).suffixes.front()));
}

Result<bool> is_json_output(const std::string& path, std::optional<bool> asked,
                            std::span<const std::string_view> others) {
  std::string accepted = "a report is text (.txt, .log or no suffix) or JSON (.json, .jsonl)";
  if (!others.empty()) accepted += fmt::format("; other files are {}", fmt::join(others, ", "));
  if (std::ranges::any_of(others, [&](std::string_view other) { return path.ends_with(other); })) {
    if (!asked) return false;
    return refuse_name(path, fmt::format("-f asks for {}", *asked ? "JSON" : "text"),
                       "omit -f, or give another suffix");
  }
  const std::string suffix = std::filesystem::path(path).extension();
  const auto is_one_of = [&](const auto& suffixes) {
    return std::ranges::find(suffixes, suffix) != std::end(suffixes);
  };
  if (suffix == svg_suffix) return refuse_svg(path);
  if (suffix == ".gz") return refuse_name(path, "reports are not compressed", accepted);
  const bool is_json = is_one_of(json_suffixes), is_text = suffix.empty() || is_one_of(text_suffixes);
  if (suffix == ".html")
    accepted += "; rtev-bpf report -o FILE.html writes an HTML report, rtev-bpf profile -o FILE.html a flame graph";
  else if (is_known(suffix))
    accepted += fmt::format(
        "; rtev-bpf record -o FILE{0} writes the events themselves, rtev-bpf convert -o FILE{0} those of a recording",
        suffix);
  if (!is_json && !is_text && (!asked || is_known(suffix)))
    return refuse_name(path, fmt::format("no report has the suffix '{}'", escaped(suffix)), accepted);
  if (asked && !suffix.empty() && (*asked ? is_text : is_json))
    return refuse_name(path, fmt::format("-f asks for {}", *asked ? "JSON" : "text"), accepted);
  return asked.value_or(is_json);
}

std::vector<std::string> stream_suffixes() {
  std::vector<std::string> all;
  for (const FormatInfo& info : all_formats())
    for (const std::string_view suffix : info.suffixes)
      all.insert(all.end(), {std::string(suffix), fmt::format("{}.gz", suffix)});
  return all;
}

std::vector<std::string> report_suffixes(std::span<const std::string_view> others) {
  std::vector<std::string> all(std::begin(text_suffixes), std::end(text_suffixes));
  all.insert(all.end(), std::begin(json_suffixes), std::end(json_suffixes));
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace rtev::cli
