// SPDX-License-Identifier: MIT
// Attaches a BPF program to functions of a file: all in one link where the kernel has uprobe_multi, else one link each.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
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

/// Which BPF program to attach, and to what.
struct UprobeRequest {
  UniqueFd program{};
  UniqueFd file{};
  std::uint32_t binary_id = 0;
  std::vector<ProbeSite> sites{};
  std::vector<pid_t> pids{};  ///< processes of the file to probe; empty: all, now and later
  bool multi = false;         ///< the program was prepared by prepare_uprobe_multi()
  bool all_sites = false;     ///< it is an error if a site cannot be probed
};

/// A request to attach a program to an open file. Both descriptors are copied.
UprobeRequest request_for(const UprobeProgram& program, int file, std::uint32_t binary_id,
                          std::vector<ProbeSite> sites);

/// The sites of one file that could be attached to.
struct AttachedUprobes {
  std::vector<UprobeLink> links;
  std::size_t skipped = 0;  ///< sites that begin with an instruction that cannot be probed
};

/// Attaches with the cookie binary_id << 8 | function. Processes that have ended are left out. An error if no site can
/// be probed. Waits for the kernel, as long as MappingsCheck says and for every fork of the host. Thread-safe.
Result<AttachedUprobes> attach_uprobes(const UprobeRequest& request);

/// How programs are attached: attach_uprobes(), or by another process. Error::code EINPROGRESS: the kernel takes its
/// time; to be called again with the same request.
using AttachUprobes = std::function<Result<AttachedUprobes>(UprobeRequest request)>;

/// Whether attaching in one process includes all of its threads: only with uprobe_multi, and before Linux 6.10 even
/// then only the main thread.
bool can_probe_one_process(const UprobeProgram& program);

/// The result of a first, harmless use of BPF.
struct BpfAbilities {
  int error = 0;  ///< errno of loading a program that does nothing; 0: it works
  bool uprobe_multi = false;
};
BpfAbilities probe_bpf();

}  // namespace rtev::kernel
