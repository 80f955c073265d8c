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

  /// Calls consumer(const Record&, std::span<const std::byte> tail) for the records that wait, in order, at most
  /// `max_records` of them; `tail` is what a record holds behind a Record. Shorter records are skipped. False if it
  /// stopped because of `max_records`.
  template <typename Record, typename Consumer>
  bool read(std::size_t max_records, Consumer&& consumer) {
    return read_records(
        max_records, sizeof(Record),
        [](void* context, const void* record, std::span<const std::byte> tail) {
          (*static_cast<std::remove_reference_t<Consumer>*>(context))(*static_cast<const Record*>(record), tail);
        },
        const_cast<void*>(static_cast<const void*>(&consumer)));
  }

 private:
  using Call = void (*)(void* context, const void* record, std::span<const std::byte> tail);
  struct Pass;
  struct Free {
    void operator()(ring_buffer* ring) const;
  };
  BpfRing(std::unique_ptr<Pass> pass, std::unique_ptr<ring_buffer, Free> ring);
  bool read_records(std::size_t max_records, std::size_t record_size, Call call, void* context);

  std::unique_ptr<Pass> pass_;
  std::unique_ptr<ring_buffer, Free> ring_;
};

}  // namespace rtev::kernel
