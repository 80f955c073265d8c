/* SPDX-License-Identifier: MIT */
/* Where the stacks of a thread are: that of C, and those of OCaml's fibers. Exactly where a stack begins is for user
 * space to find out: here it is enough not to leave anything out. Part of stacks.bpf.c. */
#ifndef RTEV_STACK_LAYOUT_BPF_H
#define RTEV_STACK_LAYOUT_BPF_H

#include "stack_copy.bpf.h"

#define MAX_STACK_SPAN (1ull << 30) /* bytes of any stack: OCaml's limit is 1 GiB */
#define MAX_FIBERS 24
#define MAX_CALLBACKS 16  /* of OCaml from C, one in another */
#define OLDEST_BYTES 2048 /* of an OCaml stack that is cut */
#define RESERVED_FOR_PARENTS 4096
#define ROOT_BYTES 1024         /* of the C stack above the outermost callback: what called it, up to the start */
#define NEWEST_C_BYTES 3072     /* of a C stack that is cut: most often one frame has a big buffer */
#define LINK_BYTES 1024         /* of the C stack below a link: the frame that OCaml called is there */
#define HANDLER_BYTES 32        /* struct stack_handler */
#define PARENT_OFFSET 24        /* in it */
#define CONTINUATION_TAG 245    /* of a block in OCaml's heap */
#define MAX_ROOTS 64            /* of C code that are looked at for one parent */
#define MAX_STATE_SEARCHES 1000 /* of a process without symbols */
#define MIN_TLS_BYTES 128       /* of the variables of a thread, as far as they can be read */
#define UNIX_BUFFER_BYTES 65536 /* that the functions of the Unix library have on the C stack while they block */

static __always_inline __u64 read_word(__u64 address) {
  __u64 word = 0;
  bpf_probe_read_user(&word, sizeof(word), (void*)address);
  return word;
}

static __always_inline bool lies_in(__u64 word, __u64 begin, __u64 end) {
  return word >= begin && word < end;
}

/* Above it there is nothing of the thread's C stack. A thread's control block is above its stack, but for the first
 * thread of a process. All ones if unknown. */
static __always_inline __u64 end_of_c_stack(struct task_struct* task, __u64 sp) {
  __u64 end = ~0ull, first = BPF_CORE_READ(task, mm, start_stack) + 64, pointer = THREAD_POINTER(task);
  if (first > sp) end = first;
  if (pointer > sp && pointer < end) end = pointer;
  return end;
}

/* A thread without its domain's lock has no caml_state. Until another thread of the domain took the lock, its state is
 * as it left it. */
static __always_inline __u64 state_left_behind(const struct rtev_stack_target* target, __u64 tls) {
  const struct rtev_tracked* process = &target->process;
  if (!tls || !process->domain_self_tls || !process->id_offset || !target->domain_state) return 0;
  __u64 domain = read_word(tls + process->domain_self_tls);
  if (!domain) return 0;
  __u64 state = read_word(domain + 8 * target->domain_state);
  return state && (__u32)read_word(state + process->id_offset) == (__u32)read_word(domain) ? state : 0;
}

static __always_inline bool read_link(struct stack_scratch* scratch, __u64 address) {
  return address && !(address & 7) && !bpf_probe_read_user(&scratch->link, sizeof(scratch->link), (void*)address);
}

static __always_inline bool is_plausible(__u64 stack, __u64 sp) {
  return stack && !((stack | sp) & 7) && sp > stack && sp - stack < MAX_STACK_SPAN;
}

/* Whether the link, which it reads, is on this thread's C stack, and of that OCaml stack. Else both are of another
 * thread of the domain. */
static __always_inline bool is_own_link(struct stack_scratch* scratch, struct task_struct* task, __u64 link,
                                        __u64 stack) {
  __u64 sp = scratch->record.registers[REGISTER_SP] & ~7ull;
  return is_plausible(sp, link) && link < end_of_c_stack(task, sp) && read_link(scratch, link) &&
         scratch->link.stack == stack;
}

