// SPDX-License-Identifier: MIT
#include "kernel/attacher.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/child_end.hpp"
#include "base/clock.hpp"
#include "base/file_links.hpp"
#include "base/proc_files.hpp"
#include "helper/channel.hpp"
#include "helper/helper_process.hpp"
#include "kernel/libbpf.hpp"

namespace rtev::kernel {

// Where the archive looks for them: not in an unnamed namespace.
template <typename Archive>
static void fields(Archive& archive, ProbeSite& site) {
  archive(site.function, site.file_offset);
}
template <typename Archive>
static void fields(Archive& archive, UprobeRequest& request) {
  archive(request.program, request.file, request.binary_id, request.sites, request.pids, request.multi,
          request.all_sites);
}

namespace {

using helper::Message;
using helper::Reader;
using helper::Writer;

/// How long attach() waits. Mostly it takes the kernel some ten milliseconds.
constexpr int patience_ms = 100;

/// If it takes longer than this, nothing is attached for a multiple of the time.
constexpr std::uint64_t long_ns = 500'000'000, rest_factor = 4;

struct Answer {
  Error error{};  ///< `what` is empty if there is none
  std::uint64_t took_ns = 0;
  std::size_t skipped = 0;
  bool slow_to_detach = false;
  std::vector<UniqueFd> links{};
};

template <typename Archive>
void fields(Archive& archive, Answer& answer) {
  Error& error = answer.error;
  archive(error.what, error.subject, error.why, error.hint, error.code, answer.took_ns, answer.skipped,
          answer.slow_to_detach, answer.links);
}

Result<AttachedUprobes> links_of(Result<std::vector<UniqueFd>> links) {
  if (!links) return std::unexpected(std::move(links.error()));
  AttachedUprobes attached;
  for (UniqueFd& link : *links) attached.links.push_back({.fd = std::move(link)});
  return attached;
}

Answer answer_to(const UprobeRequest& request, std::span<const UniqueFd> tracepoint_programs) {
  Answer answer;
  const std::uint64_t begin_ns = monotonic_ns();
  auto attached =
      tracepoint_programs.empty() ? attach_uprobes(request) : links_of(kernel::attach_tracepoints(tracepoint_programs));
  answer.took_ns = monotonic_ns() - begin_ns;
  if (!attached) {
    answer.error = std::move(attached.error());
    return answer;
  }
  answer.skipped = attached->skipped;
  for (UprobeLink& link : attached->links) {
    answer.slow_to_detach = link.slow_to_detach;
    answer.links.push_back(std::move(link.fd));
  }
  return answer;
}

Result<AttachedUprobes> result_of(Answer answer) {
  if (!answer.error.what.empty()) return std::unexpected(std::move(answer.error));
  AttachedUprobes attached{.links = {}, .skipped = answer.skipped};
  for (UniqueFd& link : answer.links)
    attached.links.push_back({.fd = std::move(link), .slow_to_detach = answer.slow_to_detach});
  return attached;
}

/// The first message says how the kernel attaches; each further one is a request: for uprobes, unless it has programs
/// for tracepoints.
[[noreturn]] void serve(int channel, Attacher::Confine confine) {
  constexpr int nice = -10;  // of the thread that inspects programs, too
  ::setpriority(PRIO_PROCESS, 0, nice);
  [[maybe_unused]] const int moved = ::fchdir(own_proc());  // see uprobe_link.cpp
  bool uprobe_multi = false;
  if (auto first = helper::receive(channel, false)) {
    Reader{*first}(uprobe_multi);
    if (!confine(uprobe_multi)) ::_exit(1);
  }
  while (auto message = helper::receive(channel, false)) {
    UprobeRequest request;
    std::vector<UniqueFd> tracepoint_programs;
    Reader reader(*message);
    reader(request, tracepoint_programs);
    if (!reader.is_complete()) break;
    Answer answer = answer_to(request, tracepoint_programs);
    Message reply;
    Writer{reply}(answer);
    if (!helper::send(channel, reply)) break;
  }
  ::_exit(0);
}

std::unexpected<Error> is_gone() {
  return std::unexpected(Error{.what = "cannot attach", .why = "the process that attaches programs is gone"});
}

std::unexpected<Error> in_progress() {
  return errno_error(EINPROGRESS, "cannot attach");
}

}  // namespace

Result<Attacher> Attacher::start(Confine confine) {
  auto channel = helper::make_channel();
  if (!channel) return std::unexpected(std::move(channel.error()));
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(errno, "cannot start the process that attaches programs");
  if (pid == 0) {
    helper::leave_tracer(channel->second.get());
    serve(channel->second.get(), confine);
  }
  return Attacher(std::move(channel->first), end_of(pid));
}

Attacher::~Attacher() {
  abandon();
}

void Attacher::confine(bool uprobe_multi) const {
  Message message;
  Writer{message}(uprobe_multi);
  helper::send(channel_.get(), message);
}

Result<AttachedUprobes> Attacher::attach(UprobeRequest request) {
  const Asked asked{.tracepoints = false, .binary_id = request.binary_id, .all_sites = request.all_sites};
  std::vector<UniqueFd> no_programs;
  Message message;
  Writer{message}(request, no_programs);
  return ask(asked, message);
}

Result<std::vector<UniqueFd>> Attacher::attach_tracepoints(std::vector<UniqueFd> programs) {
  UprobeRequest no_uprobes;
  Message message;
  Writer{message}(no_uprobes, programs);
  auto attached = ask({.tracepoints = true}, message);
  if (!attached) return std::unexpected(std::move(attached.error()));
  std::vector<UniqueFd> links;
  for (UprobeLink& link : attached->links) links.push_back(std::move(link.fd));
  return links;
}

Result<AttachedUprobes> Attacher::ask(const Asked& asked, const helper::Message& message) {
  const std::lock_guard lock(mutex_);
  if (asked_ && *asked_ != asked && !discard_answer()) return in_progress();
  const bool is_new = !asked_;
  if (is_new) {
    // Forks do not wait for tracepoints.
    if (!asked.tracepoints && monotonic_ns() < rests_until_ns_) return in_progress();
    if (!helper::send(channel_.get(), message, true)) return is_gone();
    asked_ = asked;
  }
  auto answer = take_answer(is_new ? patience_ms : 0);
  return answer ? std::move(*answer) : in_progress();
}

void Attacher::abandon() {
  const std::lock_guard lock(mutex_);
  if (!asked_) return;
  // The process cannot send its answer any more then.
  ::shutdown(channel_.get(), SHUT_RD);
  discard_answer();
}

/// Nothing if there is none yet.
std::optional<Result<AttachedUprobes>> Attacher::take_answer(int timeout_ms) {
  pollfd answered{.fd = channel_.get(), .events = POLLIN, .revents = 0};
  ::poll(&answered, 1, timeout_ms);
  auto message = helper::receive(channel_.get(), true);
  if (!message && errno == EAGAIN) return std::nullopt;
  asked_.reset();
  Answer answer;
  if (!message) return is_gone();
  Reader reader(*message);
  reader(answer);
  if (!reader.is_complete()) return is_gone();
  if (answer.took_ns > long_ns) rests_until_ns_ = monotonic_ns() + rest_factor * answer.took_ns;
  return result_of(std::move(answer));
}

/// Of a request that nobody repeats. False if there is no answer yet.
bool Attacher::discard_answer() {
  auto answer = take_answer(0);
  if (!answer) return false;
  if (!*answer) return true;
  constexpr int no_check = -1;  // the kernel has just visited all mappings
  std::vector<FileLinks> files(1);
  for (UprobeLink& link : (*answer)->links) files.front().links.push_back(std::move(link.fd));
  close_links_now(close_links_in_background(no_check, std::move(files)));
  return true;
}

}  // namespace rtev::kernel
