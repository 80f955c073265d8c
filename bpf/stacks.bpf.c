// SPDX-License-Identifier: MIT
// Stacks of the threads of OCaml programs: while they run, when they go to sleep, and where they use up a minor heap.
// An object of its own, loaded only when stacks are wanted.
#include "stack_copy.bpf.h"
#include "stack_layout.bpf.h"

#define PF_EXITING 0x4
#define MAX_SLEEPS RTEV_MAX_THREADS
#define INTERRUPT_SCRATCH 0 /* number of the scratch memory: see stack_scratches */
#define UPROBE_SCRATCH 1
#define OTHER_UPROBE_SCRATCH 2
#define OFF_CPU_BUDGET 0 /* in struct rtev_stack_budget */
#define ALLOCATION_BUDGET 1
#define MINOR_HEAP_WORDS 8 /* of caml_state's block: those about the minor heap are among the first */

/* Linux 6.10 and newer. */
extern void bpf_preempt_disable(void) __weak __ksym;
extern void bpf_preempt_enable(void) __weak __ksym;

struct threads_map threads SEC(".maps"); /* shared with the other object, if user space has that */

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_MAX_STACK_TARGETS);
  __uint(map_flags, BPF_F_NO_PREALLOC); /* user space adds the elements */
  __type(key, __u32);
  __type(value, struct rtev_stack_target);
} stack_targets SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 8 << 20);
} stacks SEC(".maps");

/* By tid. Preallocated: elements are added with a run queue locked. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MAX_SLEEPS);
  __type(key, __u32);
  __type(value, struct rtev_sleep);
} sleeps SEC(".maps");

const volatile __u32 stack_bytes = 24576;         /* copied of the stacks of a thread, at the most */
const volatile __u64 sample_ns = 10101010;        /* between two samples of a cpu */
const volatile __u64 min_sleep_ns = 1000000;      /* shorter ones are not reported */
const volatile __u32 window_limits[2] = {10, 20}; /* stacks of a process in a window, by number of the budget */
const volatile __u32 window_limit = 100;          /* the same of all processes together */
const volatile __u32 buffer_bytes = 8 << 20;      /* of `stacks` */
const volatile __u32 buffer_shift = 21;           /* the reader is woken each time 1 << this bytes more wait */
const volatile bool kernel_stacks = true;
const volatile bool kernel_stacks_of_sleeps = false;
const volatile bool knows_threads = false; /* `threads` is shared */

/* Shared with user space, which sets `taken`. */
struct rtev_stack_drops stack_drops[RTEV_STACK_KINDS][RTEV_STACK_LOSSES];
struct rtev_stack_budget budget_of_all;
/* By the low bits of a tgid: whether there has been a target with these bits. Takes a tenth of the time of a look-up in
 * stack_targets, which most threads do not need. Set by user space. */
__u8 had_targets[RTEV_TARGET_FILTER];

static __always_inline void count_stack_drop(__u32 kind, __u32 loss) {
  if (kind >= RTEV_STACK_KINDS || loss >= RTEV_STACK_LOSSES) return;
  struct rtev_stack_drops* drops = &stack_drops[kind][loss];
  __u64 now = bpf_ktime_get_ns();
  if (drops->count == drops->taken) drops->first_ns = now;
  drops->last_ns = now;
  /* Atomic also as a barrier: a reader that sees the new count sees the new times. */
  __sync_fetch_and_add(&drops->count, 1);
}

/* Approximate: threads that begin a window at the same time lose a few counts. */
static __always_inline bool spend(struct rtev_stack_budget* budget, __u32 number, __u32 limit, __u64 now) {
  if (now - budget->window_ns > RTEV_STACK_WINDOW_NS) {
    budget->window_ns = now;
    budget->spent[OFF_CPU_BUDGET] = budget->spent[ALLOCATION_BUDGET] = 0;
  }
  if (budget->spent[number] >= limit) return false;
  __sync_fetch_and_add(&budget->spent[number], 1);
  return true;
}

/* Programs decide how often these stacks are taken: they leave part of the buffer to samples. */
static __always_inline bool has_budget(struct rtev_stack_target* target, __u32 number, __u64 now) {
  return spend(&target->budget, number, window_limits[number], now) && spend(&budget_of_all, number, window_limit, now);
}

static __always_inline bool is_nearly_full(void) {
  return bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA) > buffer_bytes / 4 * 3;
}

