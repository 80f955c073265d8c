// SPDX-License-Identifier: MIT
#include "kernel/syscall.hpp"

#include <sys/syscall.h>

#include "bpf/records.h"

namespace rtev::kernel {

Syscall syscall_of(std::int32_t number) {
  switch (number) {
    case RTEV_SYSCALL_UNKNOWN:
      return Syscall::unknown;
    case RTEV_SYSCALL_NONE:
      return Syscall::none;
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6:
      return Syscall::select;
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll:
      return Syscall::poll;
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
    case SYS_epoll_pwait:
      return Syscall::epoll_wait;
    case SYS_io_uring_enter:
      return Syscall::io_uring_enter;
#ifdef SYS_futex_waitv
    case SYS_futex_waitv:
#endif
#ifdef SYS_futex_wait
    case SYS_futex_wait:
#endif
    case SYS_futex:
      return Syscall::futex;
#ifdef SYS_pause
    case SYS_pause:
#endif
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return Syscall::sleep;
    case SYS_wait4:
    case SYS_waitid:
    case SYS_rt_sigtimedwait:
    case SYS_rt_sigsuspend:
      return Syscall::wait;
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_preadv2:
      return Syscall::read;
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
      return Syscall::write;
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync:
    case SYS_syncfs:
    case SYS_sync_file_range:
    case SYS_msync:
      return Syscall::fsync;
#ifdef SYS_open
    case SYS_open:
#endif
#ifdef SYS_creat
    case SYS_creat:
#endif
    case SYS_openat:
    case SYS_openat2:
      return Syscall::open;
    case SYS_accept:
    case SYS_accept4:
      return Syscall::accept;
    case SYS_connect:
      return Syscall::connect;
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
      return Syscall::recv;
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
      return Syscall::send;
    case SYS_flock:
    case SYS_fcntl:
      return Syscall::lock;
#ifdef SYS_stat
    case SYS_stat:
#endif
#ifdef SYS_lstat
    case SYS_lstat:
#endif
#ifdef SYS_access
    case SYS_access:
#endif
#ifdef SYS_getdents
    case SYS_getdents:
#endif
#ifdef SYS_readlink
    case SYS_readlink:
#endif
#ifdef SYS_rename
    case SYS_rename:
#endif
#ifdef SYS_renameat
    case SYS_renameat:
#endif
#ifdef SYS_unlink
    case SYS_unlink:
#endif
#ifdef SYS_mkdir
    case SYS_mkdir:
#endif
#ifdef SYS_rmdir
    case SYS_rmdir:
#endif
#ifdef SYS_link
    case SYS_link:
#endif
#ifdef SYS_symlink
    case SYS_symlink:
#endif
    case SYS_fstat:
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_faccessat:
    case SYS_faccessat2:
    case SYS_getdents64:
    case SYS_readlinkat:
    case SYS_renameat2:
    case SYS_unlinkat:
    case SYS_mkdirat:
    case SYS_linkat:
    case SYS_symlinkat:
    case SYS_truncate:
    case SYS_ftruncate:
      return Syscall::files;
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_madvise:
    case SYS_mremap:
    case SYS_brk:
      return Syscall::memory;
    case SYS_sendfile:
    case SYS_splice:
    case SYS_tee:
    case SYS_copy_file_range:
    case SYS_fallocate:
      return Syscall::transfer;
    case SYS_ioctl:
      return Syscall::ioctl;
    default:
      return Syscall::other;
  }
}

}  // namespace rtev::kernel