/* Reads the description of an OCaml stack. */
static __always_inline bool read_info(struct stack_scratch* scratch, __u64 stack) {
  if (!stack || bpf_probe_read_user(&scratch->info, sizeof(scratch->info), (void*)stack)) return false;
  return is_plausible(stack, scratch->info.handler);
}

#define RAISE_FRAME_WORDS 64 /* of the frame of caml_stash_backtrace */

struct search {
  struct stack_scratch* scratch;
  __u64 begin, end; /* words of interest */
  __u64 count;      /* words to look at */
};

/* A return address in caml_system, and a c_stack_link behind it: the C code that OCaml called. */
static long find_link_at(__u32 index, struct search* search) {
  struct stack_scratch* scratch = search->scratch;
  __u64 i = index;
  if (i >= search->count || i >= SCANNED_WORDS - 2) return 1;
  if (!lies_in(scratch->words[i], search->begin, search->end)) return 0;
  if (!is_plausible(scratch->words[i + 1], scratch->words[i + 2])) return 0;
  scratch->found = scratch->words_begin + (i + 1) * 8;
  return 1;
}

/* From the top of the words down: the first one, or with `lowest` of some the one with the lowest value. */
static long find_word_at(__u32 index, struct search* search) {
  struct stack_scratch* scratch = search->scratch;
  __u64 i = search->count - 1 - index;
  barrier_var(i);
  if (index >= search->count || i >= SCANNED_WORDS) return 1;
  if (scratch->lowest && index >= RAISE_FRAME_WORDS) return 1;
  if (!lies_in(scratch->words[i], search->begin, search->end)) return 0;
  if (!scratch->found || scratch->words[i] < scratch->found) scratch->found = scratch->words[i];
  return !scratch->lowest;
}

/* Reads [from, to), or the beginning of it, into `words`. Returns their number. */
static __always_inline __u64 read_words(struct stack_scratch* scratch, __u64 from, __u64 to) {
  if (from >= to) return 0;
  __u64 bytes = to - from < sizeof(scratch->words) ? (to - from) & ~7ull : sizeof(scratch->words);
  barrier_var(bytes);
  if (bytes > sizeof(scratch->words)) return 0;
  scratch->words_begin = from;
  return bpf_probe_read_user(scratch->words, bytes, (void*)from) ? 0 : bytes / 8;
}

/* Whether it is caml_state of this thread: what it points to describes the stacks that the thread runs on. */
static __always_inline bool is_own_state(struct stack_scratch* scratch, const struct rtev_stack_target* target,
                                         struct task_struct* task, __u64 state) {
  if (!state || state & 7 || (__s64)state < 0) return false;
  if (bpf_probe_read_user(scratch->state, sizeof(scratch->state), (void*)state)) return false;
  const __u64* words = scratch->state;
  __u64 start = words[target->young_start % STATE_WORDS], end = words[target->young_end % STATE_WORDS];
  if (!lies_in(words[target->young_ptr % STATE_WORDS], start, end + 1)) return false;
  __u64 sp = scratch->record.registers[REGISTER_SP], stack = words[target->current_stack % STATE_WORDS];
  if (!read_info(scratch, stack)) return false;
  return lies_in(sp, stack + 1, scratch->info.handler + 1) ||
         is_own_link(scratch, task, words[target->c_stack % STATE_WORDS], stack);
}

struct state_search {
  struct stack_scratch* scratch;
  const struct rtev_stack_target* target;
  struct task_struct* task;
  __u64 count; /* words to look at */
};

static long find_state_at(__u32 index, struct state_search* search) {
  struct stack_scratch* scratch = search->scratch;
  __u64 i = index;
  if (i >= search->count || i >= SCANNED_WORDS) return 1;
  if (!is_own_state(scratch, search->target, search->task, scratch->words[i])) return 0;
  scratch->found = scratch->words_begin + 8 * i;
  return 1;
}

