/* SPDX-License-Identifier: MIT */
/* What stacks.bpf.c and user space exchange: stacks that were captured, and the processes they are taken of. */
#ifndef RTEV_STACK_RECORDS_H
#define RTEV_STACK_RECORDS_H

#include "records.h"

#define RTEV_MAX_STACK_TARGETS 16384 /* processes whose stacks are taken at the same time */
#define RTEV_TARGET_FILTER 65536     /* a power of two */
#define RTEV_MAX_STACK_BYTES 32768   /* copied of the stacks of one thread, at the most */
#define RTEV_MIN_STACK_BYTES 8192    /* least limit of these */
#define RTEV_MAX_KERNEL_FRAMES 32
#define RTEV_STACK_REGISTERS 33
#define RTEV_STACK_WINDOW_NS 10000000 /* over which stacks of a process are counted for its limit */

enum rtev_stack_kind {
  RTEV_STACK_ON_CPU = 1,     /* a thread was on a cpu when it was sampled; weight = ns between samples of a cpu */
  RTEV_STACK_OFF_CPU = 2,    /* a thread leaves its cpu to sleep, for how long is not known yet; weight = 0 */
  RTEV_STACK_WOKEN = 3,      /* no stack: a thread is back that slept for long; weight = ns until it was on a cpu */
  RTEV_STACK_ALLOCATION = 4, /* part of a minor heap is used up; weight = words of that part, 0 = unknown */
};
#define RTEV_STACK_KINDS 5

/* Flags of a stack record. */
enum rtev_stack_flag {
  RTEV_STACK_HOLDS_LOCK = 1, /* the thread holds its domain's lock */
  RTEV_STACK_OCAML = 2,      /* the stack of OCaml code was found, and is among the copies */
  RTEV_STACK_CUT = 4,        /* not all was copied: what lies between the newest and the oldest part is missing */
  RTEV_STACK_UNREADABLE = 8, /* some memory could not be read */
  RTEV_STACK_IN_KERNEL = 16, /* the thread was in the kernel: the registers are those that it will return with */
  RTEV_STACK_OLD_START = 32, /* where the OCaml part begins was not certain: there may be old words before it */
  RTEV_STACK_NO_LAYOUT = 64, /* the runtime's layout is not known (bytecode, no symbols): only the C stack */
};

/* A stack. Followed by `bytes` of payload: addresses of the kernel's code, innermost first, then copies of memory. */
struct rtev_stack {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u64 weight;
  __u64 left_ns;       /* WOKEN: time_ns of the OFF_CPU record of this sleep, 0 = there is none. OFF_CPU: time_ns */
  __u64 caml_state;    /* addresses of the domain's state, its current stack_info, and c_stack_link; 0 = unknown. */
  __u64 current_stack; /* Those of the runtime; or, without the lock, those that the thread left behind */
  __u64 c_stack;
  __u32 tgid;
  __u32 tid;
  __s32 domain; /* -1: unknown */
  __u32 cpu;
  __u8 kind; /* enum rtev_stack_kind */
  __u8 role; /* enum rtev_role */
  __u8 flags;
  __u8 kernel_frames; /* u64 words of payload */
  __u16 copies;       /* each a struct rtev_stack_copy and its bytes */
  __u16 syscall;      /* OFF_CPU: number of the system call in which it sleeps; RTEV_NO_SYSCALL: none, or unknown */
  __u32 bytes;        /* of payload */
  __u32 pad;
  /* Of user space, numbered as DWARF does. x86-64: 0 to 15, 7 = rsp, 16 = rip. arm64: x0 to x30, 31 = sp, 32 = pc. */
  __u64 registers[RTEV_STACK_REGISTERS];
};
#define RTEV_NO_SYSCALL 0xffff

/* Memory of the process; the bytes follow. Address and bytes are multiples of 8. Copies are in no order, and none
 * overlaps another but by accident. One word may differ: while C code calls OCaml back, the runtime keeps the parent of
 * the fiber elsewhere; the copy of its handler has the parent. */
struct rtev_stack_copy {
  __u64 address;
  __u32 bytes;
  __u32 pad;
};

/* Stacks that were taken of a process in a window of time. */
struct rtev_stack_budget {
  __u64 window_ns; /* begin of the window */
  __u64 skipped;   /* weight of allocations whose stacks were dropped: added to that of the next one */
  __u32 spent[2];  /* off-cpu, allocations */
};

/* What BPF needs to know of a process whose stacks are taken; the value of the map "stack_targets", by tgid. */
struct rtev_stack_target {
  struct rtev_tracked process; /* slot, ring and flags are not used */
  __u64 system_begin;          /* code of caml_system (the runtime's assembly), absolute: [begin, end); 0 = unknown */
  __u64 system_end;
  __u64 raise_begin; /* likewise caml_raise_exn to caml_raise_exception */
  __u64 raise_end;
  /* Words of caml_state's block, by their number in it. current_stack 0: the layout is not known. */
  __u8 young_ptr;
  __u8 young_start;
  __u8 young_end;
  __u8 young_trigger; /* 5.0 has none: young_start */
  __u8 current_stack;
  __u8 c_stack;
  __u8 domain_state; /* word of what domain_self points to: the address of caml_state's block. 0 = unknown */
  __u8 local_roots;  /* 0 = unknown */
  __u32 searches;    /* for caml_state in vain; for BPF only, like what follows: user space writes zeros */
  __u32 pad;
  struct rtev_stack_budget budget;
};

/* A thread of a target that sleeps. */
struct rtev_sleep {
  __u64 left_ns;  /* 0: it is awake */
  __u64 stack_ns; /* time of the record with its stack; 0 if that was dropped */
  __s32 domain;
  __u8 role;
  __u8 flags;
  __u8 loss; /* enum rtev_stack_loss, if it was dropped */
  __u8 pad;
};

/* Why a stack was dropped. */
enum rtev_stack_loss {
  RTEV_STACK_FULL = 0,    /* no room in the buffer */
  RTEV_STACK_LIMITED = 1, /* the process, or all, exceeded the limit */
  RTEV_STACK_BUSY = 2,    /* another program of the cpu used the memory in which records are made */
  RTEV_STACK_LOSSES = 3,
};

/* Stacks of one kind that were dropped for one reason. */
struct rtev_stack_drops {
  __u64 count;    /* since the start */
  __u64 taken;    /* written by user space: the count when it last read it */
  __u64 first_ns; /* CLOCK_MONOTONIC: of the first and the last drop since then */
  __u64 last_ns;
};

#endif
