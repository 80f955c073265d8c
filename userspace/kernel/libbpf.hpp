// SPDX-License-Identifier: MIT
// What all BPF programs need of libbpf: skeletons, errors, and its messages, of which nothing is printed and the last
// warnings are kept to explain errors.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

struct bpf_link;
struct bpf_program;

namespace rtev::kernel {

/// Captures libbpf's messages from now on. Further calls do nothing. Thread-safe.
void capture_libbpf_log();

/// Also prints every message of libbpf to stderr, including debug messages.
void set_libbpf_verbose(bool verbose);

/// The last few warnings of libbpf since the last call, as one line; empty if there were none. Thread-safe.
std::string take_libbpf_warnings();

/// A deleter for std::unique_ptr, from the destroy function of a skeleton.
template <auto Destroy>
struct SkeletonDestroy {
  void operator()(auto* skeleton) const { Destroy(skeleton); }
};

/// A program of a skeleton and where its link is kept.
struct Attachment {
  const bpf_program* program;
  bpf_link** link;
};
/// Attaches programs in this order; those that were not loaded are skipped.
Result<void> attach_programs(std::span<const Attachment> attachments);

/// Attaches programs of tracepoints (tp_btf) in this order. Returns their links.
Result<std::vector<UniqueFd>> attach_tracepoints(std::span<const UniqueFd> programs);
/// How they are attached: attach_tracepoints(), or by another process. Error::code EINPROGRESS: the kernel takes its
/// time; to be called again with the same programs, also if they need not be attached any more.
using AttachTracepoints = std::function<Result<std::vector<UniqueFd>>(std::vector<UniqueFd> programs)>;

/// An error of libbpf: errno, the warnings that libbpf printed meanwhile, and a hint.
Error libbpf_error(int code, std::string what, std::string subject = {});

}  // namespace rtev::kernel
