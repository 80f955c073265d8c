// SPDX-License-Identifier: MIT
// Ring-less tracing: events of OCaml programs whose events are off, seen by uprobes where the runtime finds out that it
// need not write them. An object of its own, loaded only with --ringless.
#include "domain.bpf.h"
#include "maps.bpf.h"

#define SHORT_WORDS 2                                 /* of a message in a ring: a header and the time */
#define LONG_WORDS 3                                  /* and a value */
#define RECORD_BYTES (8 + sizeof(struct rtev_probed)) /* in the buffer, with the kernel's header */

struct followed_map followed SEC(".maps"); /* shared with the other object */

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_MAX_RINGLESS_BINARIES);
  __type(key, __u32);
  __type(value, struct rtev_ringless_binary);
} binaries SEC(".maps");

/* Preallocated: a uprobe can hit in any context. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_MAX_RINGLESS_PROCESSES);
  __type(key, __u32);
  __type(value, struct rtev_ringless_process);
} processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4 << 20);
} probed SEC(".maps");

const volatile bool only_followed = false;
const volatile __u32 window_limit = 10000; /* events of one process in a window */
const volatile __u32 wakeup_shift = 20;    /* the reader is woken each time 1 << this bytes more wait */

__u32 reader_asleep __attribute__((aligned(64))); /* set by the reader before a long sleep */
__u64 dropped_events;                             /* no room in the buffer */
__u64 unattributed_events;                        /* domain unknown, or too many processes */

/* Identifies a program among those of a process and among processes that reuse its tgid: start times differ by more
 * than a process has execs. */
static __always_inline __u64 current_image(void) {
  struct task_struct* task = bpf_get_current_task_btf();
  return task->group_leader->start_boottime + task->self_exec_id;
}

static __always_inline struct rtev_ringless_process* process_of(__u32 tgid, __u32 binary) {
  struct rtev_ringless_process* known = bpf_map_lookup_elem(&processes, &tgid);
  if (known && !known->ignored) return known;
  __u64 image = current_image();
  if (known) {
    if (known->image == image) return known;
    /* User space marked the previous program after its end. */
    bpf_map_delete_elem(&processes, &tgid);
  }
  struct rtev_ringless_process fresh = {.image = image, .since_ns = bpf_ktime_get_ns(), .binary = binary};
  bpf_map_update_elem(&processes, &tgid, &fresh, BPF_NOEXIST);
  return bpf_map_lookup_elem(&processes, &tgid);
}

/* Whether the process has a ring. Then the runtime writes the event there, unless the program paused events. A flag
 * that cannot be read is on a page that was never touched, so it was never set. */
static __always_inline bool has_ring(struct pt_regs* context, __s64 distance) {
  if (!distance) return !ZERO_FLAG(context);
  __u64 enabled = 0;
  bpf_probe_read_user(&enabled, sizeof(enabled), (void*)(PT_REGS_IP(context) + distance));
  return enabled != 0;
}

/* The address that offsets of thread-local variables count from; 0 if unknown. */
static __always_inline __u64 tls_base(struct pt_regs* context, __s64 module_word) {
  __u64 thread_pointer = THREAD_POINTER(bpf_get_current_task_btf()), module = 0;
  if (!module_word) return thread_pointer;
  bpf_probe_read_user(&module, sizeof(module), (void*)(PT_REGS_IP(context) + module_word));
  return module ? library_tls(thread_pointer, module) : 0;
}

/* Counts an event; true if it exceeds the limit. Threads that begin a window at the same time lose a few counts, so the
 * limit is approximate. */
static __always_inline bool exceeds_limit(struct rtev_ringless_process* process, __u64 now) {
  if (now - process->window_ns > RTEV_RINGLESS_WINDOW_NS) {
    process->window_ns = now;
    process->hits = 0;
  }
  return __sync_fetch_and_add(&process->hits, 1) >= window_limit;
}

/* Ignores a process that exceeded its limit, for longer each time. User space may also detach the probes: then the
 * pause ends when they are attached again, in another round. */
static __always_inline void begin_pause(struct rtev_ringless_process* process, __u32 round, __u64 now) {
  if (process->limited_round == round) return; /* another thread exceeded the limit at the same time */
  __u64 pause_ns = 2 * process->pause_ns;
  if (pause_ns > RTEV_RINGLESS_MAX_PAUSE_NS) pause_ns = RTEV_RINGLESS_MAX_PAUSE_NS;
  if (now > process->resume_ns + RTEV_RINGLESS_PAUSE_RESET * process->pause_ns) pause_ns = RTEV_RINGLESS_MIN_PAUSE_NS;
  process->pause_ns = pause_ns;
  process->resume_ns = now + pause_ns;
  process->limited_round = round;
}

