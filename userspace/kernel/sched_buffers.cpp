// SPDX-License-Identifier: MIT
#include "kernel/sched_buffers.hpp"

#include <bpf/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

namespace rtev::kernel {

SchedBufferPlan plan_sched_buffers(std::size_t total_bytes, std::uint32_t cpus) {
  const std::uint32_t count = std::clamp<std::uint32_t>(cpus, 1, max_sched_buffers);
  const std::size_t share =
      std::clamp<std::size_t>(total_bytes / count, min_sched_buffer_bytes, max_sched_buffer_bytes);
  const auto bytes = static_cast<std::uint32_t>(std::bit_floor(share));
  return {.count = count, .bytes = bytes, .wakeup_shift = static_cast<std::uint32_t>(std::bit_width(bytes)) - 3};
}

Result<SchedBuffers> SchedBuffers::create(const SchedBufferPlan& plan, int map_of_maps_fd) {
  SchedBuffers created;
  created.buffers_.reserve(plan.count);
  for (std::uint32_t index = 0; index < plan.count; ++index) {
    UniqueFd map{bpf_map_create(BPF_MAP_TYPE_RINGBUF, "sched", 0, 0, plan.bytes, nullptr)};
    if (!map) return errno_error(errno, "cannot create a scheduler buffer", {}, "try a smaller --buffer");
    const int fd = map.get();
    auto ring = BpfRing::open(fd);
    if (!ring) return std::unexpected(std::move(ring.error()));
    if (bpf_map_update_elem(map_of_maps_fd, &index, &fd, BPF_ANY) != 0)
      return errno_error(errno, "cannot pass a scheduler buffer to the BPF programs");
    created.buffers_.push_back({std::move(map), std::move(*ring)});
  }
  return created;
}

}  // namespace rtev::kernel
