// SPDX-License-Identifier: MIT
// Writes the metadata of a recording: processes and rings as in the Registry, the header and the summary of the run.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "rtev/fxt_writer.hpp"
#include "stream/recording_layout.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"

namespace rtev::record {

inline std::string_view clipped(std::string_view text) {
  return text.substr(0, max_metadata_bytes);
}

/// A metadata record: a userspace object with named arguments. Texts must be valid until write().
class Metadata {
 public:
  /// `what` is one of metadata_*.
  Metadata(FxtWriter& writer, std::string_view what, fxt::Value value = true) : writer_(writer) { put(what, value); }

  /// Adds a number, an enumerator, or a text, which is cut to max_metadata_bytes.
  template <typename T>
  Metadata& add(std::string_view name, const T& value) {
    if constexpr (std::convertible_to<const T&, std::string_view>) {
      put(name, clipped(value));
    } else if constexpr (std::is_enum_v<T>) {
      put(name, static_cast<std::uint32_t>(value));
    } else {
      put(name, value);
    }
    return *this;
  }
  /// For the functions in recording_layout.hpp.
  template <typename T>
  void operator()(std::string_view name, const T& value) {
    add(name, value);
  }

  void write(std::uint64_t address = 0) { write(address, {}, {}); }
  /// About a slot of the thread table or of the string table.
  void write(std::uint64_t address, fxt::ThreadRef thread, fxt::StringRef string) {
    writer_.write(fxt::UserspaceObject{.address = address, .process = thread, .name = string}, arguments_);
  }

 private:
  void put(std::string_view name, fxt::Value value) { arguments_.add(writer_.intern(name), value); }

  FxtWriter& writer_;
  fxt::Arguments arguments_;
};

/// Compares a process or ring with the Registry once in a batch that refers to it, and writes it if it is new or has
/// changed. Memory is bounded: at most twice as many processes and rings as in the Registry.
class MetadataWriter {
 public:
  explicit MetadataWriter(FxtWriter& writer) : writer_(writer) {}

  void header(const RunHeader& header);

  void begin_batch() { ++batch_; }
  std::uint64_t batch() const { return batch_; }

  /// Writes the ring of an event, and its process, if needed. Returns the family of its ids: 0 if there is no ring,
  /// else 1 + Family.
  unsigned ring_of(const Event& event, const Registry& registry) {
    const std::uint32_t slot = Source::unpack(event.source).slot;
    if (slot != last_slot_ || last_batch_ != batch_) [[unlikely]] {
      last_family_ = check_ring(event, registry);
      last_slot_ = slot;
      last_batch_ = batch_;
    }
    return last_family_;
  }
  /// Writes a process that an event refers to, if needed.
  void process(ProcessIndex index, const Registry& registry);

  void summary(const RunSummary& summary, const Registry& registry);

 private:
  struct Ring {
    std::uint64_t checked_in = 0;  ///< batch
    bool written = false;
    unsigned family = 0;
    ProcessIndex process = 0;
    std::uint32_t domains = 0;
    std::optional<Producer> producer{};
  };
  struct Process {
    std::uint64_t checked_in = 0;
    ProcessInfo info{};
  };

  unsigned check_ring(const Event& event, const Registry& registry);
  void write_ring(std::uint32_t slot, const Ring& ring);
  void write_process(ProcessIndex index, const ProcessInfo& info);
  void write_accounting(ProcessIndex index, const ProcessInfo& info);
  void write_ring_gone(std::uint32_t slot);
  void sweep(const Registry& registry);

  static constexpr std::size_t min_sweep = 1024;

  FxtWriter& writer_;
  std::uint64_t batch_ = 1;
  // What check_ring() said last: most batches are of few rings.
  std::uint32_t last_slot_ = 0;
  std::uint64_t last_batch_ = 0;
  unsigned last_family_ = 0;
  std::vector<Ring> rings_;  ///< by slot
  std::unordered_map<ProcessIndex, Process> processes_;
  std::size_t sweep_at_ = min_sweep;
};

}  // namespace rtev::record
