// SPDX-License-Identifier: MIT
#include "helper/helper_process.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/capabilities.hpp"
#include "base/child_end.hpp"
#include "base/clock.hpp"
#include "base/file_limit.hpp"
#include "base/file_links.hpp"
#include "base/mappings_check.hpp"
#include "base/proc_files.hpp"
#include "helper/channel.hpp"
#include "unwind/process_code.hpp"

namespace rtev::helper {
namespace {

/// CPU time after which a real-time worker is lowered. The kernel counts it in ticks of up
/// to 10 ms.
constexpr rlim_t max_real_time_us = 20'000;

/// Whoever made the query long could stop every ordinary process otherwise.
void lower(int) {
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_OTHER, &none);
}

void become_real_time() {
  ::signal(SIGXCPU, lower);
  const rlimit limit{.rlim_cur = max_real_time_us, .rlim_max = RLIM_INFINITY};
  ::setrlimit(RLIMIT_RTTIME, &limit);
  const sched_param lowest{.sched_priority = 1};
  ::sched_setscheduler(0, SCHED_FIFO, &lowest);
}

constexpr int raised_nice = -10, lowered_nice = 5;

/// Where the scheduler groups processes by session, nice values count within a group only.
void set_session_priority(int value) {
  const std::string nice = std::to_string(value);
  const UniqueFd group = open_proc("/proc/self/autogroup", O_WRONLY);
  if (group) [[maybe_unused]]
    const ssize_t put = ::write(group.get(), nice.data(), nice.size());
}

void set_priority(Priority priority) {
  const bool is_lowered = priority == Priority::lowered;
  ::setpriority(PRIO_PROCESS, 0, is_lowered ? lowered_nice : raised_nice);
  priority == Priority::real_time ? become_real_time() : lower(0);
  if (!is_lowered) return;
  ::setsid();
  // Fails where others changed theirs just before: then its session has the priority of any other one.
  set_session_priority(lowered_nice);
}

/// Answers queries until the channel is closed, or it was lowered: it has no right to become real-time again.
[[noreturn]] void work(int channel) {
  Procfs procfs;
  const int policy = ::sched_getscheduler(0);
  bool ends = false;
  while (!ends) {
    auto message = receive(channel, false);
    if (!message) break;
    ProcessQuery query;
    Priority priority{};
    Reader reader(*message);
    reader(query, priority);
    if (!reader.is_complete()) break;
    if (priority != Priority::real_time) lower(0);
    const std::uint64_t before_ns = thread_cpu_ns();
    procfs.set_careful(query.careful);
    ProcessView view = look_at(procfs, query);
    if (query.code_but) view.code = look_at_code(procfs, query.pid, *query.code_but, query.builds_tables);
    std::uint64_t cpu_ns = thread_cpu_ns() - before_ns;
    ends = ::sched_getscheduler(0) != policy;
    Message answer;
    Writer{answer}(view, cpu_ns, ends);
    if (!send(channel, answer)) break;
  }
  ::_exit(0);
}

/// Closes the files of a message after the next one, until the channel is closed.
[[noreturn]] void close_files(int channel) {
  const Message done{.bytes = {std::byte{}}, .fds = {}};
  bool closed = true;
  for (std::optional<Message> held = Message(); held;) {
    // Nobody reads it after the end of the tracer.
    if (closed) send(channel, done, true);
    auto next = receive(channel, false);
    closed = !held->fds.empty();
    held = std::move(next);
  }
  ::_exit(0);
}

/// Closes the links of those files whose mappings allow it, and removes these files.
void close_free_links(std::vector<LinksMessage>& files) {
  const auto free = std::ranges::partition(files, [](const LinksMessage& file) {
    return check_mappings(file.mappings.get(), file.file.get()) != RTEV_MAPPINGS_FREE;
  });
  std::vector<UniqueFd> links;
  for (LinksMessage& file : free) std::ranges::move(file.links, std::back_inserter(links));
  close_in_parallel(std::move(links));
  files.erase(free.begin(), free.end());
}

/// Waits for the next message, or for the time of the next try. False at the end of the channel.
bool receive_links(int channel, int timeout_ms, LinksMessage& links) {
  pollfd message{.fd = channel, .events = POLLIN, .revents = 0};
  if (::poll(&message, 1, timeout_ms) == 0) return true;
  auto received = receive(channel, true);
  if (!received) return errno == EAGAIN;
  if (received->bytes.size() <= 1) return true;
  Reader reader(*received);
  reader(links);
  return reader.is_complete();
}

/// It waits as long as it has to: if a link is closed while a process keeps its memory map locked, no process of the
/// host can fork for as long as that process likes.
[[noreturn]] void close_links(int channel) {
  constexpr int first_retry_ms = 10, longest_retry_ms = 1000;
  raise_file_limit();
  std::vector<LinksMessage> files;
  bool is_open = true;
  for (int retry_ms = first_retry_ms; is_open || !files.empty(); retry_ms = std::min(2 * retry_ms, longest_retry_ms)) {
    if (!is_open) ::poll(nullptr, 0, retry_ms);
    // All messages that are there at a time, since the waits of the kernel overlap.
    for (int wait_ms = files.empty() ? -1 : retry_ms; is_open; wait_ms = 0) {
      LinksMessage message;
      is_open = receive_links(channel, wait_ms, message);
      if (message.links.empty()) break;
      // The tracer may still have these links open: whoever closes a link last waits. It says so when it has not.
      LinksMessage none;
      is_open = receive_links(channel, -1, none);
      files.push_back(std::move(message));
      retry_ms = first_retry_ms;
    }
    close_free_links(files);
  }
  ::_exit(0);
}

}  // namespace

