// SPDX-License-Identifier: MIT
#include "load/fleet.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/clock.hpp"
#include "load/process.hpp"
#include "load/stop.hpp"

namespace rtev::load {
namespace {

/// Why a process ended without a report.
Error exit_error(pid_t pid, int status) {
  Error error{.what = "a process of the load failed:", .subject = "pid " + std::to_string(pid)};
  if (WIFSIGNALED(status)) {
    error.why = fmt::format("killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
    if (WTERMSIG(status) == SIGBUS) error.hint = "check whether the file system of the rings is full (--directory)";
  } else {
    error.why = fmt::format("ended with status {} without a report", WEXITSTATUS(status));
  }
  return error;
}

/// The error that a process sent: the message, and the hint in a second line.
Error received_error(std::string_view text) {
  constexpr std::string_view separator = "\nhint: ";
  const std::size_t end = text.find(separator);
  Error error{.what = std::string(text.substr(0, end))};
  if (end != std::string_view::npos) error.hint = text.substr(end + separator.size());
  return error;
}

/// Errors are checked at the end.
void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

Result<std::pair<UniqueFd, UniqueFd>> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return errno_error(errno, "cannot create a pipe", {}, "raise ulimit -n, or start fewer processes");
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

}  // namespace

Result<Totals> Fleet::run() {
  auto gate = make_pipe();
  if (!gate) return std::unexpected(std::move(gate.error()));
  gate_in_ = std::move(gate->first);
  gate_out_ = std::move(gate->second);

  for (std::uint32_t number = 0; number < options_.processes && !failure_; ++number) {
    if (auto started = start(number); !started) fail(std::move(started.error()));
  }
  while (!children_.empty()) step();
  ended_ns_ = monotonic_ns();
  put(json_footer(totals_, duration_ns()));
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    fail({.what = "cannot write the report", .why = std::strerror(errno)});
  if (failure_) return std::unexpected(*failure_);
  return totals_;
}

Result<void> Fleet::start(std::uint32_t number) {
  auto pipe = make_pipe();
  if (!pipe) return std::unexpected(std::move(pipe.error()));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(errno, "cannot start a process", {}, "raise ulimit -u, or start fewer processes");
  if (pid == 0) {
    // The pipes of other children and the parent's end of the gate.
    children_.clear();
    gate_out_.reset();
    pipe->first.reset();
    run_process({.options = options_,
                 .plans = plans_,
                 .directory = place_.directory,
                 .is_temporary = place_.is_temporary,
                 .name = options_.names.empty() ? std::string() : options_.names[number % options_.names.size()],
                 .parent = parent,
                 .report_fd = pipe->second.get(),
                 .gate_fd = gate_in_.get(),
                 .end_ns = end_ns_});
  }
  children_.push_back(
      {.pid = pid, .number = number, .report = std::move(pipe->first), .received = {}, .is_ready = false});
  return {};
}

void Fleet::step() {
  const bool listens = options_.wait && is_announced_ && gate_out_;
  std::vector<pollfd> fds;
  fds.reserve(children_.size() + 1);
  for (const Child& child : children_) fds.push_back({.fd = child.report.get(), .events = POLLIN, .revents = 0});
  fds.push_back({.fd = listens ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0});

  if (stop_requested()) end_all();
  if (::ppoll(fds.data(), fds.size(), nullptr, is_ending_ ? nullptr : &open_mask_) < 0) return;

  if (fds.back().revents != 0) read_stdin();
  // Backwards, because children that ended are erased, and their replacements are appended.
  for (std::size_t i = children_.size(); i-- > 0;) {
    if (fds[i].revents == 0) continue;
    receive(children_[i]);
    if (children_[i].report) continue;
    const Child child = std::move(children_[i]);
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
    reap(child);
  }
  if (is_announced_ || !all_ready()) return;
  is_announced_ = true;
  if (options_.wait) {
    put("ready\n");
    std::fflush(stdout);
  } else {
    open_gate();
  }
}

void Fleet::receive(Child& child) {
  std::array<char, 16384> bytes;
  const ssize_t size = ::read(child.report.get(), bytes.data(), bytes.size());
  if (size < 0 && errno == EINTR) return;
  if (size <= 0) return child.report.reset();
  child.received.append(bytes.data(), static_cast<std::size_t>(size));
  if (!child.is_ready && child.received.front() == static_cast<char>(Tag::ready)) {
    child.is_ready = true;
    child.received.erase(0, 1);
  }
}

void Fleet::reap(const Child& child) {
  open_gate();  // a child that ends before the gate was killed: the others must not wait for it
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) continue;
  const Tag tag = child.received.empty() ? Tag::ready : static_cast<Tag>(child.received.front());
  const std::string_view text = std::string_view(child.received).substr(child.received.empty() ? 0 : 1);
  if (tag == Tag::error) return fail(received_error(text));
  const auto report = tag == Tag::report ? decode(text) : std::nullopt;
  if (status != 0 || !report) return fail(exit_error(child.pid, status));
  print(*report);
  if (!is_replaced()) return;
  if (auto started = start(child.number); !started) fail(std::move(started.error()));
}

void Fleet::print(const ProcessReport& report) {
  put((totals_.processes == 0 ? "" : ",\n") + json_process(report));
  totals_.add(report);
}

bool Fleet::is_replaced() const {
  return options_.process_lifetime && !is_ending_ && !stop_requested() && monotonic_ns() < end_ns_;
}

bool Fleet::all_ready() const {
  return std::ranges::all_of(children_, &Child::is_ready);
}

void Fleet::read_stdin() {
  std::array<char, 256> bytes;
  const ssize_t size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0 || std::memchr(bytes.data(), '\n', static_cast<std::size_t>(size)) != nullptr) open_gate();
}

void Fleet::open_gate() {
  if (!gate_out_) return;
  began_ns_ = monotonic_ns();
  if (options_.duration) end_ns_ = began_ns_ + static_cast<std::uint64_t>(options_.duration->count());
  gate_out_.reset();
  put(json_header());
}

void Fleet::end_all() {
  if (is_ending_) return;
  is_ending_ = true;
  open_gate();
  for (const Child& child : children_) ::kill(child.pid, SIGTERM);
}

void Fleet::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
  end_all();
}

}  // namespace rtev::load
