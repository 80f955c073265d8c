// SPDX-License-Identifier: MIT
#include "live/variety.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace rtev::test {
namespace {

constexpr std::size_t domains = 3;

/// The thread of each domain, as written by the domain to its ring.
std::map<int, int> threads_of(const Records& records) {
  std::map<int, int> threads;
  for (const auto& [domain, lines] : records) {
    for (const std::string& line : lines) {
      std::istringstream fields(line);
      std::uint64_t time = 0;
      std::string kind, name;
      int tid = 0;
      if (fields >> time >> kind >> name >> tid && kind == "user_int" && name == "thread") threads[tid] = domain;
    }
  }
  return threads;
}

/// Scheduler events that name the domain of such a thread must name the right one. If the domain can be known, they
/// must name it once the thread has left its cpu.
void expect_threads(const Trace& trace, const Build& build, const std::map<int, int>& threads) {
  std::map<int, std::vector<Json>> left;
  std::set<int> known;
  for (const Json& event : trace.of("switch")) {
    for (const char* side : {"prev", "next"}) {
      const int tid = event[side].value("tid", 0);
      const auto thread = threads.find(tid);
      if (thread == threads.end()) continue;
      if (side == std::string_view("prev")) left[tid].push_back(event);
      if (!event[side].contains("domain")) continue;
      EXPECT_EQ(event[side]["domain"], thread->second) << event;
      known.insert(tid);
    }
  }
  if (!build.is_mapped) return;
  for (const auto& [tid, domain] : threads)
    EXPECT_TRUE(known.contains(tid)) << "domain " << domain << " of thread " << tid
                                     << " was never known; it left its cpu " << Json(left[tid]) << "; "
                                     << trace.summary["drops"];
}

/// A run's own output: the number of its user events.
std::size_t user_events_written(const std::string& out) {
  constexpr std::string_view mark = "wrote ";
  const std::size_t at = out.find(mark);
  if (at == std::string::npos) throw std::runtime_error("the program did not print what it wrote: " + out);
  return std::stoul(out.substr(at + mark.size()));
}

}  // namespace

std::filesystem::path Variety::program() const {
  return std::filesystem::path(RTEV_VARIETY) / ocaml / build.kind;
}

std::filesystem::path Variety::reader() const {
  return std::filesystem::path(RTEV_VARIETY) / ocaml / "oracle";
}

std::ostream& operator<<(std::ostream& out, const Variety& variety) {
  return out << variety.build.what << ", OCaml " << variety.ocaml;
}

std::vector<Variety> all_varieties() {
  constexpr std::array builds = std::to_array<Build>({
      {.kind = "native", .what = "native, position-independent"},
      {.kind = "no_pie", .what = "native, not position-independent"},
      {.kind = "stripped", .what = "stripped"},
      {.kind = "static", .what = "fully static"},
      {.kind = "stripped_static", .what = "fully static and stripped", .named = false, .is_mapped = false},
      {.kind = "shared", .what = "shared runtime (`libasmrun_shared.so`)"},
      {.kind = "embedded", .what = "OCaml in a C program"},
      {.kind = "bytecode", .what = "bytecode, `ocamlrun`"},
      {.kind = "custom", .what = "bytecode, `-custom`"},
      {.kind = "complete_exe", .what = "bytecode, `-output-complete-exe`"},
      {.kind = "shared_bytecode", .what = "bytecode, shared runtime (`libcamlrun_shared.so`)"},
  });
  constexpr Build instrumented{.kind = "instrumented", .what = "instrumented runtime", .allocs = true};
  constexpr Build debug{.kind = "debug", .what = "debug runtime"};
  std::vector<Variety> varieties;
  for (const char* ocaml : {"5.1", "5.3", "5.4"})
    for (const Build& build : builds) varieties.push_back({ocaml, build});
  // Since 5.4, programs do not export the runtime's symbols: after strip none is left.
  for (Variety& variety : varieties) {
    if (std::string_view(variety.ocaml) == "5.4" && std::string_view(variety.build.kind) == "stripped")
      variety.build.named = variety.build.is_mapped = false;
  }
  for (const char* ocaml : {"5.3", "5.4"})
    for (const Build& build : {instrumented, debug}) varieties.push_back({ocaml, build});
  return varieties;
}

void expect_whole(const Trace& trace, const Variety& variety, const std::filesystem::path& directory, pid_t pid,
                  const std::string& out) {
  const Records left = oracle(directory, pid, variety.reader());
  expect_exact(trace, left, pid);
  EXPECT_EQ(trace.of(pid, "user").size(), user_events_written(out));
  EXPECT_EQ(trace.of(pid, "alloc").empty(), !variety.build.allocs);
  const auto threads = threads_of(left);
  ASSERT_EQ(threads.size(), domains);
  expect_threads(trace, variety.build, threads);
}

}  // namespace rtev::test
