// SPDX-License-Identifier: MIT
#include "formats/format_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/escape.hpp"
#include "formats/brief/brief_sink.hpp"
#include "formats/chrome/chrome_sink.hpp"
#include "formats/csv/csv_sink.hpp"
#include "formats/fxt/fxt_sink.hpp"
#include "formats/jsonl/jsonl_sink.hpp"
#include "formats/perfetto/perfetto_sink.hpp"
#include "formats/text/text_sink.hpp"

namespace rtev {
namespace {

constexpr std::string_view brief_suffixes[] = {".brief"};
constexpr std::string_view text_suffixes[] = {".txt", ".log"};
constexpr std::string_view jsonl_suffixes[] = {".jsonl"};
constexpr std::string_view fxt_suffixes[] = {".fxt"};
constexpr std::string_view chrome_suffixes[] = {".json"};
constexpr std::string_view pftrace_suffixes[] = {".pftrace", ".perfetto-trace"};
constexpr std::string_view csv_suffixes[] = {".csv"};

constexpr FormatInfo table[] = {
    {.format = Format::brief,
     .name = "brief",
     .suffixes = brief_suffixes,
     .purpose = "long pauses, long spans and processes, the rest summed up each second",
     .hint = "a line for what matters",
     .is_binary = false,
     .has_stacks = true,
     .make = [](Output& output, const SinkOptions& options) -> std::unique_ptr<Sink> {
       return std::make_unique<BriefSink>(output, BriefOptions{.min_ns = options.min_ns,
                                                               .threads = options.threads,
                                                               .color = options.color,
                                                               .columns = options.columns});
     }},
    {.format = Format::text,
     .name = "text",
     .suffixes = text_suffixes,
     .purpose = "one line per event, for people",
     .hint = "one line per event",
     .is_binary = false,
     .has_stacks = true,
     .make = [](Output& output, const SinkOptions& options) -> std::unique_ptr<Sink> {
       return std::make_unique<TextSink>(
           output, TextOptions{.color = options.color, .min_ns = options.min_ns, .all_frames = options.all_frames});
     }},
    {.format = Format::jsonl,
     .name = "jsonl",
     .suffixes = jsonl_suffixes,
     .purpose = "one JSON object per line, for programs",
     .hint = "one JSON object per line, e.g. for jq",
     .is_binary = false,
     .has_stacks = true,
     .make = [](Output& output, const SinkOptions& options) -> std::unique_ptr<Sink> {
       return std::make_unique<JsonlSink>(output, options.label);
     }},
    {.format = Format::fxt,
     .name = "fxt",
     .suffixes = fxt_suffixes,
     .purpose = "the recording, for -i, dump, convert and ui.perfetto.dev",
     .hint = "rtev-bpf dump shows it, pauses -i analyses it, https://ui.perfetto.dev opens it",
     .is_binary = true,
     .has_stacks = true,
     .make = [](Output& output, const SinkOptions& options) -> std::unique_ptr<Sink> {
       return std::make_unique<FxtSink>(output, FxtSink::Options{.max_held_ns = options.max_held_ns});
     }},
    {.format = Format::chrome,
     .name = "chrome",
     .suffixes = chrome_suffixes,
     .purpose = "Chrome's trace events, for chrome://tracing and ui.perfetto.dev",
     .hint = "open it in https://ui.perfetto.dev or chrome://tracing",
     .is_binary = false,
     .has_stacks = false,
     .make = [](Output& output, const SinkOptions&) -> std::unique_ptr<Sink> {
       return std::make_unique<ChromeSink>(output);
     }},
    {.format = Format::pftrace,
     .name = "pftrace",
     .suffixes = pftrace_suffixes,
     .purpose = "Perfetto's format, for ui.perfetto.dev and trace_processor",
     .hint = "open it in https://ui.perfetto.dev",
     .is_binary = true,
     .has_stacks = true,
     .make = [](Output& output, const SinkOptions& options) -> std::unique_ptr<Sink> {
       return std::make_unique<PerfettoSink>(output, PerfettoOptions{.flush_interval_ns = options.max_held_ns});
     }},
    {.format = Format::csv,
     .name = "csv",
     .suffixes = csv_suffixes,
     .purpose = "a row for each pause, phase, span and figure, for databases",
     .hint = "contrib/ has tables and queries for ClickHouse and DuckDB",
     .is_binary = false,
     .has_stacks = false,
     .make = [](Output& output, const SinkOptions& options) -> std::unique_ptr<Sink> {
       return std::make_unique<CsvSink>(output, options.label);
     }},
};

}  // namespace

std::span<const FormatInfo> all_formats() {
  return table;
}

const FormatInfo& info_of(Format format) {
  return table[static_cast<std::size_t>(format)];
}

Result<Format> format_of_file(const std::string& path, Format otherwise) {
  std::filesystem::path name(path);
  if (name.extension() == ".gz") name = name.stem();
  const std::string suffix = name.extension();
  if (suffix.empty()) return otherwise;
  std::string known;
  for (const FormatInfo& info : table) {
    if (std::ranges::find(info.suffixes, suffix) != info.suffixes.end()) return info.format;
    known += fmt::format(" {}", fmt::join(info.suffixes, " "));
  }
  return std::unexpected(Error{
      .what = "cannot write to",
      .subject = path,
      .why = fmt::format("no format has the suffix '{}'", escaped(suffix)),
      .hint = fmt::format("give a format with -f, or one of these suffixes:{} (each may be followed by .gz)", known)});
}

std::string numbered_name(const std::string& path, std::size_t number) {
  std::filesystem::path name(path);
  std::string suffix;
  if (name.extension() == ".gz") {
    suffix = ".gz";
    name.replace_extension();
  }
  suffix = name.extension().string() + suffix;
  name.replace_extension();
  return fmt::format("{}.{}{}", name.string(), number, suffix);
}

}  // namespace rtev
