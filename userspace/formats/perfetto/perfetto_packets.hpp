// SPDX-License-Identifier: MIT
// Perfetto traces: a sequence of packets, and the names that packets refer to by number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/protobuf_message.hpp"
#include "formats/perfetto/perfetto_fields.hpp"
#include "formats/viewer/viewer_writer.hpp"
#include "stream/sink.hpp"

namespace rtev::perfetto {

using protobuf::Message;
using Packet = Message<TracePacket>;

/// The text, escaped into `scratch` if it is not printable UTF-8.
std::string_view shown(std::string_view text, std::string& scratch);

/// Adds a string field, which must be UTF-8, for any text.
template <typename Field>
void add_text(Message<Field>& message, Field field, std::string_view text) {
  std::string scratch;
  const std::string_view valid = shown(text, scratch);
  message.add_bytes(field, valid);
}

/// Collects packets and writes them in large pieces of whole packets.
class PacketWriter {
 public:
  PacketWriter(Output& output, std::uint64_t flush_interval_ns)
      : output_(output), flush_interval_ns_(flush_interval_ns) {}

  /// `fill` gets the Packet&.
  template <typename Fill>
  void add(Fill&& fill) {
    {
      Message<Trace> trace{packets_};
      Packet packet{trace, Trace::packet};
      fill(packet);
    }
    if (packets_.size() >= piece) hand_out();
  }
  /// With a time in ns.
  template <typename Fill>
  void add(std::uint64_t time, Fill&& fill) {
    add([&](Packet& packet) {
      packet.add_number(TracePacket::timestamp, time);
      fill(packet);
    });
  }

  /// Writes everything, but not more often than the interval allows.
  void flush(std::uint64_t now_ns);
  void hand_out();
  /// The output has failed: there is no use in encoding more.
  bool closed() const { return output_.error().has_value(); }

 private:
  static constexpr std::size_t piece = std::size_t{256} << 10;

  Output& output_;
  std::uint64_t flush_interval_ns_;
  std::uint64_t flushed_ns_ = 0;
  TextBuffer packets_;
};

/// The numbers of names within one sequence of packets. Memory is bounded: with too many names all are forgotten and
/// the numbers start again.
class Names {
 public:
  /// Must be called before a packet that uses numbers.
  void begin_packet();
  static constexpr std::uint64_t id_of(Category category) { return static_cast<std::uint64_t>(category) + 1; }
  static constexpr std::uint64_t id_of(DetailName name) { return name.index + 1; }
  std::uint64_t id_of_event(std::string_view name);
  /// Adds the names that the packet is the first to use.
  void end_packet(Packet& packet);

 private:
  void start_over();

  static constexpr std::size_t max_names = 8192;
  static constexpr std::size_t max_bytes = std::size_t{1} << 20;
  static constexpr unsigned recent_bits = 6;

  std::unordered_map<std::string, std::uint64_t> ids_;
  /// Some of ids_, by the address of the text that was looked up.
  std::array<std::pair<std::string_view, std::uint64_t>, std::size_t{1} << recent_bits> recent_{};
  std::size_t bytes_ = 0;  ///< of all names
  TextBuffer fresh_;       ///< names not written yet: content of an interned_data field
  bool first_ = true;      ///< no packet was written
  bool clear_ = true;      ///< the next packet makes the reader forget all names
};

}  // namespace rtev::perfetto
