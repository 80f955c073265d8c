// SPDX-License-Identifier: MIT
// The part of RootlessSources that follows processes: how they come into view and end.
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.hpp"
#include "base/program_names.hpp"
#include "inspect/procfs.hpp"
#include "ring/reader_access.hpp"
#include "session/rootless/rootless_sources.hpp"

namespace rtev {
namespace {

/// Of parents, up to the command.
constexpr int max_ancestors = 64;

/// When a process began, by CLOCK_MONOTONIC and not later than it did.
std::uint64_t began_ns(const Image& image) {
  const std::uint64_t suspended_ns = clock_ns(CLOCK_BOOTTIME) - monotonic_ns();
  const std::uint64_t began = image.start_ticks * ns_per_tick;
  return began - std::min(began, suspended_ns);
}

/// The wait status of a zombie that is a child of this process; exit_unseen of any other process.
std::int64_t status_of(int pidfd) {
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOWAIT | WNOHANG) != 0 || info.si_pid == 0)
    return exit_unseen;
  switch (info.si_code) {
    case CLD_EXITED:
      return W_EXITCODE(info.si_status, 0);
    case CLD_DUMPED:
      return W_EXITCODE(0, info.si_status) | WCOREFLAG;
    default:
      return W_EXITCODE(0, info.si_status);
  }
}

}  // namespace

bool RootlessSources::belongs_to_command(const FoundRings& found) const {
  if (!followed_ || followed_->is_private || !found.view->stat) return true;
  if (found.pid == followed_->pid) return true;
  // It may have ended since it was looked at.
  const Procfs procfs;
  std::int32_t pid = found.view->stat->parent;
  for (int i = 0; i < max_ancestors && pid > 1; ++i) {
    if (pid == followed_->pid || processes_.find(pid) != nullptr) return true;
    const auto stat = procfs.stat(pid);
    if (!stat) break;
    pid = stat->parent;
  }
  return false;
}

/// The process of a ring; null if it is not to be traced.
TracedProcess* RootlessSources::process_of(FoundRings& found, std::uint64_t now_ns) {
  Image image = std::move(found.view->image);
  found.view->image = {};
  if (TracedProcess* const known = processes_.find(found.pid)) {
    const auto exe = image.file ? BinaryCache::identify(image.file.get()) : std::unexpected(Error{});
    const bool is_same_process = image.start_ticks == 0 || image.start_ticks == known->start_ticks;
    const bool is_other_program = exe && known->program.exe && !exe->same_file(*known->program.exe);
    if (is_same_process && !is_other_program) {
      known->has_ring |= !found.rings.empty();
      if (known->has_ring && !known->index) add_to_stream(*known);
      if (known->has_ring) names_.note_ring(*known);
      return known;
    }
    end(found.pid, now_ns, is_same_process ? exit_by_exec : exit_unseen);
  }
  if (followed_ && image.comm.empty() && found.pid == followed_->pid) image.comm = followed_->name;
  if (!options_.filter.wants(found.pid, image.names(), true) || !belongs_to_command(found)) return nullptr;
  UniqueFd file = std::move(image.file);
  TracedProcess& process = add(found, std::move(image), now_ns);
  names_.identify(process, std::move(file));
  return processes_.find(found.pid);
}

TracedProcess& RootlessSources::add(const FoundRings& found, Image image, std::uint64_t now_ns) {
  const std::int32_t pid = found.pid;
  TracedProcess process{
      .pid = pid,
      .start_ticks = image.start_ticks,
      .user = ::getuid(),
      .origin = found.is_new ? ProcessAction::exec : ProcessAction::found,
      .since_ns =
          found.is_new ? std::clamp(began_ns(image), std::max(stream_.start_ns, now_ns - max_age_ns), now_ns) : now_ns,
      .has_ring = !found.rings.empty(),
      .program = {.by_loader = is_loader_path(image.exe), .start_code = image.start_code}};
  const std::int32_t parent_pid = found.view->stat ? found.view->stat->parent : 0;
  // The addresses of a program are random, apart from those of a forked child.
  if (const TracedProcess* const parent = processes_.find(parent_pid);
      parent != nullptr && parent->index && image.start_code > 1 && image.start_code == parent->program.start_code &&
      processes_.info(*parent).exe == image.exe) {
    process.origin = ProcessAction::fork;
    process.peer = parent_pid;
  }
  process.info.pid = pid;
  process.info.ns_pid = image.ns_pid != 0 ? image.ns_pid : pid;
  process.info.start_ticks = image.start_ticks;
  process.info.comm = std::move(image.comm);
  process.info.exe = std::move(image.exe);
  process.info.script = std::move(image.script);
  if (const auto family = family_of_version(options_.forced_version)) {
    process.info.version = options_.forced_version;
    process.info.family = *family;
    process.info.family_source = FamilySource::forced;
  }
  Watched watched{.end = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)))};
  epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<std::uint64_t>(pid)}};
  if (!found.view->stat || !watched.end || ::epoll_ctl(ends_.get(), EPOLL_CTL_ADD, watched.end.get(), &event) != 0)
    watched.ended_ns = monotonic_ns();
  watched_.insert_or_assign(pid, std::move(watched));
  TracedProcess& added = processes_.insert(std::move(process));
  if (added.has_ring) add_to_stream(added);
  return added;
}

