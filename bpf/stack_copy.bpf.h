/* SPDX-License-Identifier: MIT */
/* How a stack record is made: memory in which it grows, the user's registers, and copies of ranges of user memory. Part
 * of stacks.bpf.c. */
#ifndef RTEV_STACK_COPY_BPF_H
#define RTEV_STACK_COPY_BPF_H

#include "domain.bpf.h"
#include "stack_records.h"

/* Read at a time, aligned: in one page of the smallest size, all bytes can be read or none. */
#define COPY_BYTES 4096
#define MAX_RANGES 64
#define MAX_COPY_STEPS (2 * MAX_RANGES + RTEV_MAX_STACK_BYTES / COPY_BYTES)
#define MAX_PAYLOAD \
  (8 * RTEV_MAX_KERNEL_FRAMES + RTEV_MAX_STACK_BYTES + MAX_COPY_STEPS * (__u32)sizeof(struct rtev_stack_copy))
#define MAX_PROBED_BYTES 128 /* of a copy of an instruction, with what follows it */
#define SCANNED_WORDS 256
#define STATE_WORDS 32 /* of caml_state's block: those that are of interest are among the first */

struct stack_range {
  __u64 from, to;
  __u64 value; /* not 0: a word, instead of what is there */
};

/* As in OCaml's runtime. */
struct c_stack_link {
  __u64 stack, sp, previous;
};
struct stack_info {
  __u64 sp, exception, handler;
};

/* What a record is made in: too big for a program's stack. Numbers that loops change are here, too: the verifier knows
 * nothing of them, and need not follow each turn. */
struct stack_scratch {
  __u32 busy;
  __u32 ranges;     /* to be copied */
  __u32 range;      /* being copied */
  __u32 is_copying; /* what is read next continues the last copy */
  __u32 lowest;     /* a search is for the lowest word, not the first one */
  __u32 pad;
  __u64 copy;        /* where the last copy begins in the payload */
  __u64 used;        /* bytes of payload */
  __u64 left;        /* bytes of user memory that may still be added */
  __u64 words_begin; /* address of `words` */
  __u64 found;       /* what a search found */
  __u64 root;        /* the outermost c_stack_link so far */
  __u64 roots;       /* local roots of the runtime that were not looked at; 0 = none */
  __u64 parent;      /* of the last fiber */
  struct stack_info info;
  struct c_stack_link link;
  __u64 state[STATE_WORDS];
  struct stack_range range_list[MAX_RANGES];
  __u64 words[SCANNED_WORDS];
  struct rtev_stack record; /* the payload must follow */
  char payload[MAX_PAYLOAD + COPY_BYTES + sizeof(struct rtev_stack_copy)];
};

/* Not per-cpu: such a value may have 32 KiB only. For each cpu one for interrupts and switches, which do not interrupt
 * each other, and two for uprobes, if there are any. User space sets the size. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct stack_scratch);
} stack_scratches SEC(".maps");

const volatile __u32 scratches_of_cpu = 3;

/* NULL if it is in use: a uprobe's program can be preempted by another one. */
static __always_inline struct stack_scratch* take_scratch(__u32 number) {
  __u32 index = bpf_get_smp_processor_id() * scratches_of_cpu + number;
  struct stack_scratch* scratch = bpf_map_lookup_elem(&stack_scratches, &index);
  return scratch && !__sync_lock_test_and_set(&scratch->busy, 1) ? scratch : NULL;
}

static __always_inline void give_back(struct stack_scratch* scratch) {
  __sync_lock_test_and_set(&scratch->busy, 0);
}

/* The kernel executes a copy of an instruction that is probed, at another address. */
static __always_inline __u64 probed_address(struct task_struct* task, __u64 address) {
  struct uprobe_task* stepping = task->utask;
  if (!stepping || !stepping->active_uprobe) return address;
  __u64 distance = address - stepping->xol_vaddr;
  return distance < MAX_PROBED_BYTES ? stepping->vaddr + distance : address;
}

/* As the thread entered the kernel with, or was interrupted. */
static __always_inline void read_registers(__u64* registers, struct task_struct* task) {
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
  copy_registers(registers, regs);
  registers[REGISTER_IP] = probed_address(task, registers[REGISTER_IP]);
}

