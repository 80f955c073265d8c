// SPDX-License-Identifier: MIT
#include "session/command/ring_size.hpp"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/run_parameters.hpp"
#include "inspect/procfs.hpp"
#include "kernel/group_memory.hpp"
#include "rtev/event.hpp"

namespace rtev {
namespace {

/// Powers of two: words of a domain's ring.
constexpr unsigned wanted_bits = 20;

/// Of those that nobody asked for.
constexpr std::uint64_t max_rings_bytes = std::uint64_t{1} << 30;
/// Headers, and names of user events.
constexpr std::uint64_t other_bytes = std::uint64_t{2} << 20;

/// A file that fills up its file system kills its program (SIGBUS): all of it must fit, and as much again must be left.
/// Of the address space a program needs most for itself.
constexpr std::uint64_t share_of_free = 2, share_of_addresses = 4;

std::uint64_t limit_of(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return UINT64_MAX;
  return limit.rlim_cur;
}

/// Of its control group; 0 if that is not known.
std::uint64_t own_memory_left() {
  const pid_t pid = ::getpid();
  const auto stat = Procfs().stat(pid);
  return stat ? kernel::GroupMemory().left(pid, stat->start_ticks).value_or(0) : 0;
}

}  // namespace

RingLimits ring_limits(const std::string& directory) {
  RingLimits limits{.file = limit_of(RLIMIT_FSIZE), .addresses = limit_of(RLIMIT_AS)};
  struct statfs system{};
  if (::statfs(directory.c_str(), &system) != 0) return limits;
  limits.free = system.f_bavail * static_cast<std::uint64_t>(system.f_bsize);
  // What lies there counts as memory of whoever writes it.
  if (system.f_type == TMPFS_MAGIC) limits.free = std::min(limits.free, own_memory_left());
  return limits;
}

std::optional<RingParameters> fitting_rings(std::string_view parameters, const RingLimits& limits) {
  const std::uint64_t domains =
      std::clamp<std::uint64_t>(run_parameter(parameters, 'd').value_or(default_ring_domains), 1, max_domains);
  const auto with = [parameters](unsigned bits) {
    return fmt::format("{}{}e={}", parameters, parameters.empty() ? "" : ",", bits);
  };
  const auto is_possible = [domains](std::uint64_t bits) {
    return bits < 32 && can_make_rings(std::uint64_t{1} << bits, domains);
  };
  const auto chosen = run_parameter(parameters, 'e');
  if (const std::uint64_t asked = chosen.value_or(default_ring_bits); !is_possible(asked)) {
    unsigned bits = wanted_bits;
    while (bits > min_ring_bits && !is_possible(bits)) --bits;
    return RingParameters{
        .parameters = with(bits),
        .note = fmt::format("rings of 2^{} words for {} domains each (OCAMLRUNPARAM: e, d) are too {} for OCaml's "
                            "runtime: they have 2^{}",
                            asked, domains, asked < min_ring_bits ? "small" : "large", bits)};
  }
  if (chosen) return std::nullopt;
  for (unsigned bits = wanted_bits; bits > default_ring_bits; --bits) {
    const std::uint64_t rings = domains * sizeof(std::uint64_t) << bits, file = rings + other_bytes;
    if (rings > max_rings_bytes || file > limits.file || file > limits.addresses / share_of_addresses ||
        file > limits.free / share_of_free)
      continue;
    return RingParameters{.parameters = with(bits)};
  }
  return std::nullopt;
}

}  // namespace rtev
