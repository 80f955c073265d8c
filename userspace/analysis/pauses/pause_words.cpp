// SPDX-License-Identifier: MIT
#include "analysis/pauses/pause_words.hpp"

#include <cmath>

#include "base/escape.hpp"
#include "base/units.hpp"

namespace rtev {

void add_phase(TextBuffer& out, Family family, std::uint16_t phase) {
  if (const auto name = phase_name(family, phase); !name.empty()) {
    out.add(name);
  } else {
    out.add('#', phase);
  }
}

void add_incarnation(TextBuffer& out, std::uint32_t incarnation) {
  if (incarnation > 0) out.add(" #", std::uint64_t{incarnation} + 1);
}

void add_thread(TextBuffer& out, const Thread& thread, std::int32_t own_pid) {
  if (thread.pid == own_pid) {
    out.add("thread ", thread.tid, " of the same process");
    if (thread.domain >= 0) out.add(" (domain ", thread.domain, ')');
    return;
  }
  add_quoted(out, thread.comm());
  out.add(" (pid ", thread.pid);
  if (thread.tid != thread.pid) out.add(", thread ", thread.tid);
  out.add(')');
}

void add_behind(TextBuffer& out, const CpuWait& wait, std::int32_t own_pid) {
  if (!wait.by) {
    out.add(" behind others");
  } else if (wait.by->tid == 0) {
    out.add(" though it was idle");
    if (wait.had != CpuWait::Had::throughout) out.add(wait.had == CpuWait::Had::first ? " at first" : " at last");
  } else if (wait.had == CpuWait::Had::last) {
    out.add(" behind perhaps others and at last ");
    add_thread(out, *wait.by, own_pid);
  } else {
    out.add(" behind ");
    add_thread(out, *wait.by, own_pid);
    if (wait.had == CpuWait::Had::first) out.add(" and then perhaps others");
  }
}

void add_counted(TextBuffer& out, std::uint64_t count, std::string_view singular, std::string_view plural) {
  out.add_grouped(count);
  out.add(' ', count == 1 ? singular : plural);
}

void add_moment(TextBuffer& out, std::uint64_t time_ns, std::uint64_t start_ns) {
  add_seconds(out, time_ns, start_ns, 0);
  out.add(" s");
}

void add_duration_column(TextBuffer& out, std::uint64_t ns) {
  TextBuffer text;
  add_duration(text, ns);
  if (const std::size_t columns = columns_of(text.text()); columns < duration_width)
    out.add_repeated(' ', duration_width - columns);
  out.add(text.text());
}

void add_percent(TextBuffer& out, std::uint64_t part, std::uint64_t of) {
  if (of == 0 || part == 0) {
    out.add("0%");
    return;
  }
  const auto percent = std::llround(static_cast<double>(part) / static_cast<double>(of) * 100);
  if (percent == 0) {
    out.add("<1%");
  } else {
    out.add(percent, '%');
  }
}

}  // namespace rtev