/* Programs without symbols do not say where caml_state is: among the variables of the thread. */
static __noinline void find_state(struct stack_scratch* scratch, struct rtev_stack_target* target,
                                  struct task_struct* task) {
  __u64 pointer = THREAD_POINTER(task);
  scratch->found = 0;
  struct state_search search = {.scratch = scratch, .target = target, .task = task};
  /* Beyond the variables of a static program there may be no memory. */
#pragma unroll
  for (__u64 bytes = sizeof(scratch->words); !search.count && bytes >= MIN_TLS_BYTES; bytes /= 2)
    search.count = read_words(scratch, TLS_BEGIN(pointer, bytes), TLS_BEGIN(pointer, bytes) + bytes);
  bpf_loop(SCANNED_WORDS, find_state_at, &search, 0);
  if (scratch->found) target->process.caml_state_tls = scratch->found - pointer;
}

/* Address of the c_stack_link of a thread without the lock whose domain another thread has used since; 0 if there is
 * none, as for threads that have never run OCaml. */
static __noinline __u64 find_link(struct stack_scratch* scratch, __u64 from, __u64 to, __u64 begin, __u64 end) {
  scratch->found = 0;
  struct search search = {.scratch = scratch, .begin = begin, .end = end, .count = read_words(scratch, from, to)};
  bpf_loop(SCANNED_WORDS, find_link_at, &search, 0);
  return scratch->found;
}

static long follow_link(__u32 index, struct copying* copying) {
  struct stack_scratch* scratch = copying->scratch;
  __u64 root = scratch->root, previous = 0;
  if (bpf_probe_read_user(&previous, sizeof(previous),
                          (void*)(root + __builtin_offsetof(struct c_stack_link, previous))))
    return 1;
  if (!is_plausible(root, previous)) return 1;
  scratch->root = previous;
  return 0;
}

/* Adds the C stack from `sp` to the outermost callback and its caller. `link`: where OCaml code called C, or 0. */
static __always_inline void add_c_stack(struct stack_scratch* scratch, struct task_struct* task, __u64 sp, __u64 link) {
  __u64 most = scratch->left / 2;
  scratch->root = link;
  if (!link) {
    __u64 end = end_of_c_stack(task, sp);
    add_range(scratch, sp, end - sp < most ? end : sp + most);
    return;
  }
  struct copying copying = {.scratch = scratch};
  bpf_loop(MAX_CALLBACKS, follow_link, &copying, 0);
  __u64 root = scratch->root, end = end_of_c_stack(task, root);
  if (end - root > ROOT_BYTES) end = root + ROOT_BYTES;
  if (sp > link || link - sp > MAX_STACK_SPAN) {
    /* The stack of signal handlers, or one of the program's own. */
    __u64 other_end = end_of_c_stack(task, sp);
    add_range(scratch, sp, other_end - sp < LINK_BYTES * 2 ? other_end : sp + LINK_BYTES * 2);
    sp = link;
  }
  if (end - sp <= most) {
    add_range(scratch, sp, end);
    return;
  }
  scratch->record.flags |= RTEV_STACK_CUT;
  __u64 around = link - sp < LINK_BYTES ? sp : link - LINK_BYTES;
  if (root - link < 2 * LINK_BYTES) {
    add_range(scratch, around, end);
  } else {
    add_range(scratch, around, link + LINK_BYTES);
    add_range(scratch, root - LINK_BYTES, end);
  }
  __u64 newest_end = sp + NEWEST_C_BYTES < around ? sp + NEWEST_C_BYTES : around;
  add_range(scratch, sp, newest_end);
}

/* The word nearest to the link that points into the OCaml stack, or the lowest such word if `lowest`; 0 if none. */
static __noinline __u64 find_saved_sp(struct stack_scratch* scratch, __u64 sp, __u64 link, __u64 begin, __u64 end) {
  scratch->found = 0;
  if (sp >= link) return 0;
  __u64 from = link - sp < sizeof(scratch->words) ? sp : link - sizeof(scratch->words);
  struct search search = {.scratch = scratch, .begin = begin, .end = end, .count = read_words(scratch, from, link - 8)};
  bpf_loop(SCANNED_WORDS, find_word_at, &search, 0);
  return scratch->found;
}

