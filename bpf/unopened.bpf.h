/* SPDX-License-Identifier: MIT */
/* Rings that were born and that user space has not opened: what has to be drained when their runtime takes them down.
 */
#ifndef RTEV_UNOPENED_BPF_H
#define RTEV_UNOPENED_BPF_H

#include "maps.bpf.h"

#define RTEV_UNOPENED 8192
#define RTEV_REMEMBERED_DOMAINS 128 /* more are drained as well, but each time from the beginning */

struct unopened_ring {
  __u64 birth_ns;
  __u64 inode;  /* of its file */
  __u64 length; /* of its mapping, as asked for */
  __u64 inside; /* an address in the mapping, whose begin is not known yet */
  __u32 chunks; /* told so far */
  bool header_told;
  bool names_told;
  __u64 drained[RTEV_REMEMBERED_DOMAINS]; /* up to there, for each domain */
};

/* By tgid. Entered at birth, removed by user space once it has the file open, and here when the program ends. */
struct unopened_map {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_UNOPENED);
  __uint(map_flags, BPF_F_NO_PREALLOC); /* elements are added only where it is safe to allocate */
  __type(key, __u32);
  __type(value, struct unopened_ring);
};
extern struct unopened_map unopened SEC(".maps");

/* Where an element is put together: too large for the stack. */
struct unopened_scratch_map {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct unopened_ring);
};
extern struct unopened_scratch_map unopened_scratch SEC(".maps");

extern const volatile enum rtev_drain_mode drain_mode;

/* The kernel may look for more room than asked for, so that it can align the mapping to large pages within. The end of
 * what it adds, measured from the begin, lies in the mapping wherever that begins. */
static __always_inline __u64 address_inside(__u64 found, __u64 room, __u64 length) {
  const __u64 page = 4096;
  __u64 pages = (length + page - 1) & ~(page - 1);
  return room > pages && room - pages < pages ? found + (room - pages) : found;
}

static __always_inline void expect_drain(__u32 tgid, const struct rtev_birth* birth, __u64 inside) {
  __u32 zero = 0;
  if (drain_mode == RTEV_DRAIN_OFF) return;
  struct unopened_ring* ring = bpf_map_lookup_elem(&unopened_scratch, &zero);
  if (!ring) return;
  /* The rest of it stays zero. */
  ring->birth_ns = birth->lifecycle.time_ns;
  ring->inode = birth->ring.inode;
  ring->length = birth->lifecycle.detail;
  ring->inside = inside;
  count_untracked(bpf_map_update_elem(&unopened, &tgid, ring, BPF_ANY));
}

#endif
