/* SPDX-License-Identifier: MIT */
/* What differs by processor architecture: the registers of a system call and of a thread, and its variables. */
#ifndef RTEV_ARCH_BPF_H
#define RTEV_ARCH_BPF_H

#include "maps.bpf.h"

/* User registers of a task that is in the kernel. */
#if defined(__TARGET_ARCH_x86)
#define SYS_MMAP 9
#define SYS_MUNMAP 11
#define SYS_EXECVE 59
#define SYS_EXECVEAT 322
#define SYSCALL_NUMBER(regs) ((__s64)BPF_CORE_READ(regs, orig_ax))
#define MMAP_LENGTH(regs) ((__u64)BPF_CORE_READ(regs, si))
#define MMAP_PROTECTION(regs) ((__u64)BPF_CORE_READ(regs, dx))
#define MMAP_FLAGS(regs) ((__u64)BPF_CORE_READ(regs, r10))
#define MMAP_FD(regs) ((__u32)BPF_CORE_READ(regs, r8))
#define MUNMAP_ADDRESS(regs) ((__u64)BPF_CORE_READ(regs, di))
#define MUNMAP_LENGTH(regs) ((__u64)BPF_CORE_READ(regs, si))
#define THREAD_POINTER(task) ((__u64)(task)->thread.fsbase)
#define TLS_TABLE 8 /* the pointer to it, from the thread pointer */
/* Of a uprobe's context. */
#define PROBED_ADDRESS(context) ((__u64)(context)->ip)
#define FIRST_ARGUMENT(context) ((__u64)(context)->di)
#define SECOND_ARGUMENT(context) ((__u64)(context)->si)
#define ZERO_FLAG(context) (((context)->flags & 0x40) != 0)
#elif defined(__TARGET_ARCH_arm64)
#define SYS_MMAP 222
#define SYS_MUNMAP 215
#define SYS_EXECVE 221
#define SYS_EXECVEAT 281
#define SYSCALL_NUMBER(regs) ((__s64)BPF_CORE_READ(regs, syscallno))
#define MMAP_LENGTH(regs) (BPF_CORE_READ(regs, regs[1]))
#define MMAP_PROTECTION(regs) (BPF_CORE_READ(regs, regs[2]))
#define MMAP_FLAGS(regs) (BPF_CORE_READ(regs, regs[3]))
#define MMAP_FD(regs) ((__u32)BPF_CORE_READ(regs, regs[4]))
#define MUNMAP_ADDRESS(regs) (BPF_CORE_READ(regs, regs[0]))
#define MUNMAP_LENGTH(regs) (BPF_CORE_READ(regs, regs[1]))
/* The register tpidr_el0 as it was when the thread last left its cpu: it is saved behind the tracepoint of the switch.
 * It changes once in a thread's life, and is known from the start but in a program's first thread: that one's domain is
 * not known until its second switch. */
#define THREAD_POINTER(task) ((__u64)(task)->thread.uw.tp_value)
#define TLS_TABLE 0
#define PROBED_ADDRESS(context) ((context)->pc)
#define FIRST_ARGUMENT(context) ((context)->regs[0])
#define SECOND_ARGUMENT(context) ((context)->regs[1])
#define ZERO_FLAG(context) false /* never asked for: functions are probed at their first instruction */
#else
#error "unknown architecture"
#endif

#define STACK_POINTER(regs) ((__u64)BPF_CORE_READ(regs, sp))

#endif
