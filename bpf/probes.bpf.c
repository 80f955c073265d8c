// SPDX-License-Identifier: MIT
// Uprobes at functions of OCaml's runtime that start, pause, resume and tear down a ring.
#include "save_ring.bpf.h"

/* Linux 6.10 and newer. */
extern void bpf_preempt_disable(void) __weak __ksym;
extern void bpf_preempt_enable(void) __weak __ksym;

/* Each domain passes here on the way to the teardown of the ring. The copy may be incomplete while other domains still
 * run; the last domain saves the rest. */
static __always_inline void save_unopened(__u32 tgid) {
  struct rtev_ring* ring = bpf_map_lookup_elem(&rings, &tgid);
  if (!ring || is_opened(tgid, ring)) return;
  __u64 begin = find_mapping(ring);
  if (begin) save_ring(ring, tgid, begin, false);
}

static __always_inline void report(__u32 tgid, __u32 binary, enum rtev_probe function) {
  if (function == RTEV_PROBE_STW_TEARDOWN) save_unopened(tgid);
  if (!spend_as_process(PROBE_PRICE) || !spend_as_user(PROBE_PRICE_OF_USER, USER_PROBE_BUDGET)) {
    count_dropped_announcement(RTEV_STAT_PROBE_DROPPED);
    return;
  }
  struct rtev_lifecycle* record = begin_lifecycle(bpf_get_current_task_btf(), RTEV_PROBE, RTEV_STAT_PROBE_DROPPED);
  if (!record) return;
  record->peer = function;
  record->detail = binary;
  submit_lifecycle(record);
}

/* Attached by perf_event, or loaded as a uprobe_multi program where the kernel has that. The cookie is
 * binary id << 8 | enum rtev_probe. */
SEC("?uprobe")
int runtime_function(void* context) {
  __u64 cookie = bpf_get_attach_cookie(context);
  __u32 binary = (__u32)(cookie >> 8);
  __u32 tgid = bpf_get_current_pid_tgid() >> 32;
  if (follow_only && !is_followed(tgid)) return 0;
  /* One file can be probed twice, through two overlay mounts that show it under different identities. A process that is
   * not tracked yet may be new: its hits count. */
  struct rtev_tracked* process = bpf_map_lookup_elem(&tracked, &tgid);
  if (process && process->binary && process->binary != binary) return 0;

  /* A program of low priority must not be preempted while it writes a record: that blocks all later ones. */
  if (bpf_preempt_disable) bpf_preempt_disable();
  report(tgid, binary, (enum rtev_probe)(cookie & 0xff));
  if (bpf_preempt_enable) bpf_preempt_enable();
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
