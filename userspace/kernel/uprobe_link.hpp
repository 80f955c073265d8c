// SPDX-License-Identifier: MIT
// Attaches a BPF program to functions of a file: many at once where the kernel can, else one by one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

struct bpf_link;
struct bpf_program;

namespace rtev::kernel {

/// expected_attach_type of a program that is attached to many functions at once. Newer than the headers of libbpf 1.1.
inline constexpr int attach_type_uprobe_multi = 48;

struct BpfLinkDestroy {
  void operator()(bpf_link* link) const;
};
using BpfLink = std::unique_ptr<bpf_link, BpfLinkDestroy>;

/// One attachment, undone on destruction: a descriptor where libbpf does not know the kind.
using UprobeLink = std::variant<UniqueFd, BpfLink>;

/// A function to attach to, and what bpf_get_attach_cookie() returns there.
struct UprobeTarget {
  std::uint64_t file_offset;
  std::uint64_t cookie;
};

/// What the kernel says to a first, harmless use of BPF.
struct BpfAbilities {
  int error = 0;  ///< errno of loading a program that does nothing; 0: it works
  bool uprobe_multi = false;
};
BpfAbilities probe_bpf();

/// Targets of one file, as far as they can be probed.
struct AttachedUprobes {
  std::vector<UprobeLink> links;
  std::size_t skipped = 0;  ///< targets that begin with an instruction that cannot be probed
};

/// One link for all targets, or one each where that fails; the program must have been loaded with
/// attach_type_uprobe_multi. For every process that maps the file, or for one: ESRCH if there is no such process. An
/// error if none can be probed. Thread-safe.
inline constexpr pid_t every_process = 0;
Result<AttachedUprobes> attach_uprobe_multi(int program_fd, const std::string& path,
                                            std::span<const UprobeTarget> targets, pid_t pid = every_process);

/// Whether probes for one process are hit by all of its threads. Linux before 6.10 took its main thread only.
bool uprobe_multi_filters_by_process();

/// The same through perf_event, always with one link each.
Result<AttachedUprobes> attach_uprobes(const bpf_program* program, const std::string& path,
                                       std::span<const UprobeTarget> targets);

/// Undoes attachments in many threads at once: the kernel waits for a grace period each time, and the waits overlap.
void destroy_in_parallel(std::vector<UprobeLink> links);

}  // namespace rtev::kernel