/* A wake-up costs more than a record, so there are only a few while the buffer fills up. */
static __always_inline __u64 wakeup_for(__u64 bytes) {
  __u64 waiting = bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA);
  return waiting >> buffer_shift != (waiting + bytes) >> buffer_shift ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* Begins a record about a thread. */
static __always_inline void begin(struct stack_scratch* scratch, struct task_struct* task, __u32 kind, __u64 now) {
  struct rtev_stack* record = &scratch->record;
  __builtin_memset(record, 0, sizeof(*record));
  record->time_ns = now;
  record->tgid = task->tgid;
  record->tid = task->pid;
  record->domain = -1;
  record->cpu = bpf_get_smp_processor_id();
  record->kind = kind;
  record->syscall = RTEV_NO_SYSCALL;
  scratch->ranges = scratch->range = scratch->is_copying = 0;
  scratch->used = 0;
  scratch->left = stack_bytes;
}

/* Fills in domain and role. */
static __always_inline void describe(struct stack_scratch* scratch, struct rtev_stack_target* target, __u64 tls) {
  struct rtev_stack* record = &scratch->record;
  __u32 tid = record->tid;
  if (knows_threads) {
    struct thread_state* known = bpf_map_lookup_elem(&threads, &tid);
    if (known) {
      record->domain = known->domain;
      record->role = known->role;
    }
  }
  if (record->domain >= 0) return;
  const struct rtev_tracked* process = &target->process;
  struct domain_variables variables = {process->domain_self_tls, process->caml_state_tls, process->id_offset};
  record->domain = read_domain(&variables, tls);
}

/* The payload's first part. */
static __always_inline void add_kernel_frames(struct stack_scratch* scratch, void* context) {
  long bytes = bpf_get_stack(context, scratch->payload, RTEV_MAX_KERNEL_FRAMES * 8, 0);
  if (bytes <= 0 || bytes > RTEV_MAX_KERNEL_FRAMES * 8) return;
  scratch->record.kernel_frames = (__u32)bytes / 8;
  scratch->used = bytes & ~7ull;
}

/* Copies the stacks of the current thread behind what the payload holds. */
static __noinline void capture(struct stack_scratch* scratch, struct rtev_stack_target* target) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct rtev_stack* record = &scratch->record;
  read_registers(record->registers, task);
  __u64 tls = runtime_tls(&target->process, task);
  if (!target->process.caml_state_tls && target->current_stack && target->searches < MAX_STATE_SEARCHES) {
    ++target->searches;
    find_state(scratch, target, task);
  }
  __u64 state = tls && target->process.caml_state_tls ? read_word(tls + target->process.caml_state_tls) : 0;
  describe(scratch, target, tls);
  /* The runtime's own threads always have a caml_state but hold the lock only briefly. */
  if (state && record->role != RTEV_ROLE_BACKUP && record->role != RTEV_ROLE_TICK)
    record->flags |= RTEV_STACK_HOLDS_LOCK;
  add_stacks(scratch, target, task, tls, state);
  copy_ranges(scratch);
}

/* Whether there was room. */
static __always_inline bool submit(struct stack_scratch* scratch) {
  __u64 used = scratch->used;
  barrier_var(used);
  if (used > MAX_PAYLOAD + COPY_BYTES) return false;
  scratch->record.bytes = used;
  __u64 bytes = sizeof(struct rtev_stack) + used;
  return !bpf_ringbuf_output(&stacks, &scratch->record, bytes, wakeup_for(bytes));
}

static __always_inline struct rtev_stack_target* target_of(struct task_struct* task) {
  __u32 tgid = task->tgid;
  return had_targets[tgid % RTEV_TARGET_FILTER] ? bpf_map_lookup_elem(&stack_targets, &tgid) : NULL;
}

/* A cpu's clock, whatever runs there. */
SEC("?perf_event")
int stack_sample(struct pt_regs* context) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct rtev_stack_target* target = target_of(task);
  if (!target || task->flags & PF_EXITING) return 0;
  struct stack_scratch* scratch = take_scratch(INTERRUPT_SCRATCH);
  if (!scratch) {
    count_stack_drop(RTEV_STACK_ON_CPU, RTEV_STACK_BUSY);
    return 0;
  }
  begin(scratch, task, RTEV_STACK_ON_CPU, bpf_ktime_get_ns());
  scratch->record.weight = sample_ns;
  if ((__s64)PT_REGS_IP(context) < 0) {
    scratch->record.flags |= RTEV_STACK_IN_KERNEL;
    if (kernel_stacks) add_kernel_frames(scratch, context);
  }
  capture(scratch, target);
  if (!submit(scratch)) count_stack_drop(RTEV_STACK_ON_CPU, RTEV_STACK_FULL);
  give_back(scratch);
  return 0;
}

