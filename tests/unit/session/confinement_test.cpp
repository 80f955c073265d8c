// SPDX-License-Identifier: MIT
#include "session/confinement.hpp"

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <thread>

namespace rtev::test {
namespace {

bool is_refused(long result) {
  return result == -1 && errno == EPERM;
}

long bpf(unsigned long command) {
  bpf_attr attributes{};
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

/// What is wrong with a process that confined itself; 0 if nothing. `allowed`: a command of bpf(2).
int wrong_after(const Result<void>& confined, std::optional<unsigned long> allowed = {}) {
  if (!confined) return 1;
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || ::prctl(PR_GET_DUMPABLE) != 0) return 2;
  char* const arguments[] = {nullptr};
  if (!is_refused(::execve("/bin/true", arguments, arguments))) return 3;
  if (!is_refused(::fork())) return 4;
#ifdef SYS_fork  // machines that came later have clone(2) only
  if (!is_refused(::syscall(SYS_fork))) return 4;
#endif
  if (!is_refused(::socket(AF_INET, SOCK_STREAM, 0))) return 5;
  // The kernel ignores the upper half of the command's number.
  for (const unsigned long upper : {0ul, 1ul << 32})
    if (!is_refused(bpf(upper | BPF_PROG_LOAD)) || !is_refused(bpf(upper | BPF_MAP_CREATE))) return 6;
  for (const unsigned long command : {BPF_MAP_LOOKUP_ELEM, BPF_LINK_CREATE})
    if (is_refused(bpf(command)) != (command != allowed)) return 7;
  bool ran = false;
  std::thread([&] { ran = is_refused(::socket(AF_INET, SOCK_STREAM, 0)); }).join();
  return ran ? 0 : 8;
}

class ConfinementDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "the rights to give up are those of root";
  }
};

TEST_F(ConfinementDeathTest, RefusesWhatATracerNeverDoes) {
  EXPECT_EXIT(::_exit(wrong_after(confine_tracer(), BPF_MAP_LOOKUP_ELEM)), testing::ExitedWithCode(0), "");
}

TEST_F(ConfinementDeathTest, LetsAnAttacherOnlyAttach) {
  EXPECT_EXIT(::_exit(wrong_after(confine_attacher(true), BPF_LINK_CREATE)), testing::ExitedWithCode(0), "");
}

TEST_F(ConfinementDeathTest, RefusesTheSameToAReader) {
  EXPECT_EXIT(::_exit(wrong_after(confine_reader())), testing::ExitedWithCode(0), "");
}

TEST_F(ConfinementDeathTest, BecomesTheCallerOfSudo) {
  const auto user = [] {
    ::setenv("SUDO_UID", "65534", 1);
    ::setenv("SUDO_GID", "65534", 1);
    if (const int wrong = wrong_after(confine_tracer(), BPF_MAP_LOOKUP_ELEM)) return wrong;
    return ::getuid() == 65534 && ::setuid(0) != 0 ? 0 : 9;
  };
  EXPECT_EXIT(::_exit(user()), testing::ExitedWithCode(0), "");
}

TEST(Confinement, IsDescribed) {
  EXPECT_NE(describe_confinement(true).find("CAP_BPF, CAP_PERFMON)"), std::string::npos);
  EXPECT_EQ(describe_confinement(true).find("CAP_SYS_ADMIN"), std::string::npos);
  EXPECT_NE(describe_confinement(false).find("CAP_SYS_ADMIN"), std::string::npos);
  EXPECT_NE(describe_confinement(true).find("dump, convert"), std::string::npos);
}

}  // namespace
}  // namespace rtev::test
