// SPDX-License-Identifier: MIT
#include "formats/csv/csv_row.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/escape.hpp"

namespace rtev {
namespace {

constexpr std::string_view digits = "0123456789ABCDEF";

/// What a formula begins with in spreadsheets, of a text: a character, or nothing. Of East Asian texts it has the full
/// width.
std::string_view formula_begin(std::string_view text) {
  constexpr std::string_view begins[]{"=", "+", "-", "@", "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"};
  const auto* const found = std::ranges::find_if(begins, [&](std::string_view one) { return text.starts_with(one); });
  return found != std::end(begins) ? *found : std::string_view();
}

bool needs_quotes(std::string_view text) {
  return !text.empty() &&
         (text.front() == ' ' || text.back() == ' ' || text.find_first_of(",\"'") != std::string_view::npos);
}

}  // namespace

void add_csv_field(TextBuffer& out, std::string_view text) {
  const std::size_t begin = out.size();
  const std::string_view formula = formula_begin(text);
  for (const char c : formula) {
    const auto byte = static_cast<unsigned char>(c);
    out.add("\\x", digits[byte >> 4], digits[byte & 15]);
  }
  text.remove_prefix(formula.size());
  add_escaped(out, text);
  if (!needs_quotes(out.text().substr(begin))) return;
  const std::string field(out.text().substr(begin));
  out.cut(begin);
  out.add('"');
  for (const char c : field) {
    if (c == '"') out.add('"');
    out.add(c);
  }
  out.add('"');
}

std::string_view csv_titles() {
  return "kind,host,run,label,time_ns,duration_ns,pid,start_ticks,comm,exe,service_name,service_version,ocaml,domain,"
         "name,value,unit,state,on_cpu_ns,runnable_ns,blocked_ns\n";
}

void CsvWriter::set_run(const RunHeader& header) {
  // Without a time of day, as of the ring of a process, times are those since the host was started.
  const bool has_date = header.start_realtime_ns != 0;
  offset_ns_ = has_date ? header.start_realtime_ns - header.start_ns : 0;
  TextBuffer text;
  text.add(',');
  add_csv_field(text, header.host);
  text.add(',', csv_number(header.start_ns + offset_ns_), ',');
  add_csv_field(text, label_);
  text.add(',');
  run_ = text.text();
}

void CsvWriter::add(const CsvRow& row) {
  const auto add_known = [&](const std::optional<std::int64_t>& number) {
    if (number) out_.add(*number);
    out_.add(',');
  };
  out_.add(row.kind, std::string_view(run_), csv_number(row.begin_ns + offset_ns_), ',');
  add_known(row.duration_ns.transform(csv_number));
  out_.add(row.process.pid, ',', csv_number(row.process.start_ticks), ',');
  const CsvProcess& process = row.process;
  for (const std::string_view text : {process.comm, process.exe, process.service, process.version, process.ocaml}) {
    add_csv_field(out_, text);
    out_.add(',');
  }
  out_.add(row.domain, ',');
  add_csv_field(out_, row.name);
  out_.add(',');
  add_known(row.value);
  out_.add(row.unit, ',', row.state, ',');
  if (!row.time) return out_.add(",,");
  out_.add(csv_number(row.time->on_cpu), ',', csv_number(row.time->runnable), ',', csv_number(row.time->blocked()));
}

}  // namespace rtev