/* Where the OCaml stack begins whose description is in `info`, while the thread runs C. The runtime saves it, but not
 * before a call that does not allocate, or while it raises an exception: then it is in a register, or on the C stack
 * if the C code uses that register. */
static __always_inline __u64 ocaml_sp(struct stack_scratch* scratch, const struct rtev_stack_target* target, __u64 sp,
                                      __u64 stack, __u64 link) {
  __u64 begin = stack + 1, end = scratch->info.handler + 1, saved = scratch->info.sp;
  /* Between the change of stacks and the call there is no return address. */
  __u64 caller = sp < link ? read_word(link - 8) : 0;
  bool raises = lies_in(caller, target->raise_begin, target->raise_end);
  if (lies_in(caller, target->system_begin, target->system_end) && !raises) return saved;
  scratch->record.flags |= RTEV_STACK_OLD_START;
  const __u64* registers = scratch->record.registers;
  bool is_5_0 = target->young_trigger == target->young_start;
  __u64 noalloc = is_5_0 ? registers[NOALLOC_REGISTER_5_0] : registers[NOALLOC_REGISTER],
        raise = registers[RAISE_REGISTER], raise_5_1 = registers[RAISE_REGISTER_5_1];
  if (target->system_end && caller) {
    /* OCaml 5.1 keeps it in a register that C code does not preserve: something else may be in this one. But C code
     * that goes through the frames, caml_stash_backtrace, has places of them in its own frame. */
    scratch->lowest = raises;
    if (!raises && lies_in(noalloc, begin, end)) return noalloc;
    __u64 kept = find_saved_sp(scratch, sp, link, begin, end);
    if (raises && lies_in(raise, begin, kept ? kept : end)) kept = raise;
    if (raises && lies_in(raise_5_1, begin, kept ? kept : end)) kept = raise_5_1;
    /* The return address of the frame that was reached lies before it. */
    if (raises && kept) kept -= 2 * sizeof(kept);
    return kept ? kept : saved;
  }
  scratch->lowest = false;
  __u64 lowest = lies_in(saved, begin, end) ? saved : end - 1, kept = find_saved_sp(scratch, sp, link, begin, end);
  if (lies_in(noalloc, begin, lowest)) lowest = noalloc;
  if (lies_in(raise, begin, lowest)) lowest = raise;
  if (lies_in(raise_5_1, begin, lowest)) lowest = raise_5_1;
  if (lies_in(kept, begin, lowest)) lowest = kept;
  return lowest;
}

/* As in OCaml's runtime: a local root of C code. */
struct roots_block {
  __u64 next, tables, items, first;
};

/* While C code calls OCaml back, the runtime has taken the parent of the fiber away, and keeps it in a continuation
 * that is a local root. Takes the next one of these. */
static long find_parent_at(__u32 index, struct copying* copying) {
  struct stack_scratch* scratch = copying->scratch;
  struct roots_block block;
  if (!scratch->roots || bpf_probe_read_user(&block, sizeof(block), (void*)scratch->roots)) {
    scratch->roots = 0;
    return 1;
  }
  scratch->roots = block.next;
  if (block.tables != 1 || block.items != 1) return 0;
  __u64 value = read_word(block.first);
  if (!value || value & 7 || (read_word(value - 8) & 0xff) != CONTINUATION_TAG) return 0;
  __u64 parent = read_word(value);
  if (!(parent & 1)) return 0;
  scratch->parent = parent - 1;
  return 1;
}