/* Takes the stack of a thread that goes to sleep. Sets the loss if that is not possible. */
static __always_inline bool take_sleeper(void* context, struct rtev_stack_target* target, struct task_struct* task,
                                         struct rtev_sleep* sleep) {
  if (!has_budget(target, OFF_CPU_BUDGET, sleep->left_ns)) {
    sleep->loss = RTEV_STACK_LIMITED;
    return false;
  }
  sleep->loss = RTEV_STACK_FULL;
  if (is_nearly_full()) return false;
  struct stack_scratch* scratch = take_scratch(INTERRUPT_SCRATCH);
  if (!scratch) {
    sleep->loss = RTEV_STACK_BUSY;
    return false;
  }
  begin(scratch, task, RTEV_STACK_OFF_CPU, sleep->left_ns);
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
  __s64 number = SYSCALL_NUMBER(regs);
  scratch->record.left_ns = sleep->left_ns;
  scratch->record.syscall = number >= 0 && number < RTEV_NO_SYSCALL ? number : RTEV_NO_SYSCALL;
  scratch->record.flags = RTEV_STACK_IN_KERNEL;
  if (kernel_stacks_of_sleeps) add_kernel_frames(scratch, context);
  capture(scratch, target);
  sleep->domain = scratch->record.domain;
  sleep->role = scratch->record.role;
  sleep->flags = scratch->record.flags & RTEV_STACK_HOLDS_LOCK;
  bool written = submit(scratch);
  give_back(scratch);
  return written;
}

static __always_inline void fall_asleep(void* context, struct rtev_stack_target* target, struct task_struct* task) {
  __u32 tid = task->pid;
  struct rtev_sleep sleep = {.left_ns = bpf_ktime_get_ns(), .domain = -1};
  if (knows_threads) {
    struct thread_state* known = bpf_map_lookup_elem(&threads, &tid);
    /* The runtime's own threads do little but sleep. */
    if (known && (known->role == RTEV_ROLE_BACKUP || known->role == RTEV_ROLE_TICK)) return;
    if (known) {
      sleep.domain = known->domain;
      sleep.role = known->role;
    }
  }
  if (take_sleeper(context, target, task, &sleep)) sleep.stack_ns = sleep.left_ns;
  struct rtev_sleep* known = bpf_map_lookup_elem(&sleeps, &tid);
  if (known)
    *known = sleep;
  else if (bpf_map_update_elem(&sleeps, &tid, &sleep, BPF_ANY))
    count_stack_drop(RTEV_STACK_WOKEN, RTEV_STACK_LIMITED);
}

