// SPDX-License-Identifier: MIT
// Attaches a BPF program to functions of a file: all in one link where the kernel has uprobe_multi, else one link each.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

struct bpf_program;

namespace rtev::kernel {

/// One attachment, undone on destruction. Made without libbpf: version 1.1 does not know uprobe_multi, and loads BPF
/// programs to find out what the kernel can do, which the tracer may not do any more when it attaches.
struct UprobeLink {
  UniqueFd fd;
  /// Through perf_event: the kernel waits for a grace period of up to a second when the link is destroyed.
  bool slow_to_detach = false;
};

/// A function of a binary to probe.
struct ProbeSite {
  std::uint8_t function;  ///< enum rtev_probe or enum rtev_emitter
  std::uint64_t file_offset;

  bool operator==(const ProbeSite&) const = default;
};

/// A loaded BPF program.
struct UprobeProgram {
  const bpf_program* program;
  bool multi;  ///< prepared by prepare_uprobe_multi()
};

/// Before the program is loaded: it will be attached by uprobe_multi.
void prepare_uprobe_multi(bpf_program* program);

/// The sites of one file that could be attached to.
struct AttachedUprobes {
  std::vector<UprobeLink> links;
  std::size_t skipped = 0;  ///< sites that begin with an instruction that cannot be probed
};

/// Attaches to sites of an open file, with the cookie binary_id << 8 | function, in every process that maps the file,
/// now or later. Or in one process, `pid`: ESRCH if there is no such process. An error if no site can be probed.
/// Thread-safe.
inline constexpr pid_t every_process = 0;
Result<AttachedUprobes> attach_uprobes(const UprobeProgram& program, int file, std::uint32_t binary_id,
                                       std::span<const ProbeSite> sites, pid_t pid = every_process);

/// Whether attaching in one process includes all of its threads: only with uprobe_multi, and before Linux 6.10 even
/// then only the main thread.
bool can_probe_one_process(const UprobeProgram& program);

/// Destroys links in many threads at once: the kernel waits for a grace period for each, and the waits overlap.
void destroy_in_parallel(std::vector<UprobeLink> links);

/// The result of a first, harmless use of BPF.
struct BpfAbilities {
  int error = 0;  ///< errno of loading a program that does nothing; 0: it works
  bool uprobe_multi = false;
};
BpfAbilities probe_bpf();

}  // namespace rtev::kernel