void RootlessSources::add_to_stream(TracedProcess& process) {
  process.info.user = process.user;
  process.index = stream_.registry.add_process(std::move(process.info));
  if (options_.services) processes_.ask_service(queries_, process);
  report(process.since_ns, process.origin, {.process = *process.index, .peer = process.peer, .detail = 0});
  if (sampler_) sampler_->add(process.pid);
}

/// True if another program has begun a ring in the file.
bool RootlessSources::is_replaced(const Watched& watched) {
  return std::ranges::any_of(watched.rings, [](const auto& ring) { return RingReaderAccess::taken_over(*ring); });
}

/// Programs that run in place of another one.
void RootlessSources::find_successors(std::uint64_t now_ns) {
  std::vector<std::int32_t> replaced;
  for (const auto& [pid, watched] : watched_)
    if (is_replaced(watched)) replaced.push_back(pid);
  for (const std::int32_t pid : replaced) {
    end(pid, now_ns, exit_by_exec);
    finder_.look_again(pid, now_ns);
  }
}

void RootlessSources::find_ends() {
  std::array<epoll_event, 64> events;
  for (int count = static_cast<int>(events.size()); count == static_cast<int>(events.size());) {
    count = ::epoll_wait(ends_.get(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i) {
      const auto found = watched_.find(static_cast<std::int32_t>(events.at(static_cast<std::size_t>(i)).data.u64));
      if (found == watched_.end()) continue;
      ::epoll_ctl(ends_.get(), EPOLL_CTL_DEL, found->second.end.get(), nullptr);
      found->second.ended_ns = monotonic_ns();  // not earlier than its last event
    }
  }
}

/// Not before the last of its rings is open, or known to be none.
void RootlessSources::end_processes() {
  std::vector<std::int32_t> gone;
  for (const auto& [pid, watched] : watched_)
    if (watched.ended_ns != 0 && !finder_.has_found(pid)) gone.push_back(pid);
  for (const std::int32_t pid : gone) {
    // Its last program may have begun a ring in the file of the one before.
    const TracedProcess* const process = processes_.find(pid);
    if (process == nullptr) continue;
    for (const std::uint32_t slot : process->rings.slots) rings_.read_last(slot, monotonic_ns());
    const Watched& watched = watched_[pid];
    if (is_replaced(watched)) {
      end(pid, watched.ended_ns, exit_by_exec);
      finder_.look_again(pid, monotonic_ns());
    } else {
      end(pid, watched.ended_ns, watched.end ? status_of(watched.end.get()) : exit_unseen);
    }
  }
}

/// The image is gone, by exit or exec; its rings are read to their end.
void RootlessSources::end(std::int32_t pid, std::uint64_t time_ns, std::int64_t status) {
  const std::uint64_t last_ring_ns = watched_[pid].last_ring_ns;
  watched_.erase(pid);
  if (sampler_) sampler_->remove(pid);
  TracedProcess* const process = processes_.find(pid);
  if (process == nullptr) return;
  if (process->index) {
    has_news_ = true;
    if (stacks_) {
      // Its last stacks, while its process is known.
      stacks_->stage(monotonic_ns());
      stacks_->forget(*process->index);
      stack_source_->remove_target(pid);
    }
    // On a busy host it is found when it has ended.
    report(std::max({time_ns, process->since_ns, last_ring_ns}), ProcessAction::exit,
           {.process = *process->index, .peer = 0, .detail = status});
    for (const RingFileId& file : process->rings.files) opener_.forget(*process->index, file);
    ProcessInfo& info = stream_.registry.process(*process->index);
    info.ended = true;
    for (const std::uint32_t slot : process->rings.slots) rings_.seal(slot, time_ns);
    ended_.push_back({.process = *process->index,
                      .slots = process->rings.slots,
                      .files = process->rings.files,
                      .time_ns = time_ns,
                      .deadline_ns = time_ns + max_end_wait_ns,
                      .by_exec = status == exit_by_exec});
    info.ring = after_end(info.ring);
    names_.keep_if_unnamed(std::move(*process));
  }
  processes_.erase(pid);
}

}  // namespace rtev