/* Adds the stack that `info` describes, from `sp` on: `most` bytes of it. */
static __noinline void add_fiber(struct stack_scratch* scratch, __u64 stack, __u64 sp, __u64 most) {
  __u64 handler = scratch->info.handler;
  add_range(scratch, stack, stack + sizeof(struct stack_info));
  scratch->parent = read_word(handler + PARENT_OFFSET);
  if (!scratch->parent && scratch->roots) {
    struct copying copying = {.scratch = scratch};
    bpf_loop(MAX_ROOTS, find_parent_at, &copying, 0);
  }
  if (!scratch->parent || read_word(handler + PARENT_OFFSET)) {
    add_ends(scratch, sp, handler + HANDLER_BYTES, most, OLDEST_BYTES);
  } else {
    add_range_or_value(scratch, handler + PARENT_OFFSET, handler + HANDLER_BYTES, scratch->parent);
    add_ends(scratch, sp, handler + PARENT_OFFSET, most, OLDEST_BYTES);
  }
}

/* Adds the next fiber outwards. */
static long add_parent(__u32 index, struct copying* copying) {
  struct stack_scratch* scratch = copying->scratch;
  __u64 stack = scratch->parent;
  if (!read_info(scratch, stack)) return 1;
  if (!lies_in(scratch->info.sp, stack, scratch->info.handler + 1)) return 1;
  add_fiber(scratch, stack, scratch->info.sp, scratch->left);
  return 0;
}

/* Adds the stack of OCaml code in use, from `sp`, and those of its parents. */
static __always_inline void add_ocaml_stacks(struct stack_scratch* scratch, __u64 stack, __u64 sp) {
  __u64 end = scratch->info.handler, left = scratch->left;
  if (!lies_in(sp, stack + 1, end + 1)) sp = end;
  scratch->record.flags |= RTEV_STACK_OCAML;
  add_fiber(scratch, stack, sp, left > 2 * RESERVED_FOR_PARENTS ? left - RESERVED_FOR_PARENTS : left);
  struct copying copying = {.scratch = scratch};
  bpf_loop(MAX_FIBERS, add_parent, &copying, 0);
}

/* Finds the stacks of the current thread and adds them. `tls`: address of its variables of the runtime, or 0;
 * `state`: caml_state, 0 without the lock. */
static __always_inline void add_stacks(struct stack_scratch* scratch, struct rtev_stack_target* target,
                                       struct task_struct* task, __u64 tls, __u64 state) {
  struct rtev_stack* record = &scratch->record;
  __u64 sp = record->registers[REGISTER_SP] & ~7ull;
  bool is_locked = state != 0;
  if (!target->current_stack) {
    record->flags |= RTEV_STACK_NO_LAYOUT;
    add_c_stack(scratch, task, sp, 0);
    return;
  }
  if (!state) state = state_left_behind(target, tls);
  __u64 stack = 0, link = 0;
  if (state && !bpf_probe_read_user(scratch->state, sizeof(scratch->state), (void*)state)) {
    stack = scratch->state[target->current_stack % STATE_WORDS];
    link = scratch->state[target->c_stack % STATE_WORDS];
  }
  if (!is_locked) {
    if (!is_own_link(scratch, task, link, stack)) {
      __u64 end = end_of_c_stack(task, sp);
      state = 0;
      link = target->system_end ? find_link(scratch, sp, end, target->system_begin, target->system_end) : 0;
      if (!link && target->system_end)
        link = find_link(scratch, sp + UNIX_BUFFER_BYTES, end, target->system_begin, target->system_end);
      stack = link && read_link(scratch, link) ? scratch->link.stack : 0;
    }
  }
  record->caml_state = state;
  bool has_info = read_info(scratch, stack);
  if (has_info) record->current_stack = stack;
  record->c_stack = link;
  bool in_ocaml = is_locked && has_info && lies_in(sp, stack + 1, scratch->info.handler + 1);
  add_c_stack(scratch, task, in_ocaml && link ? link : sp, link);
  if (!has_info) return;
  /* Only then there are callbacks. */
  scratch->roots =
      state && target->local_roots && scratch->root != link ? scratch->state[target->local_roots % STATE_WORDS] : 0;
  if (!in_ocaml) sp = is_locked ? ocaml_sp(scratch, target, sp, stack, link) : scratch->link.sp;
  add_ocaml_stacks(scratch, stack, sp);
}

#endif
