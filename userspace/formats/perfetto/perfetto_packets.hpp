// SPDX-License-Identifier: MIT
// The frame of a Perfetto trace: packets, one after the other, and the names that they refer to by number.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "formats/perfetto/perfetto_fields.hpp"
#include "stream/sink.hpp"

namespace rtev::perfetto {

using Packet = Message<TracePacket>;

/// As text that any viewer may show and that is UTF-8. `scratch` holds it where it had to be made.
std::string_view shown(std::string_view text, std::string& scratch);

/// Adds a string field that is UTF-8 whatever the text is.
template <typename Field>
void add_text(Message<Field>& message, Field field, std::string_view text) {
  std::string scratch;
  const std::string_view valid = shown(text, scratch);
  message.add_string(field, valid.data(), valid.size());
}

/// Collects packets and hands them to the output in large pieces, none cut.
class PacketStream {
 public:
  PacketStream(Output& output, std::uint64_t flush_interval_ns)
      : output_(output), flush_interval_ns_(flush_interval_ns) {}

  /// `fill` gets the Packet& to be filled.
  template <typename Fill>
  void add(Fill&& fill) {
    {
      Message<Trace> trace{packets_};
      Packet packet{trace, Trace::packet};
      fill(packet);
    }
    if (packets_.size() >= piece) hand_out();
  }

  /// Hands everything out, but not more often than the interval allows.
  void flush(std::uint64_t now_ns);
  void hand_out();
  /// No use in encoding what nobody takes any more.
  bool closed() const { return output_.error().has_value(); }

 private:
  static constexpr std::size_t piece = std::size_t{256} << 10;

  Output& output_;
  std::uint64_t flush_interval_ns_;
  std::uint64_t flushed_ns_ = 0;
  std::string packets_;
};

/// What events belong to, for viewers to tell them apart. Values are indices of category_names.
enum class Category : std::uint8_t { gc, user, alloc, lifecycle, process, loss, recording };
inline constexpr std::array<std::string_view, 7> category_names{"gc",      "user", "alloc",    "lifecycle",
                                                                "process", "loss", "recording"};

/// Names of what events carry. Values are indices of detail_names.
enum class Detail : std::uint8_t {
  value,
  bytes,
  buckets,
  late,
  mark,
  words,
  from,
  to,
  reason,
  exe,
  version,
  family,
  parent,
  path,
  rings,
  status,
  signal,
};
inline constexpr std::array<std::string_view, 17> detail_names{
    "value", "bytes",   "buckets", "late",   "mark", "words", "from",   "to",    "reason",
    "exe",   "version", "family",  "parent", "path", "rings", "status", "signal"};

/// The numbers of names within one sequence of packets. Memory is bounded: with too many names the sequence starts
/// over.
class Names {
 public:
  /// To be called before a packet that uses any of the numbers.
  void begin_packet();
  static constexpr std::uint64_t id_of(Category category) { return static_cast<std::uint64_t>(category) + 1; }
  static constexpr std::uint64_t id_of(Detail detail) { return static_cast<std::uint64_t>(detail) + 1; }
  std::uint64_t id_of(std::string_view event_name);
  /// Gives the packet the names that it was the first to use.
  void end_packet(Packet& packet);

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  void start_over();

  static constexpr std::size_t max_names = 8192;
  static constexpr std::size_t max_bytes = std::size_t{1} << 20;

  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> ids_;
  std::size_t bytes_ = 0;  ///< of all names
  std::string fresh_;      ///< names that readers do not know yet: content of an interned_data field
  bool first_ = true;      ///< no packet was written yet
  bool clear_ = true;      ///< the next packet makes readers forget
};

}  // namespace rtev::perfetto
