// SPDX-License-Identifier: MIT
#include "kernel/bpf_ring.hpp"

#include <bpf/libbpf.h>

#include <cerrno>
#include <utility>

namespace rtev::kernel {

/// The read_records() in progress. libbpf takes the callback's context once, when the ring is opened.
struct BpfRing::Pass {
  std::size_t left = 0;
  std::size_t record_size = 0;
  Call call = nullptr;
  void* context = nullptr;

  static int on_record(void* self, void* record, std::size_t size) {
    auto& pass = *static_cast<Pass*>(self);
    if (size >= pass.record_size) {
      const std::span bytes(static_cast<const std::byte*>(record), size);
      pass.call(pass.context, record, bytes.subspan(pass.record_size));
    }
    // A negative result is libbpf's only way to stop; it still consumes this record.
    return --pass.left == 0 ? -ECANCELED : 0;
  }
};

void BpfRing::Free::operator()(ring_buffer* ring) const {
  ring_buffer__free(ring);
}

BpfRing::BpfRing(std::unique_ptr<Pass> pass, std::unique_ptr<ring_buffer, Free> ring)
    : pass_(std::move(pass)), ring_(std::move(ring)) {}
BpfRing::BpfRing(BpfRing&&) noexcept = default;
BpfRing& BpfRing::operator=(BpfRing&&) noexcept = default;
BpfRing::~BpfRing() = default;

Result<BpfRing> BpfRing::open(int map_fd) {
  auto pass = std::make_unique<Pass>();
  std::unique_ptr<ring_buffer, Free> ring{ring_buffer__new(map_fd, Pass::on_record, pass.get(), nullptr)};
  if (!ring) return errno_error(errno, "cannot map a BPF ring buffer");
  return BpfRing{std::move(pass), std::move(ring)};
}

bool BpfRing::read_records(std::size_t max_records, std::size_t record_size, Call call, void* context) {
  if (max_records == 0) return false;
  *pass_ = {.left = max_records, .record_size = record_size, .call = call, .context = context};
  return ring_buffer__consume(ring_.get()) != -ECANCELED;
}

}  // namespace rtev::kernel
