// SPDX-License-Identifier: MIT
// Events of OCaml programs that have no ring: what the runtime would have written, seen where it finds out that it need
// not. An object of its own, loaded only when it is asked for.
/* clang-format off */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
/* clang-format on */

#include "ringless.h"

#include "arch.bpf.h"
#include "maps.bpf.h"
#include "tls.bpf.h"

#define MAX_DOMAINS 4096                              /* of any OCaml 5 */
#define SHORT_WORDS 2                                 /* of a message in a ring: a header and the time */
#define LONG_WORDS 3                                  /* and a value */
#define RECORD_BYTES (8 + sizeof(struct rtev_probed)) /* in the buffer, with the kernel's header */

struct followed_map followed SEC(".maps"); /* shared with the other object */

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_RINGLESS_BINARIES);
  __type(key, __u32);
  __type(value, struct rtev_ringless_binary);
} binaries SEC(".maps");

/* Preallocated: uprobes hit wherever the program is. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_RINGLESS_PROCESSES);
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

__u32 sleeping __attribute__((aligned(64))); /* set by the reader before it sleeps for long */
__u64 dropped_events;                        /* that found no room */
__u64 homeless_events;                       /* of no domain that could be told, or of too many processes */

/* No two programs that run under one number begin so soon after each other that these sums could be the same. */
static __always_inline __u64 current_image(void) {
  struct task_struct* task = bpf_get_current_task_btf();
  return task->group_leader->start_boottime + task->self_exec_id;
}

static __always_inline struct rtev_ringless_process* process_of(__u32 tgid, __u32 binary) {
  struct rtev_ringless_process* known = bpf_map_lookup_elem(&processes, &tgid);
  if (known && !known->silent) return known;
  __u64 image = current_image();
  if (known) {
    if (known->image == image) return known;
    /* User space silenced the program before, and was overtaken. */
    bpf_map_delete_elem(&processes, &tgid);
  }
  struct rtev_ringless_process fresh = {.image = image, .since_ns = bpf_ktime_get_ns(), .binary = binary};
  bpf_map_update_elem(&processes, &tgid, &fresh, BPF_NOEXIST);
  return bpf_map_lookup_elem(&processes, &tgid);
}

/* Whether the runtime has a ring: then it writes the event there, or not if the program paused it. A flag that cannot
 * be read is in memory that nobody has used yet, so that nobody has set it. */
static __always_inline bool has_ring(struct pt_regs* context, __s64 distance) {
  if (!distance) return !ZERO_FLAG(context);
  __u64 enabled = 0;
  bpf_probe_read_user(&enabled, sizeof(enabled), (void*)(PROBED_ADDRESS(context) + distance));
  return enabled != 0;
}

/* Where the offsets of thread-local variables count from; 0 if that cannot be told. */
static __always_inline __u64 tls_base(struct pt_regs* context, __s64 module_word) {
  __u64 thread_pointer = THREAD_POINTER(bpf_get_current_task_btf()), module = 0;
  if (!module_word) return thread_pointer;
  bpf_probe_read_user(&module, sizeof(module), (void*)(PROBED_ADDRESS(context) + module_word));
  return module ? library_tls(thread_pointer, module) : 0;
}

/* The domain whose ring the runtime would write to: caml_state's. -1 if that cannot be told. */
static __always_inline __s32 current_domain(const struct rtev_ringless_binary* binary, __u64 tls) {
  __u64 where = 0;
  __s32 id = -1;
  if (!tls) return -1;
  if (binary->caml_state_tls && binary->id_offset) {
    bpf_probe_read_user(&where, sizeof(where), (void*)(tls + binary->caml_state_tls));
    if (where) where += binary->id_offset;
  }
  if (!where && binary->domain_self_tls)
    bpf_probe_read_user(&where, sizeof(where), (void*)(tls + binary->domain_self_tls));
  if (!where || bpf_probe_read_user(&id, sizeof(id), (void*)where)) return -1;
  return id >= 0 && id < MAX_DOMAINS ? id : -1;
}

/* Counts an event; true if it is beyond the limit. Threads that begin a window at the same time lose a few
 * counts: the limit is no exact one. */
static __always_inline bool exceeds_limit(struct rtev_ringless_process* process, __u64 now) {
  if (now - process->window_ns > RTEV_RINGLESS_WINDOW_NS) {
    process->window_ns = now;
    process->hits = 0;
  }
  return __sync_fetch_and_add(&process->hits, 1) >= window_limit;
}

/* Hands a record over, with what was lost before it. False if there is no room. In one piece: a record that is reserved
 * while its thread loses its cpu would hold up all others. */
static __always_inline bool submit(struct rtev_ringless_process* process, struct rtev_probed* record) {
  record->tgid = bpf_get_current_pid_tgid() >> 32;
  record->binary = process->binary;
  record->lost_words = process->lost_words ? __sync_lock_test_and_set(&process->lost_words, 0) : 0;
  __u64 waiting = bpf_ringbuf_query(&probed, BPF_RB_AVAIL_DATA);
  bool crosses = waiting >> wakeup_shift != (waiting + RECORD_BYTES) >> wakeup_shift;
  bool wakes = crosses || record->type == RTEV_PROBED_LIMITED;
  /* Tested first: a line that is only read stays in every cpu's cache. */
  if (sleeping && __sync_lock_test_and_set(&sleeping, 0)) wakes = true;
  if (!bpf_ringbuf_output(&probed, record, sizeof(*record), wakes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
    return true;
  __sync_fetch_and_add(&process->lost_words, record->lost_words);
  return false;
}

/* Attached by perf_event, or loaded as a uprobe_multi program where the kernel has that. The cookie says where:
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
    __sync_fetch_and_add(&homeless_events, 1);
    return 0;
  }
  if (process->silent || process->binary != id) return 0;
  if (has_ring(context, binary->enabled[emitter])) {
    /* For good: a ring that is taken down leaves nothing behind but the end of its program. */
    process->silent = 1;
    return 0;
  }
  if (process->limited_round == binary->round) return 0;

  __u64 now = bpf_ktime_get_ns();
  bool limited = exceeds_limit(process, now);
  __s32 domain = current_domain(binary, tls_base(context, binary->tls_module_word[emitter]));
  if (domain < 0) {
    __sync_fetch_and_add(&homeless_events, 1);
    return 0;
  }
  bool has_value = emitter == RTEV_EMIT_COUNTER || emitter == RTEV_EMIT_LIFECYCLE;
  struct rtev_probed record = {.time_ns = now,
                               .value = has_value ? SECOND_ARGUMENT(context) : 0,
                               .id = (__u16)FIRST_ARGUMENT(context),
                               .domain = (__u16)domain,
                               .type = limited ? RTEV_PROBED_LIMITED : RTEV_PROBED_EVENT,
                               .emitter = emitter};
  if (!submit(process, &record)) {
    __sync_fetch_and_add(&process->lost_words, has_value ? LONG_WORDS : SHORT_WORDS);
    __sync_fetch_and_add(&dropped_events, 1);
  } else if (limited) {
    process->limited_round = binary->round;
  }
  return 0;
}

/* What is known of a process is of the program it runs. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(ringless_exec, struct task_struct* task, pid_t old_tid, struct linux_binprm* program) {
  __u32 tgid = task->tgid;
  bpf_map_delete_elem(&processes, &tgid);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(ringless_exit, struct task_struct* task) {
  __u32 tgid = task->tgid;
  if (task->signal->live.counter != 0) return 0;
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