/* Writes a record with the losses before it. False if there is no room. In one step: if the thread were preempted
 * between reserve and submit, the unfinished record would block all later ones. */
static __always_inline bool submit(struct rtev_ringless_process* process, struct rtev_probed* record) {
  record->tgid = bpf_get_current_pid_tgid() >> 32;
  record->binary = process->binary;
  record->lost_words = process->lost_words ? __sync_lock_test_and_set(&process->lost_words, 0) : 0;
  __u64 waiting = bpf_ringbuf_query(&probed, BPF_RB_AVAIL_DATA);
  bool crosses = waiting >> wakeup_shift != (waiting + RECORD_BYTES) >> wakeup_shift;
  bool wakes = crosses || record->type == RTEV_PROBED_LIMITED;
  /* Tested first: a cache line that is only read can stay in the caches of all cpus. */
  if (reader_asleep && __sync_lock_test_and_set(&reader_asleep, 0)) wakes = true;
  if (!bpf_ringbuf_output(&probed, record, sizeof(*record), wakes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
    return true;
  __sync_fetch_and_add(&process->lost_words, record->lost_words);
  return false;
}

/* Attached by perf_event, or loaded as a uprobe_multi program where the kernel has that. The cookie is
 * binary id << 8 | enum rtev_emitter. */
SEC("uprobe")
int runtime_event(struct pt_regs* context) {
  __u64 cookie = bpf_get_attach_cookie(context);
  __u32 id = (__u32)(cookie >> 8), emitter = cookie & (RTEV_EMITTERS - 1);
  __u32 tgid = bpf_get_current_pid_tgid() >> 32;
  if (only_followed && !bpf_map_lookup_elem(&followed, &tgid)) return 0;
  struct rtev_ringless_binary* binary = bpf_map_lookup_elem(&binaries, &id);
  if (!binary) return 0;
  struct rtev_ringless_process* process = process_of(tgid, id);
  if (!process) {
    __sync_fetch_and_add(&unattributed_events, 1);
    return 0;
  }
  if (process->ignored || process->binary != id) return 0;
  if (has_ring(context, binary->enabled[emitter])) {
    /* For good: a runtime tears its ring down only when the program ends. */
    process->ignored = 1;
    return 0;
  }
  __u64 now = bpf_ktime_get_ns();
  __u32 round = process->limited_round;
  if (round && round == binary->round && now < process->resume_ns) return 0;
  bool limited = exceeds_limit(process, now);
  struct domain_variables variables = {binary->domain_self_tls, binary->caml_state_tls, binary->id_offset};
  __s32 domain = read_domain(&variables, tls_base(context, binary->tls_module_word[emitter]));
  if (domain < 0) {
    __sync_fetch_and_add(&unattributed_events, 1);
    return 0;
  }
  bool has_value = emitter == RTEV_EMIT_COUNTER || emitter == RTEV_EMIT_LIFECYCLE;
  struct rtev_probed record = {.time_ns = now,
                               .value = has_value ? PT_REGS_PARM2(context) : 0,
                               .id = (__u16)PT_REGS_PARM1(context),
                               .domain = (__u16)domain,
                               .type = limited ? RTEV_PROBED_LIMITED : RTEV_PROBED_EVENT,
                               .emitter = emitter};
  /* Of one thread. If it exceeds the limit again, the next event tells. */
  bool resumes = round && __sync_lock_test_and_set(&process->limited_round, 0);
  if (resumes) record.type = RTEV_PROBED_RESUMED;
  if (!submit(process, &record)) {
    __sync_fetch_and_add(&process->lost_words, has_value ? LONG_WORDS : SHORT_WORDS);
    __sync_fetch_and_add(&dropped_events, 1);
    if (resumes) process->limited_round = round; /* likewise */
  } else if (record.type == RTEV_PROBED_LIMITED) {
    begin_pause(process, binary->round, now);
  }
  return 0;
}

/* Entries describe the program that the process runs. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(ringless_exec, struct task_struct* task, pid_t old_tid, struct linux_binprm* program) {
  __u32 tgid = task->tgid;
  bpf_map_delete_elem(&processes, &tgid);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(ringless_exit, struct task_struct* task) {
  __u32 tgid = task->tgid;
  if (BPF_CORE_READ(task, signal, live.counter) != 0) return 0;
  struct rtev_ringless_process* process = bpf_map_lookup_elem(&processes, &tgid);
  if (!process) return 0;
  if (process->lost_words) {
    struct rtev_probed record = {.time_ns = bpf_ktime_get_ns(), .type = RTEV_PROBED_END};
    submit(process, &record);
  }
  bpf_map_delete_elem(&processes, &tgid);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