void close_but(std::vector<int> kept) {
  std::ranges::sort(kept);
  unsigned next = STDERR_FILENO + 1;
  for (const int fd : kept) {
    if (fd < static_cast<int>(next)) continue;
    if (static_cast<unsigned>(fd) > next) ::close_range(next, static_cast<unsigned>(fd) - 1, 0);
    next = static_cast<unsigned>(fd) + 1;
  }
  ::close_range(next, ~0u, 0);
}

void leave_tracer(int channel) {
  ::setsid();
  set_session_priority(raised_nice);
  const int null = ::open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (null >= 0) ::dup2(null, standard);
  close_but({channel, own_proc()});
  [[maybe_unused]] const int moved = ::chdir("/");
  // It ends when its channel does. SIGCHLD: nobody waits for workers.
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD, SIGTSTP}) ::signal(signal, SIG_IGN);
  ::prctl(PR_SET_NAME, "rtev-helper");
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 0);
}

/// Forks a worker for each channel that arrives, until the tracer is gone. Real-time, as workers are while they start:
/// who keeps all cpus busy must not keep queries from being answered.
void HelperProcess::serve(int control, Rights rights) {
  become_real_time();
  while (auto request = receive(control, false)) {
    Task task{};
    Priority priority{};
    UniqueFd channel;
    Reader reader(*request);
    reader(task, priority, channel);
    if (!reader.is_complete()) break;
    allow_long_messages(channel.get());
    if (::fork() != 0) continue;
    ::close(control);
    if (task != Task::queries) {
      // Probes are attached again only when their links are closed. To free blocks of files has time.
      task == Task::links ? set_priority(priority) : lower(0);
      keep_capabilities({});
      task == Task::files ? close_files(channel.get()) : close_links(channel.get());
    }
    set_priority(priority);
    // What is needed to look into other users' processes.
    if (rights == Rights::needed) keep_capabilities({CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE});
    work(channel.get());
  }
  ::_exit(0);
}

Result<HelperProcess> HelperProcess::start(Rights rights) {
  auto channel = make_channel();
  if (!channel) return std::unexpected(std::move(channel.error()));
  own_proc();  // while there may be one, and no other thread
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(errno, "cannot start the helper process");
  if (pid == 0) {
    leave_tracer(channel->second.get());
    // Those of its workers, and what they have to set up.
    if (rights == Rights::needed)
      keep_capabilities({CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE, CAP_SYS_NICE, CAP_NET_ADMIN});
    serve(channel->second.get(), rights);
  }
  return HelperProcess(std::move(channel->first), pid);
}

HelperProcess::HelperProcess(UniqueFd control, pid_t pid)
    : control_(std::move(control)), pid_(pid), end_(end_of(pid)) {}

HelperProcess::~HelperProcess() {
  control_.reset();
  await_end(pid_);
}

Result<UniqueFd> HelperProcess::start_worker(Priority priority) const {
  return start(Task::queries, priority);
}

Result<UniqueFd> HelperProcess::start_closer() const {
  return start(Task::files, Priority::raised);
}

Result<UniqueFd> HelperProcess::start_link_closer() const {
  return start(Task::links, Priority::raised);
}

Result<UniqueFd> HelperProcess::start(Task task, Priority priority) const {
  auto channel = make_channel();
  if (!channel) return std::unexpected(std::move(channel.error()));
  Message request;
  Writer{request}(task, priority, channel->second);
  if (!send(control_.get(), request)) return errno_error(errno, "cannot start a worker of the helper process");
  return std::move(channel->first);
}

}  // namespace rtev::helper
