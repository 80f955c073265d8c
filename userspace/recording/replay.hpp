// SPDX-License-Identifier: MIT
// Turns a recording into the stream it was made from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recording/metadata_reader.hpp"
#include "recording/sched_reader.hpp"
#include "recording/stream_builder.hpp"
#include "rtev/error.hpp"
#include "rtev/fxt_reader.hpp"
#include "stream/recording_layout.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Reads what FxtSink wrote, in pieces of any size, and gives a sink the header, the events, with the Registry as it
/// was at their time, and the summary. The bytes are not trusted; memory is bounded. One thread.
class Replay {
 public:
  explicit Replay(Sink& sink) : stream_(sink), metadata_(stream_) {}

  /// The next bytes. An error names the byte and the reason. Then the sink has all events before it, and only finish()
  /// may follow.
  Result<void> feed(std::span<const std::byte> bytes);

  struct End {
    std::uint64_t offset = 0;  ///< end of the last whole record
    bool complete = false;     ///< the recording has its summary
    bool cut = false;          ///< part of a record follows it
    /// If not complete: the reason, as text for the user.
    std::string note{};
  };
  /// The end of the file, or of what could be read: gives the sink the summary, counted from the events if the
  /// recording has none. Fails if there was no header.
  Result<End> finish();

  const Registry& registry() const { return stream_.registry(); }

 private:
  Result<void> take(const fxt::parsed::EventRecord& record);
  Result<void> take(const fxt::parsed::UserspaceObject& object);
  Result<void> take(const fxt::parsed::ContextSwitch& record);
  Result<void> take(const fxt::parsed::Wakeup& record);
  Result<void> take(const fxt::parsed::StringRecord& record);
  Result<void> take(const fxt::parsed::ThreadRecord& record);
  Result<void> take(const fxt::parsed::ProviderInfo& record);
  Result<void> take(const fxt::parsed::ProviderSection& record);
  Result<void> take(const fxt::parsed::UnknownRecord& record);
  template <typename Other>
  Result<void> take(const Other&) {
    return {};
  }
  Result<void> define_string(const fxt::parsed::UserspaceObject& object);
  Result<void> define_source(const fxt::parsed::UserspaceObject& object);
  Result<void> begin_event();
  template <typename Record>
  Result<void> scheduling(const Record& record, EventKind kind);
  bool instant(Event event, const record::StringId& id, const fxt::parsed::EventRecord& record);
  void forget_slots();
  void forget_string(std::uint16_t slot);

  StreamBuilder stream_;
  record::MetadataReader metadata_;
  record::SchedReader sched_;
  FxtReader reader_;
  std::vector<std::optional<record::StringId>> strings_;                          ///< by string slot
  std::array<std::optional<std::uint32_t>, fxt::max_thread_slot + 1> sources_{};  ///< by thread slot
  std::uint64_t offset_ = 0;                                                      ///< bytes of whole records
  bool failed_ = false;
};

}  // namespace rtev
