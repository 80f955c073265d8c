// SPDX-License-Identifier: MIT
// A system call that the kernel answers otherwise, for tests of processes that cannot do something, or die there.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace rtev::test {

/// What the kernel does from now on when this process, or one that it forks, makes this system call. The result is of
/// seccomp(2).
inline int answer_call(std::uint32_t call, std::uint32_t action, unsigned flags = 0) {
  std::array program{sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                     sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call}, sock_filter{BPF_RET | BPF_K, 0, 0, action},
                     sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter));
}

/// From now on threads that make this system call wait for ever. False if that cannot be had.
inline bool hold_call(std::uint32_t call) {
  return answer_call(call, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER) >= 0;
}

}  // namespace rtev::test
