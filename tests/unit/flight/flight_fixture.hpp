// SPDX-License-Identifier: MIT
// Streams that go through a flight recorder, and what its dumps say.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/pause_finder.hpp"
#include "flight/flight_recorder.hpp"
#include "recording/recording_file.hpp"
#include "support/files.hpp"
#include "support/temp_dir.hpp"
#include "unit/stream/world.hpp"

namespace rtev::flight {

/// An event as a reader of the stream sees it.
struct SeenEvent {
  std::uint64_t time = 0, value = 0;
  std::uint32_t source = 0;
  std::uint16_t id = 0;
  EventKind kind{};
  std::uint8_t flags = 0;
  std::string payload{}, name{}, comm{}, stack{};

  bool operator==(const SeenEvent&) const = default;
};

inline void PrintTo(const SeenEvent& event, std::ostream* out) {
  *out << event.time << " " << to_string(event.kind) << " id " << event.id << " value " << event.value << " source "
       << event.source << " name '" << event.name << "' of '" << event.comm << "' " << event.payload.size() << " bytes "
       << event.stack;
}

/// Pauses and user spans that ended, and the last value of each counter.
struct SeenFacts {
  using Ended = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint16_t>;  ///< begin, end, source, id
  std::vector<Ended> pauses{}, spans{};
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint64_t> counters{};
};

/// Remembers a stream.
class SeenStream final : public Sink, private PauseListener {
 public:
  void header(const RunHeader& header) override { run = header; }
  void consume(const Batch& batch, const Registry& registry) override {
    for (const Event& event : batch.events()) {
      const auto payload = batch.payload(event);
      const ProcessInfo* const process = registry.process_of(event);
      SeenEvent seen{.time = event.time,
                     .value = has_payload(event.kind) ? 0 : event.value,
                     .source = event.source,
                     .id = event.id,
                     .kind = event.kind,
                     .flags = event.flags,
                     .payload = {reinterpret_cast<const char*>(payload.data()), payload.size()},
                     .name = std::string(known_name_of(event, registry)),
                     .comm = process != nullptr ? process->comm : std::string()};
      if (const auto sample = event.kind == EventKind::sample ? batch.payload_as<Sample>(event) : std::nullopt)
        seen.stack = std::string(registry.stacks().innermost_ocaml(sample->stack).function);
      events.push_back(std::move(seen));
      if (event.kind == EventKind::counter) facts.counters[{event.source, event.id}] = event.value;
      finder_.add(event, batch, registry);
      add_span(event, process != nullptr ? process->pid : 0);
    }
  }
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override {
    end = summary;
    for (const auto& [index, info] : registry.indexed_processes()) processes[index] = info;
  }

  RunHeader run;
  RunSummary end{.complete = false};
  std::map<ProcessIndex, ProcessInfo> processes;
  std::vector<SeenEvent> events;
  SeenFacts facts;

 private:
  void on_pause_end(const DomainLife& domain, const PhaseEnd& root) override {
    facts.pauses.emplace_back(root.begin_ns, root.end_ns, domain.source, root.phase);
  }
  void add_span(const Event& event, std::int32_t pid) {
    auto& open = open_[{event.source, pid}];
    if (event.kind == EventKind::lost) open.clear();
    if (event.kind == EventKind::user_begin) open.emplace_back(event.id, event.time);
    if (event.kind != EventKind::user_end) return;
    const auto found =
        std::ranges::find(open.rbegin(), open.rend(), event.id, &std::pair<std::uint16_t, std::uint64_t>::first);
    if (found == open.rend()) return;
    facts.spans.emplace_back(found->second, event.time, event.source, event.id);
    open.erase(std::prev(found.base()));
  }

  PauseFinder finder_{*this};
  /// By source and pid, as slots are used again: id and begin, innermost last.
  std::map<std::pair<std::uint32_t, std::int32_t>, std::vector<std::pair<std::uint16_t, std::uint64_t>>> open_;
};

inline std::unique_ptr<SeenStream> read_dump(const std::string& path) {
  auto stream = std::make_unique<SeenStream>();
  auto file = RecordingFile::open(test::open_file(path), path);
  EXPECT_TRUE(file && *file) << path;
  if (!file || !*file) return stream;
  const auto read = (*file)->replay(*stream);
  EXPECT_TRUE(read) << (read ? "" : read.error().message());
  EXPECT_TRUE(read && read->complete);
  return stream;
}

/// A recorder whose results are waited for.
class Recorder {
 public:
  explicit Recorder(RecorderOptions options, DumpDirectory::Options directory = {.max_bytes = 1 << 30, .min_free = {}})
      : recorder_(std::move(options),
                  DumpDirectory(UniqueFd(::open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
                                dir_.path().string(), directory),
                  [this](const DumpResult& result) { results_.push_back(result); }) {}

  FlightRecorder& operator*() { return recorder_; }
  FlightRecorder* operator->() { return &recorder_; }
  /// After the end of the run.
  const std::vector<DumpResult>& results() const { return results_; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) names.push_back(entry.path());
    return names;
  }

 private:
  test::TempDir dir_;
  std::vector<DumpResult> results_;
  FlightRecorder recorder_;
};

}  // namespace rtev::flight
