// SPDX-License-Identifier: MIT
// JSON lines, schema 1, back into the stream that they were written from.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "recording/replay.hpp"
#include "recording/stream_builder.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// Reads what JsonlSink writes, also where --events left lines out. Lines tell processes by pid and rings by process
/// and domain: events are of the newest image of a pid. What JSON lines do not tell (whether a dead process dumped
/// core, priorities in wakeups) is not there. One thread.
class JsonlReader {
 public:
  explicit JsonlReader(Sink& sink) : builder_(sink) {}

  /// Any piece of the file. After an error nothing more is read.
  Result<void> feed(std::string_view text);
  /// The end of the file, or of what can be read of it. A last line that is cut off is left out; without a summary one
  /// is made of the events.
  Result<Replay::End> finish();
  const Registry& registry() const { return builder_.registry(); }

  /// The longest line: a summary has an object for each process.
  static constexpr std::size_t most_line_bytes = std::size_t{16} << 20;

 private:
  using Json = nlohmann::ordered_json;
  struct Image {
    ProcessIndex index = 0;
    ProcessInfo facts{};
    bool is_announced = false;  ///< by found, exec or fork
    std::uint32_t slot = 0;     ///< of its ring; 0 before its first event
    bool ring_is_announced = false;
  };

  Result<void> line(std::string_view text);
  Result<void> event(const Json& line, std::string_view type);
  bool header(const Json& line);
  bool summarise(const Json& line);
  bool ring_event(const Json& line, std::string_view type, Event event);
  bool lost(const Json& line, Event event);
  bool user_event(const Json& line, Event event);
  bool process(const Json& line, Event event);
  bool sched_switch(const Json& line, Event event);
  bool wakeup(const Json& line, Event event);
  bool place(const Json& line, Event& event);
  bool add_ring(Image& image, std::uint32_t domains);
  Image& image_of(std::int32_t pid);
  bool tell(const Image& image);
  void forget(std::int32_t pid);
  std::uint16_t id_of(const Json& line, const Image& image, EventKind kind) const;

  StreamBuilder builder_;
  std::string rest_;  ///< of a line that is not complete yet
  std::uint64_t lines_ = 0;
  bool has_header_ = false, has_summary_ = false, failed_ = false;
  std::map<std::int32_t, Image> images_;                     ///< the newest by pid
  std::deque<std::pair<std::int32_t, ProcessIndex>> ended_;  ///< of those the oldest are forgotten
  ProcessIndex next_index_ = 1;
  std::uint32_t next_slot_ = 1;
  std::uint64_t offset_ = 0;  ///< where the last whole line ended
};

}  // namespace rtev
