// SPDX-License-Identifier: MIT
// Reads one BPF ring buffer, a bounded number of records at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

#include "rtev/error.hpp"

struct ring_buffer;

namespace rtev::kernel {

/// One BPF ring buffer. Belongs to one thread.
class BpfRing {
 public:
  /// Maps the ring buffer of a map, which must stay open.
  static Result<BpfRing> open(int map_fd);
  BpfRing(BpfRing&&) noexcept;
  BpfRing& operator=(BpfRing&&) noexcept;
  ~BpfRing();

  /// Calls consumer(const Record&, std::span<const std::byte> tail) for the records that wait, in order, at most `most`
  /// of them; `tail` is what a record holds beyond a Record. Shorter ones are skipped. False if it stopped because of
  /// `most`.
  template <typename Record, typename Consumer>
  bool drain(std::size_t most, Consumer&& consumer) {
    return drain_records(
        most, sizeof(Record),
        [](void* context, const void* record, std::span<const std::byte> tail) {
          (*static_cast<std::remove_reference_t<Consumer>*>(context))(*static_cast<const Record*>(record), tail);
        },
        &consumer);
  }

 private:
  using Call = void (*)(void* context, const void* record, std::span<const std::byte> tail);
  struct Drain;
  struct Free {
    void operator()(ring_buffer* ring) const;
  };
  BpfRing(std::unique_ptr<Drain> drain, std::unique_ptr<ring_buffer, Free> ring);
  bool drain_records(std::size_t most, std::size_t record_size, Call call, void* context);

  std::unique_ptr<Drain> drain_;
  std::unique_ptr<ring_buffer, Free> ring_;
};

}  // namespace rtev::kernel
