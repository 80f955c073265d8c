// SPDX-License-Identifier: MIT
#include "kernel/libbpf.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string_view>
#include <utility>

namespace rtev::kernel {
namespace {

constexpr std::size_t kept_warnings = 4;

struct Log {
  std::atomic<bool> verbose = false;
  std::mutex mutex;
  std::deque<std::string> warnings;
};

Log& log() {
  static Log instance;
  return instance;
}

void keep_warning(const char* format, va_list arguments) {
  std::array<char, 512> text;
  if (std::vsnprintf(text.data(), text.size(), format, arguments) < 0) return;
  std::string_view line{text.data()};
  if (line.starts_with("libbpf: ")) line.remove_prefix(8);
  // The verifier's log is one message of many lines: only of use to developers, who get it with set_libbpf_verbose().
  line = line.substr(0, line.find('\n'));
  if (line.contains("BEGIN PROG LOAD LOG")) return;
  if (line.empty()) return;
  const std::scoped_lock lock{log().mutex};
  if (log().warnings.size() == kept_warnings) log().warnings.pop_front();
  log().warnings.emplace_back(line);
}

int print(libbpf_print_level level, const char* format, va_list arguments) {
  if (log().verbose) {
    va_list copy;
    va_copy(copy, arguments);
    std::vfprintf(stderr, format, copy);
    va_end(copy);
  }
  if (level == LIBBPF_WARN) keep_warning(format, arguments);
  return 0;
}

}  // namespace

void capture_libbpf_log() {
  libbpf_set_print(print);
}

void set_libbpf_verbose(bool verbose) {
  capture_libbpf_log();
  log().verbose = verbose;
}

std::string take_libbpf_warnings() {
  std::deque<std::string> warnings;
  {
    const std::scoped_lock lock{log().mutex};
    warnings.swap(log().warnings);
  }
  std::string joined;
  for (const auto& warning : warnings) {
    if (!joined.empty()) joined += "; ";
    joined += warning;
  }
  return joined;
}

Result<void> attach_programs(std::span<const Attachment> attachments) {
  for (const auto& [program, link] : attachments) {
    if (!bpf_program__autoload(program)) continue;
    *link = bpf_program__attach(program);
    if (*link == nullptr)
      return std::unexpected(libbpf_error(errno, "cannot attach to tracepoint", bpf_program__section_name(program)));
  }
  return {};
}

Result<std::vector<UniqueFd>> attach_tracepoints(std::span<const UniqueFd> programs) {
  std::vector<UniqueFd> links;
  for (const UniqueFd& program : programs) {
    constexpr int no_target = 0;
    UniqueFd link{bpf_link_create(program.get(), no_target, BPF_TRACE_RAW_TP, nullptr)};
    if (!link) return std::unexpected(libbpf_error(errno, "cannot attach to tracepoint"));
    links.push_back(std::move(link));
  }
  return links;
}

Error libbpf_error(int code, std::string what, std::string subject) {
  Error error = errno_error(code, std::move(what), std::move(subject)).error();
  if (const std::string warnings = take_libbpf_warnings(); !warnings.empty())
    error.why += fmt::format(" ({})", warnings);
  if (code == EPERM || code == EACCES) {
    error.hint = ::geteuid() == 0 ? "rtev-bpf doctor shows which rights this root lacks"
                                  : "run as root (sudo); rtev-bpf doctor shows what is missing";
  } else if (code != EMFILE) {
    error.hint = "rtev-bpf doctor shows what this host allows";
  }
  return error;
}

}  // namespace rtev::kernel
