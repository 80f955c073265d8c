/* SPDX-License-Identifier: MIT */
/* What differs by processor and libbpf's PT_REGS_* macros do not cover: numbers of system calls, the thread pointer,
 * flags, registers. What user space has to know of one is in userspace/base/processor.hpp. */
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
#define REGISTER_SP 7 /* registers have DWARF's numbers */
#define REGISTER_IP 16
/* Where compiled code keeps its stack pointer while it runs C on the other stack: in calls that do not allocate, in 5.0
 * and later; and while an exception is raised. */
#define NOALLOC_REGISTER 3     /* rbx */
#define NOALLOC_REGISTER_5_0 6 /* rbp */
#define RAISE_REGISTER 13
#define RAISE_REGISTER_5_1 10 /* only up to where caml_stash_backtrace uses it */
/* Of the variables of a thread, those next to its pointer. */
#define TLS_BEGIN(pointer, bytes) ((pointer) - (bytes))
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
#define REGISTER_SP 31
#define REGISTER_IP 32
#define NOALLOC_REGISTER 29
#define NOALLOC_REGISTER_5_0 19
#define RAISE_REGISTER 20
#define RAISE_REGISTER_5_1 20
#define TLS_BEGIN(pointer, bytes) (pointer)
#else
#error "rtev-bpf does not support this processor: see bpf/arch.bpf.h"
#endif

/* Registers of user space, as struct rtev_stack has them. */
static __always_inline void copy_registers(__u64* registers, const struct pt_regs* regs) {
#if defined(__TARGET_ARCH_x86)
  registers[0] = regs->ax;
  registers[1] = regs->dx;
  registers[2] = regs->cx;
  registers[3] = regs->bx;
  registers[4] = regs->si;
  registers[5] = regs->di;
  registers[6] = regs->bp;
  registers[7] = regs->sp;
  registers[8] = regs->r8;
  registers[9] = regs->r9;
  registers[10] = regs->r10;
  registers[11] = regs->r11;
  registers[12] = regs->r12;
  registers[13] = regs->r13;
  registers[14] = regs->r14;
  registers[15] = regs->r15;
  registers[16] = regs->ip;
#else
  bpf_probe_read_kernel(registers, (REGISTER_IP + 1) * 8, regs); /* struct user_pt_regs comes first */
#endif
}

/* The first argument of a system call. Not PT_REGS_PARM1_CORE_SYSCALL: on arm64 that reads orig_x0, which keeps the
 * original argument where a debugger has changed it, while the kernel uses x0. */
#define FIRST_SYSCALL_ARGUMENT(regs) ((__u64)PT_REGS_PARM1_CORE(regs))

#endif
