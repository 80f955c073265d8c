/* SPDX-License-Identifier: MIT */
/* How a scheduler record is written. */
#ifndef RTEV_SCHED_BUFFERS_BPF_H
#define RTEV_SCHED_BUFFERS_BPF_H

#include "maps.bpf.h"

#define SCHED_RECORD_BYTES (8 + sizeof(struct rtev_sched)) /* in a buffer, with the kernel's header */

static __always_inline void* sched_buffer(void) {
  __u32 index = bpf_get_smp_processor_id() % sched_buffer_count;
  return bpf_map_lookup_elem(&sched_buffers, &index);
}

/* A wake-up costs more than the record itself, so there are only a few while the buffer fills up. */
static __always_inline void submit_sched(void* buffer, void* record) {
  __u64 waiting = bpf_ringbuf_query(buffer, BPF_RB_AVAIL_DATA);
  bool crossed = waiting >> sched_wakeup_shift != (waiting - SCHED_RECORD_BYTES) >> sched_wakeup_shift;
  bpf_ringbuf_submit(record, crossed ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

#endif
