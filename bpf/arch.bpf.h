/* SPDX-License-Identifier: MIT */
/* What differs by processor architecture and libbpf's PT_REGS_* macros do not cover: numbers of system calls, the
 * thread pointer, flags. */
#ifndef RTEV_ARCH_BPF_H
#define RTEV_ARCH_BPF_H

#include "maps.bpf.h"

/* `regs`: user registers of a task that is in a system call. `context`: of a uprobe. */
#if defined(__TARGET_ARCH_x86)
#define SYS_MMAP 9
#define SYS_MUNMAP 11
#define SYS_EXECVE 59
#define SYS_EXECVEAT 322
#define SYSCALL_NUMBER(regs) ((__s64)BPF_CORE_READ(regs, orig_ax))
#define THREAD_POINTER(task) ((__u64)(task)->thread.fsbase)
#define DTV_OFFSET 8 /* of the pointer to the thread's dynamic thread vector, from the thread pointer */
#define ZERO_FLAG(context) (((context)->flags & 0x40) != 0)
#elif defined(__TARGET_ARCH_arm64)
#define SYS_MMAP 222
#define SYS_MUNMAP 215
#define SYS_EXECVE 221
#define SYS_EXECVEAT 281
#define SYSCALL_NUMBER(regs) ((__s64)BPF_CORE_READ(regs, syscallno))
/* The register tpidr_el0 as it was when the thread last left its cpu: the kernel saves it after the sched_switch
 * tracepoint. It changes once in the life of a thread, and is known from the start except in a program's first thread,
 * whose domain is therefore unknown until its second switch. */
#define THREAD_POINTER(task) ((__u64)(task)->thread.uw.tp_value)
#define DTV_OFFSET 0
#define ZERO_FLAG(context) false /* not used: on arm64 functions are probed at their first instruction */
#else
#error "unknown architecture"
#endif

/* The first argument of a system call. Not PT_REGS_PARM1_CORE_SYSCALL: on arm64 that reads orig_x0, which keeps the
 * original argument where a debugger has changed it, while the kernel uses x0. */
#define FIRST_SYSCALL_ARGUMENT(regs) ((__u64)PT_REGS_PARM1_CORE(regs))

#endif