/* Adds what fits of [from, to), or a word that is not there. */
static __noinline void add_range_or_value(struct stack_scratch* scratch, __u64 from, __u64 to, __u64 value) {
  __u64 index = scratch->ranges;
  barrier_var(index);
  from &= ~7ull;
  to = (to + 7) & ~7ull;
  if (from >= to) return;
  if (to - from > scratch->left) {
    scratch->record.flags |= RTEV_STACK_CUT;
    to = from + (scratch->left & ~7ull);
  }
  if (index >= MAX_RANGES) {
    scratch->record.flags |= RTEV_STACK_CUT;
    return;
  }
  scratch->left -= to - from;
  scratch->range_list[index].from = from;
  scratch->range_list[index].to = to;
  scratch->range_list[index].value = value;
  scratch->ranges = index + 1;
}

static __always_inline void add_range(struct stack_scratch* scratch, __u64 from, __u64 to) {
  add_range_or_value(scratch, from, to, 0);
}

/* Adds the newest and the oldest part of [from, to), together `most` bytes. */
static __noinline void add_ends(struct stack_scratch* scratch, __u64 from, __u64 to, __u64 most, __u64 oldest) {
  if (from >= to) return;
  if (to - from <= most || most < oldest) {
    add_range(scratch, from, to);
    return;
  }
  scratch->record.flags |= RTEV_STACK_CUT;
  add_range(scratch, to - oldest, to);
  add_range(scratch, from, from + most - oldest);
}

struct copying {
  struct stack_scratch* scratch;
};

/* A copy of one word. Not part of copy_step: the verifier of Linux 6.1 loses the limits of variables there. */
static __noinline void put_value(struct stack_scratch* scratch, __u64 address, __u64 value) {
  __u64 header = scratch->used;
  barrier_var(header);
  if (header > MAX_PAYLOAD) return;
  struct rtev_stack_copy* copy = (struct rtev_stack_copy*)(scratch->payload + header);
  copy->address = address;
  copy->bytes = sizeof(value);
  copy->pad = 0;
  *(__u64*)(copy + 1) = value;
  ++scratch->record.copies;
  scratch->used = header + sizeof(*copy) + sizeof(value);
}

/* Numbers that the verifier has to know the limits of are checked right before they are used: that of Linux 6.1 forgets
 * limits of what is kept on the stack meanwhile. */
static long copy_step(__u32 step, struct copying* copying) {
  struct stack_scratch* scratch = copying->scratch;
  __u64 index = scratch->range;
  barrier_var(index);
  if (index >= scratch->ranges || index >= MAX_RANGES) return 1;
  struct stack_range* range = &scratch->range_list[index];
  if (range->value) {
    put_value(scratch, range->from, range->value);
    scratch->range = index + 1;
    return 0;
  }
  __u64 from = range->from, to = range->to, end = (from & ~(COPY_BYTES - 1ull)) + COPY_BYTES;
  if (end > to) end = to;
  bool is_last = end >= to;
  range->from = end;
  if (is_last) scratch->range = index + 1;
  if (!scratch->is_copying) {
    scratch->copy = scratch->used;
    scratch->used += sizeof(struct rtev_stack_copy);
  }
  __u64 bytes = end - from, place = scratch->used;
  barrier_var(bytes);
  barrier_var(place);
  if (bytes > COPY_BYTES || place > MAX_PAYLOAD) return 1;
  if (bpf_probe_read_user(scratch->payload + place, bytes, (void*)from)) {
    scratch->record.flags |= RTEV_STACK_UNREADABLE;
    if (!scratch->is_copying) scratch->used = scratch->copy;
    scratch->is_copying = 0;
    return 0;
  }
  __u64 header = scratch->copy;
  barrier_var(header);
  if (header > MAX_PAYLOAD) return 1;
  struct rtev_stack_copy* copy = (struct rtev_stack_copy*)(scratch->payload + header);
  if (!scratch->is_copying) {
    copy->address = from;
    copy->bytes = copy->pad = 0;
    ++scratch->record.copies;
  }
  copy->bytes += end - from;
  scratch->used += end - from;
  scratch->is_copying = !is_last;
  return 0;
}

/* Copies the ranges behind what the payload holds. */
static __always_inline void copy_ranges(struct stack_scratch* scratch) {
  struct copying copying = {.scratch = scratch};
  bpf_loop(MAX_COPY_STEPS, copy_step, &copying, 0);
}

#endif
