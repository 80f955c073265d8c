// SPDX-License-Identifier: MIT
#include "session/confinement.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/capabilities.hpp"
#include "base/escape.hpp"
#include "session/command/sudo_user.hpp"

namespace rtev {
namespace {

struct Capability {
  unsigned number;
  std::string_view name;
};

using Capabilities = std::vector<Capability>;

Capabilities reader_capabilities() {
  // Root's output may have to be made in directories of other users.
  if (!SudoUser::of_environment()) return {{CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"}};
  return {};
}

Capabilities tracer_capabilities() {
  Capabilities kept = reader_capabilities();
  kept.push_back({CAP_SYS_NICE, "CAP_SYS_NICE"});  // for threads that start later
  return kept;
}

Capabilities attacher_capabilities(bool uprobe_multi) {
  Capabilities kept{{CAP_BPF, "CAP_BPF"}, {CAP_PERFMON, "CAP_PERFMON"}};
  // Some kernels, Debian's among them, want it for perf_event_open(2).
  if (!uprobe_multi) kept.push_back({CAP_SYS_ADMIN, "CAP_SYS_ADMIN"});
  return kept;
}

std::string names_of(const Capabilities& capabilities) {
  std::string names;
  for (const Capability& capability : capabilities) names.append(names.empty() ? "" : ", ").append(capability.name);
  return names.empty() ? "no capability" : names;
}

std::string describe(const Capabilities& capabilities) {
  return fmt::format(
      "  rtev-bpf     runs as {}, with {};\n"
      "               it cannot run programs, open sockets or look into processes\n",
      escaped(name_of_user(calling_user())), names_of(capabilities));
}

/// What a process may do without any capability, and none of ours does.
constexpr std::array refused{
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(fork),
    SCMP_SYS(vfork),
    SCMP_SYS(ptrace),
    SCMP_SYS(kcmp),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(add_key),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(request_key),
    SCMP_SYS(keyctl),
};

enum class Sockets : std::uint8_t { none, any };

/// The commands of bpf(2) that a process needs. A tracer, once its programs are loaded: maps, and to run a program.
constexpr std::array<unsigned, 6> tracer_commands{
    BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM, BPF_MAP_GET_NEXT_KEY, BPF_MAP_LOOKUP_AND_DELETE_ELEM,
    BPF_PROG_RUN};
constexpr std::array<unsigned, 1> attacher_commands{BPF_LINK_CREATE};
constexpr unsigned last_bpf_command = 63;  ///< beyond those that exist

struct ReleaseFilter {
  void operator()(void* filter) const { ::seccomp_release(filter); }
};

using Commands = std::span<const unsigned>;

bool add_rules(scmp_filter_ctx filter, Commands commands, Sockets sockets, bool samples) {
  constexpr std::uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
  int failed = 0;
  for (const int call : refused) failed |= ::seccomp_rule_add(filter, refuse, call, 0);
  if (sockets == Sockets::none) failed |= ::seccomp_rule_add(filter, refuse, SCMP_SYS(socket), 0);
  // New threads, but no processes. The flags of clone3() are in memory; the C library uses clone() where it is missing.
  failed |= ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
  failed |= ::seccomp_rule_add(filter, refuse, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  for (unsigned command = 0; command <= last_bpf_command; ++command) {
    if (std::ranges::find(commands, command) != commands.end()) continue;
    // The kernel looks at 32 bits.
    failed |= ::seccomp_rule_add(filter, refuse, SCMP_SYS(bpf), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, command));
  }
  const bool attaches = std::ranges::find(commands, unsigned{BPF_LINK_CREATE}) != commands.end();
  if (!attaches && !samples) failed |= ::seccomp_rule_add(filter, refuse, SCMP_SYS(perf_event_open), 0);
  return failed == 0;
}

/// For this thread and those that it starts.
Result<void> filter_system_calls(Commands commands, Sockets sockets, bool samples) {
  const std::unique_ptr<void, ReleaseFilter> filter(::seccomp_init(SCMP_ACT_ALLOW));
  // For all threads of this process.
  const bool is_made = filter && ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1) == 0 &&
                       add_rules(filter.get(), commands, sockets, samples);
  if (!is_made) return errno_error(ENOMEM, "cannot make a filter of system calls");
  const int loaded = ::seccomp_load(filter.get());
  // Kernels without CONFIG_SECCOMP_FILTER have nothing to load it into.
  if (loaded != 0 && loaded != -EINVAL) return errno_error(-loaded, "cannot filter system calls");
  return {};
}

Result<void> confine(const Capabilities& capabilities, Commands commands, bool samples = false) {
  std::vector<unsigned> kept;
  for (const Capability& capability : capabilities) kept.push_back(capability.number);
  // Without this they are lost with root's user id.
  ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
  if (auto become = become_calling_user(); !become) return become;
  if (!keep_capabilities(kept)) return errno_error(errno, "cannot give up capabilities");
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return filter_system_calls(commands, Sockets::none, samples);
}

}  // namespace

Result<void> confine_tracer() {
  return confine(tracer_capabilities(), tracer_commands);
}

Result<void> confine_attacher(bool uprobe_multi) {
  return confine(attacher_capabilities(uprobe_multi), attacher_commands);
}

Result<void> confine_reader(ReaderMay may) {
  return confine(reader_capabilities(), {}, may == ReaderMay::sample);
}

Result<void> confine_network_process() {
  // The user and group "nobody" of all distributions. Without the right to become it, it has few rights anyway.
  constexpr uid_t nobody = 65534;
  if (has_capability(CAP_SETUID) && has_capability(CAP_SETGID) &&
      (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
       ::setresuid(nobody, nobody, nobody) != 0))
    return errno_error(errno, "cannot give up the rights of root");
  if (!keep_capabilities({})) return errno_error(errno, "cannot give up capabilities");
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return filter_system_calls({}, Sockets::any, false);
}

std::string describe_confinement(bool uprobe_multi) {
  return fmt::format(
      "While it traces:\n"
      "{}"
      "  rtev-helper  runs as {}, with CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE\n"
      "               (the process that starts its workers also holds CAP_SYS_NICE and CAP_NET_ADMIN;\n"
      "               those that attach BPF programs run as {}, with {})\n"
      "               (those that only close files and probes have no capability)\n"
      "  rtev-enabler (only with --enable) runs as {}, with what rtev-helper has and CAP_BPF, CAP_PERFMON,\n"
      "               CAP_SETUID, CAP_SETGID, CAP_DAC_OVERRIDE; its rtev-guardian with CAP_SYS_PTRACE\n"
      "  rtev-network (only of the agent) runs as nobody, with no capability; the process that starts it anew\n"
      "               holds CAP_SETUID and CAP_SETGID\n"
      "While it reads a recording or a ring (dump, convert, -i):\n"
      "{}",
      describe(tracer_capabilities()), escaped(name_of_user(::geteuid())), escaped(name_of_user(calling_user())),
      names_of(attacher_capabilities(uprobe_multi)), escaped(name_of_user(::geteuid())),
      describe(reader_capabilities()));
}

}  // namespace rtev