static __always_inline void wake_up(struct rtev_stack_target* target, struct task_struct* task) {
  __u32 tid = task->pid;
  struct rtev_sleep* sleep = bpf_map_lookup_elem(&sleeps, &tid);
  if (!sleep || !sleep->left_ns) return;
  __u64 now = bpf_ktime_get_ns(), left_ns = sleep->left_ns;
  sleep->left_ns = 0;
  if (now - left_ns < min_sleep_ns) return;
  if (!sleep->stack_ns)
    count_stack_drop(RTEV_STACK_OFF_CPU, sleep->loss);
  else if (target->budget.spent[OFF_CPU_BUDGET])
    /* The limit is for what is in vain: a thread cannot sleep for long many times a second. */
    __sync_fetch_and_add(&target->budget.spent[OFF_CPU_BUDGET], -1);
  struct rtev_stack* record = bpf_ringbuf_reserve(&stacks, sizeof(*record), 0);
  if (!record) {
    count_stack_drop(RTEV_STACK_WOKEN, RTEV_STACK_FULL);
    return;
  }
  __builtin_memset(record, 0, sizeof(*record));
  record->time_ns = now;
  record->weight = now - left_ns;
  record->left_ns = sleep->stack_ns;
  record->tgid = task->tgid;
  record->tid = tid;
  record->domain = sleep->domain;
  record->cpu = bpf_get_smp_processor_id();
  record->kind = RTEV_STACK_WOKEN;
  record->role = sleep->role;
  record->flags = sleep->flags;
  record->syscall = RTEV_NO_SYSCALL;
  bpf_ringbuf_submit(record, wakeup_for(sizeof(*record)));
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(stack_switch, bool preempted, struct task_struct* prev, struct task_struct* next, unsigned int state) {
  if (state && !preempted && !(prev->flags & PF_EXITING)) {
    struct rtev_stack_target* leaves = target_of(prev);
    if (leaves) fall_asleep(ctx, leaves, prev);
  }
  struct rtev_stack_target* enters = target_of(next);
  if (enters) wake_up(enters, next);
  return 0;
}

/* Words of the part of the minor heap that is used up; 0 if unknown. */
static __always_inline __u64 allocated_words(const struct rtev_stack_target* target, const __u64* state) {
  __u64 start = state[target->young_start % MINOR_HEAP_WORDS], end = state[target->young_end % MINOR_HEAP_WORDS];
  if (!start || end <= start) return 0;
  __u64 words = (end - start) / 8;
  return target->young_trigger == target->young_start ? words : words / 2;
}

static __always_inline void take_allocation(struct rtev_stack_target* target, __u64 weight) {
  __u64 now = bpf_ktime_get_ns();
  struct rtev_stack_budget* budget = &target->budget;
  __u32 loss = RTEV_STACK_LIMITED;
  if (has_budget(target, ALLOCATION_BUDGET, now)) {
    loss = RTEV_STACK_BUSY;
    struct stack_scratch* scratch = take_scratch(UPROBE_SCRATCH);
    if (!scratch) scratch = take_scratch(OTHER_UPROBE_SCRATCH);
    if (scratch) {
      begin(scratch, bpf_get_current_task_btf(), RTEV_STACK_ALLOCATION, now);
      __u64 skipped = budget->skipped ? __sync_lock_test_and_set(&budget->skipped, 0) : 0;
      weight += skipped;
      scratch->record.weight = weight;
      bool has_room = !is_nearly_full();
      if (has_room) capture(scratch, target);
      bool written = has_room && submit(scratch);
      give_back(scratch);
      if (written) return;
      loss = RTEV_STACK_FULL;
    }
  }
  __sync_fetch_and_add(&budget->skipped, weight);
  count_stack_drop(RTEV_STACK_ALLOCATION, loss);
}

/* caml_alloc_small_dispatch(caml_state, ...): attached by perf_event, or loaded as a uprobe_multi program where the
 * kernel has that. The cookie is binary id << 8. */
SEC("?uprobe")
int stack_allocation(struct pt_regs* context) {
  struct task_struct* task = bpf_get_current_task_btf();
  struct rtev_stack_target* target = target_of(task);
  if (!target || !target->young_ptr) return 0;
  /* One file can be probed twice, through two overlay mounts that show it under different identities. */
  __u32 binary = (__u32)(bpf_get_attach_cookie(context) >> 8);
  if (target->process.binary && target->process.binary != binary) return 0;
  __u64 state[MINOR_HEAP_WORDS];
  if (bpf_probe_read_user(state, sizeof(state), (void*)PT_REGS_PARM1(context))) return 0;
  /* Otherwise the domain is only to be interrupted. */
  if (state[target->young_ptr % MINOR_HEAP_WORDS] >= state[target->young_trigger % MINOR_HEAP_WORDS]) return 0;
  /* A program of low priority must not be preempted while it has the scratch memory. */
  if (bpf_preempt_disable) bpf_preempt_disable();
  take_allocation(target, allocated_words(target, state));
  if (bpf_preempt_enable) bpf_preempt_enable();
  return 0;
}

/* What is known describes the old program. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(stack_exec, struct task_struct* task, pid_t old_tid, struct linux_binprm* program) {
  __u32 tgid = task->tgid, caller = (__u32)old_tid;
  bpf_map_delete_elem(&stack_targets, &tgid);
  /* No exit is seen for a tid that is given up. */
  bpf_map_delete_elem(&sleeps, &caller);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(stack_exit, struct task_struct* task) {
  __u32 tgid = task->tgid, tid = task->pid;
  bpf_map_delete_elem(&sleeps, &tid);
  if (BPF_CORE_READ(task, signal, live.counter) == 0) bpf_map_delete_elem(&stack_targets, &tgid);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
