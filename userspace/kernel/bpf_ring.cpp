// SPDX-License-Identifier: MIT
#include "kernel/bpf_ring.hpp"

#include <bpf/libbpf.h>

#include <cerrno>
#include <utility>

namespace rtev::kernel {

/// The drain that is under way; libbpf takes the callback's context once and for all.
struct BpfRing::Drain {
  std::size_t left = 0;
  std::size_t record_size = 0;
  Call call = nullptr;
  void* context = nullptr;

  static int on_record(void* self, void* record, std::size_t size) {
    auto& drain = *static_cast<Drain*>(self);
    if (size >= drain.record_size) {
      const std::span bytes(static_cast<const std::byte*>(record), size);
      drain.call(drain.context, record, bytes.subspan(drain.record_size));
    }
    // A negative result is libbpf's only way to stop; the record just handed out counts as read all the same.
    return --drain.left == 0 ? -ECANCELED : 0;
  }
};

void BpfRing::Free::operator()(ring_buffer* ring) const {
  ring_buffer__free(ring);
}

BpfRing::BpfRing(std::unique_ptr<Drain> drain, std::unique_ptr<ring_buffer, Free> ring)
    : drain_(std::move(drain)), ring_(std::move(ring)) {}
BpfRing::BpfRing(BpfRing&&) noexcept = default;
BpfRing& BpfRing::operator=(BpfRing&&) noexcept = default;
BpfRing::~BpfRing() = default;

Result<BpfRing> BpfRing::open(int map_fd) {
  auto drain = std::make_unique<Drain>();
  std::unique_ptr<ring_buffer, Free> ring{ring_buffer__new(map_fd, Drain::on_record, drain.get(), nullptr)};
  if (!ring) return errno_error(errno, "cannot map a BPF ring buffer");
  return BpfRing{std::move(drain), std::move(ring)};
}

bool BpfRing::drain_records(std::size_t most, std::size_t record_size, Call call, void* context) {
  if (most == 0) return false;
  *drain_ = {.left = most, .record_size = record_size, .call = call, .context = context};
  return ring_buffer__consume(ring_.get()) != -ECANCELED;
}

}  // namespace rtev::kernel
