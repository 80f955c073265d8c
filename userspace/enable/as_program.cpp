// SPDX-License-Identifier: MIT
#include "enable/as_program.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>

#include "base/capabilities.hpp"
#include "base/proc_files.hpp"
#include "helper/channel.hpp"
#include "helper/helper_process.hpp"

namespace rtev::enable {
namespace {

constexpr int child_timeout_ms = 1000;

std::atomic<int> unanswered = 0;

/// Children that did not answer, and have not ended since: each is a task of this service.
class LeftBehind {
 public:
  bool has_room_for(std::uint32_t user) {
    const std::lock_guard lock(mutex_);
    std::erase_if(children_, [](const Child& child) {
      pollfd ended{.fd = child.process.get(), .events = POLLIN, .revents = 0};
      return ::poll(&ended, 1, 0) == 1;
    });
    const std::ptrdiff_t own = std::ranges::count(children_, user, &Child::user);
    const auto all = static_cast<std::ptrdiff_t>(children_.size());
    // Many users may be one person's: the first one of another user has room beyond that.
    return own < most_of_user && all < (own == 0 ? 2 * most : most);
  }
  void add(std::uint32_t user, UniqueFd process) {
    const std::lock_guard lock(mutex_);
    children_.push_back({.user = user, .process = std::move(process)});
  }

 private:
  static constexpr std::ptrdiff_t most_of_user = 2, most = 32;  // the agent's unit has 128 tasks

  struct Child {
    std::uint32_t user;
    UniqueFd process;
  };
  std::mutex mutex_;
  std::vector<Child> children_;
};

LeftBehind& left_behind() {
  static LeftBehind all;
  return all;
}

bool is_own_user_namespace(std::uint64_t inode) {
  struct stat own{};
  const UniqueFd file = open_proc("/proc/self/ns/user", O_RDONLY);
  return file && ::fstat(file.get(), &own) == 0 && own.st_ino == inode;
}

}  // namespace

std::optional<helper::Message> run_in_child(std::uint32_t user, std::vector<int> kept,
                                            const std::function<helper::Message()>& work) {
  if (!left_behind().has_room_for(user)) return std::nullopt;
  auto channel = helper::make_channel();
  if (!channel) return std::nullopt;
  const pid_t child = ::fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    // It waits until its parent holds it, or has ended: with that end of the channel open here it would wait for ever.
    channel->first.reset();
    if (!helper::receive(channel->second.get(), false)) ::_exit(1);
    // Whoever waits for the end of these must not wait for a child that hangs.
    const int answer = ::dup2(channel->second.get(), STDIN_FILENO);
    kept.push_back(own_proc());
    helper::close_but(kept);
    helper::send(answer, work());
    ::_exit(0);
  }
  channel->second.reset();
  UniqueFd held(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  helper::Message begin;
  bool is_held{held};
  helper::Writer{begin}(is_held);
  helper::send(channel->first.get(), begin);
  pollfd answered{.fd = channel->first.get(), .events = POLLIN, .revents = 0};
  std::optional<helper::Message> answer;
  if (::poll(&answered, 1, child_timeout_ms) == 1) answer = helper::receive(channel->first.get(), true);
  ::syscall(SYS_pidfd_send_signal, held.get(), SIGKILL, nullptr, 0);
  ::waitpid(child, nullptr, WNOHANG);  // SIGCHLD is ignored: the kernel forgets it
  if (answer) return answer;
  ++unanswered;
  if (held) left_behind().add(user, std::move(held));
  return std::nullopt;
}

int unanswered_children() {
  return unanswered;
}

bool become(const Credentials& credentials) {
  const bool overrides =
      (credentials.capabilities >> CAP_DAC_OVERRIDE & 1) != 0 && is_own_user_namespace(credentials.user_namespace);
  // Only the ids that count for files: with the others the user could stop or end this process.
  constexpr auto present = static_cast<uid_t>(-1);
  if (::setgroups(credentials.groups.size(), credentials.groups.data()) != 0) return false;
  ::setfsgid(credentials.group);
  ::setfsuid(credentials.user);
  if (static_cast<gid_t>(::setfsgid(present)) != credentials.group ||
      static_cast<uid_t>(::setfsuid(present)) != credentials.user || ::prctl(PR_SET_DUMPABLE, 0) != 0)
    return false;
  return overrides ? keep_capabilities({CAP_DAC_OVERRIDE}) : keep_capabilities({});
}

}  // namespace rtev::enable
