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

#include <atomic>
#include <utility>

#include "base/capabilities.hpp"
#include "base/proc_files.hpp"
#include "helper/channel.hpp"
#include "helper/helper_process.hpp"

namespace rtev::enable {
namespace {

constexpr int child_timeout_ms = 1000;

std::atomic<int> unanswered = 0;

bool is_own_user_namespace(std::uint64_t inode) {
  struct stat own{};
  const UniqueFd file = open_proc("/proc/self/ns/user", O_RDONLY);
  return file && ::fstat(file.get(), &own) == 0 && own.st_ino == inode;
}

}  // namespace

ChildPlaces& child_places() {
  static ChildPlaces places;
  return places;
}

std::expected<helper::Message, NoAnswer> run_in_child(std::uint32_t user, std::vector<int> kept,
                                                      const std::function<helper::Message()>& work) {
  auto place = child_places().take(user);
  if (!place) return std::unexpected(NoAnswer::no_place);
  auto channel = helper::make_channel();
  if (!channel) return std::unexpected(NoAnswer::failed);
  const pid_t child = ::fork();
  if (child < 0) return std::unexpected(NoAnswer::failed);
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
  const UniqueFd held(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  // Without its parent's end of the channel it ends.
  if (!held || !place->give(child)) return std::unexpected(NoAnswer::failed);
  helper::Message begin;
  bool is_held = true;
  helper::Writer{begin}(is_held);
  helper::send(channel->first.get(), begin);
  pollfd answered{.fd = channel->first.get(), .events = POLLIN, .revents = 0};
  const bool is_late = ::poll(&answered, 1, child_timeout_ms) != 1;
  auto answer = is_late ? std::nullopt : helper::receive(channel->first.get(), true);
  ::syscall(SYS_pidfd_send_signal, held.get(), SIGKILL, nullptr, 0);
  ::waitpid(child, nullptr, WNOHANG);  // SIGCHLD is ignored: the kernel forgets it
  if (answer) return std::move(*answer);
  if (!is_late) return std::unexpected(NoAnswer::failed);
  ++unanswered;
  place->leave();
  return std::unexpected(NoAnswer::late);
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
