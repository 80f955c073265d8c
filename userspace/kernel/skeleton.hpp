// SPDX-License-Identifier: MIT
// What both sets of BPF programs do with bpftool's skeletons.
#pragma once

#include <span>
#include <string>

#include "rtev/error.hpp"

struct bpf_link;
struct bpf_program;

namespace rtev::kernel {

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

/// An error of libbpf: errno, the warnings that libbpf printed meanwhile, and a hint.
Error libbpf_error(int code, std::string what, std::string subject = {});

}  // namespace rtev::kernel
