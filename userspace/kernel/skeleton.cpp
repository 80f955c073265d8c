// SPDX-License-Identifier: MIT
#include "kernel/skeleton.hpp"

#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "kernel/libbpf_log.hpp"

namespace rtev::kernel {

Result<void> attach_programs(std::span<const Attachment> attachments) {
  for (const auto& [program, link] : attachments) {
    if (!bpf_program__autoload(program)) continue;
    *link = bpf_program__attach(program);
    if (*link == nullptr)
      return std::unexpected(libbpf_error(errno, "cannot attach to tracepoint", bpf_program__section_name(program)));
  }
  return {};
}

Error libbpf_error(int code, std::string what, std::string subject) {
  Error error = errno_error(code, std::move(what), std::move(subject)).error();
  if (const std::string warnings = take_libbpf_warnings(); !warnings.empty())
    error.why += fmt::format(" ({})", warnings);
  error.hint = code == EPERM || code == EACCES ? "run as root (sudo); rtev-bpf doctor shows what is missing"
                                               : "rtev-bpf doctor shows what this host allows";
  return error;
}

}  // namespace rtev::kernel
