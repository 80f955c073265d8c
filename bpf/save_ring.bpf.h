/* SPDX-License-Identifier: MIT */
/* Copies the contents of a ring out of its program's memory before that memory is gone. Positions count from the
 * creation of the ring, so user space can assemble parts that were saved at different times and knows what is missing.
 */
#ifndef RTEV_SAVE_RING_BPF_H
#define RTEV_SAVE_RING_BPF_H

#include "rings.bpf.h"

#define MAX_CHUNKS 8192 /* of one ring, over all saves: two full ones for each of 128 domains */
#define CHUNK_WORDS (RTEV_SAVED_CHUNK_BYTES / 8)
#define NAME_BYTES 128
#define MAX_NAMES 8192

/* Separate from lifecycle records: a burst here cannot push out announcements and exits. Written without wake-ups,
 * since the exit or exec that follows wakes the reader. */
struct saved_map {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, RTEV_SAVED_BUFFER_BYTES);
};
extern struct saved_map saved SEC(".maps");

/* What all processes of a user may save in a window of time, in bytes of the buffer and of work for its reader: others
 * find room then. What one save takes beyond that, up to all of the buffer, is paid for in the next windows. */
#define SAVE_WINDOW_NS 100000000
#define SAVE_BUDGET (RTEV_SAVED_BUFFER_BYTES / 2)
#define SAVED_RECORD_PRICE 256 /* besides its payload */

struct save_budget {
  __u64 window_ns; /* begin of the window */
  __u64 spent;
};
struct save_budgets_map {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32); /* user */
  __type(value, struct save_budget);
};
extern struct save_budgets_map save_budgets SEC(".maps");

struct saved_header {
  struct rtev_saved record;
  char payload[RTEV_SAVED_HEADER_BYTES];
};
struct saved_name {
  struct rtev_saved record;
  char payload[NAME_BYTES];
};
struct saved_small_chunk {
  struct rtev_saved record;
  char payload[RTEV_SAVED_SMALL_CHUNK_BYTES];
};
struct saved_chunk {
  struct rtev_saved record;
  char payload[RTEV_SAVED_CHUNK_BYTES];
};

/* The first words of a ring file. */
struct ring_header {
  __u64 version, rings, ring_header_bytes, ring_bytes, ring_words, headers_offset, data_offset, names_offset;
};

/* A save in progress. */
struct save {
  struct rtev_ring* ring;
  __u64 base; /* of the mapping */
  struct ring_header header;
  __u32 tgid;
  __u32 domain;
  __u64 position, end; /* the next words of the domain: [position, end) */
  __u64 zero;
  __u64 price;     /* of what was emitted */
  bool incomplete; /* for some domain not even the record of its extent was written */
};

/* Reads memory of the current process, if it is there: a page fault could wait for ever, for the file system that the
 * program maps its ring from. What the program wrote is there unless memory is short. */
static __always_inline long read_user(void* to, __u32 bytes, __u64 from) {
  return bpf_probe_read_user(to, bytes, (void*)from);
}

static __always_inline struct rtev_saved make_record(const struct save* save, __u32 type, __u64 begin, __u64 end,
                                                     __u32 bytes) {
  return (struct rtev_saved){.announced_ns = save->ring->announced_ns,
                             .begin = begin,
                             .end = end,
                             .tgid = save->tgid,
                             .uid = (__u32)bpf_get_current_uid_gid(),
                             .type = type,
                             .domain = save->domain,
                             .bytes = bytes};
}

/* Emits a record without words: with the file's header for RTEV_SAVED_RING, else without payload. */
static __always_inline bool emit_header(struct save* save, __u32 type, __u64 begin, __u64 end) {
  struct saved_header* header = bpf_ringbuf_reserve(&saved, sizeof(*header), 0);
  if (!header) {
    count_drop(RTEV_STAT_SAVE_DROPPED);
    return false;
  }
  header->record = make_record(save, type, begin, end, type == RTEV_SAVED_RING ? sizeof(save->header) : 0);
  __builtin_memcpy(header->payload, &save->header, sizeof(header->payload));
  save->price += SAVED_RECORD_PRICE;
  bpf_ringbuf_submit(header, BPF_RB_NO_WAKEUP);
  return true;
}

/* Emits a record of the given kind with `record.bytes` of the program's memory. A macro, since the size of a
 * reservation must be a constant. barrier_var: the verifier must see the very register that is checked. */
#define EMIT_COPY(kind, description, from)                              \
  ({                                                                    \
    kind* copy = bpf_ringbuf_reserve(&saved, sizeof(kind), 0);          \
    __u32 bytes = (description).bytes;                                  \
    bool copied = false;                                                \
    barrier_var(bytes);                                                 \
    if (copy) {                                                         \
      if (bytes > sizeof(copy->payload)) bytes = sizeof(copy->payload); \
      copied = !read_user(copy->payload, bytes, from);                  \
      copy->record = description;                                       \
      if (copied)                                                       \
        bpf_ringbuf_submit(copy, BPF_RB_NO_WAKEUP);                     \
      else                                                              \
        bpf_ringbuf_discard(copy, BPF_RB_NO_WAKEUP);                    \
    }                                                                   \
    if (!copied) count_drop(RTEV_STAT_SAVE_DROPPED);                    \
    copied;                                                             \
  })

/* Part of the buffer is reserved for the records that say how much was lost. */
static __always_inline bool has_room(void) {
  if (bpf_ringbuf_query(&saved, BPF_RB_AVAIL_DATA) <= RTEV_SAVED_BUFFER_BYTES - RTEV_SAVED_RESERVED_BYTES) return true;
  count_drop(RTEV_STAT_SAVE_DROPPED);
  return false;
}

static __always_inline bool emit_copy(struct rtev_saved record, __u64 from) {
  if (!has_room()) return false;
  return record.bytes <= RTEV_SAVED_SMALL_CHUNK_BYTES ? EMIT_COPY(struct saved_small_chunk, record, from)
                                                      : EMIT_COPY(struct saved_chunk, record, from);
}

/* Saves one chunk of a domain's words, up to the physical end of the ring at most. */
static long save_words(__u32 step, struct save* save) {
  __u64 position = save->position, ring_words = save->header.ring_words;
  __u64 index = position & (ring_words - 1), words = save->end - position;
  if (position >= save->end || save->ring->chunks >= MAX_CHUNKS) return 1;
  ++save->ring->chunks;
  if (words > ring_words - index) words = ring_words - index;
  if (words > CHUNK_WORDS) words = CHUNK_WORDS;
  __u64 from = save->base + save->header.data_offset + save->domain * save->header.ring_bytes + 8 * index;
  if (!emit_copy(make_record(save, RTEV_SAVED_WORDS, position, position + words, 8 * words), from)) return 1;
  save->position = position + words;
  save->price += SAVED_RECORD_PRICE + 8 * words;
  return 0;
}

struct ring_indices {
  __u64 head, tail;
};

static long save_domain(__u32 domain, struct save* save) {
  struct ring_indices indices = {};
  __u64 address = save->base + save->header.headers_offset + domain * save->header.ring_header_bytes;
  if (read_user(&indices, sizeof(indices), address)) {
    count_drop(RTEV_STAT_SAVE_DROPPED);
    save->incomplete = true;
    return 1;
  }
  if (indices.tail <= indices.head) return 0;
  /* One register that is checked and used, and a pointer that is tested itself: the verifier of Linux 6.1 does not know
   * that copies of a number are equal, and forgets the bounds of a number where it is tested again. */
  __u64 remembered = domain;
  barrier_var(remembered);
  __u64* saved_until = remembered < RTEV_REMEMBERED_DOMAINS ? &save->ring->saved_until[remembered] : NULL;
  barrier_var(saved_until);
  if (!saved_until) {
    /* A short program has fewer domains. Thousands would take all of the buffer, and of the reader's time. */
    count_drop(RTEV_STAT_SAVE_DROPPED);
    save->incomplete = true;
    return 1;
  }
  save->domain = domain;
  save->position = *saved_until > indices.head ? *saved_until : indices.head;
  /* Words must not be read before the tail that covers them: fetch-and-add is a full barrier. */
  save->end = indices.tail + __sync_fetch_and_add(&save->zero, 0);
  if (save->position >= save->end) return 0;
  if (save->end - save->position <= save->header.ring_words) bpf_loop(MAX_CHUNKS, save_words, save, 0);
  *saved_until = save->position;
  /* While other domains still run, the oldest words may be overwritten during the copy: then the head has moved. */
  read_user(&indices.head, sizeof(indices.head), address);
  if (!emit_header(save, RTEV_SAVED_DOMAIN, indices.head, indices.tail)) save->incomplete = true;
  return 0;
}

/* Saves the name of one user event. Names fill the slots from the first one on, so an empty slot ends the loop. Only
 * pages that the program has touched are readable: the copy must stop at the end of the name. */
static long save_name(__u32 id, struct save* save) {
  void* from = (void*)(save->base + save->header.names_offset + id * NAME_BYTES);
  if (!has_room()) return 1;
  struct saved_name* name = bpf_ringbuf_reserve(&saved, sizeof(*name), 0);
  if (!name) {
    count_drop(RTEV_STAT_SAVE_DROPPED);
    return 1;
  }
  if (bpf_probe_read_user_str(name->payload, sizeof(name->payload), from) < 0 || !name->payload[0]) {
    bpf_ringbuf_discard(name, BPF_RB_NO_WAKEUP);
    return 1;
  }
  name->record = make_record(save, RTEV_SAVED_NAME, id, id + 1, sizeof(name->payload));
  save->price += SAVED_RECORD_PRICE;
  bpf_ringbuf_submit(name, BPF_RB_NO_WAKEUP);
  return 0;
}

/* The budget of the current process's user. NULL if there is none, or it is used up. */
static __always_inline struct save_budget* open_save_budget(void) {
  __u32 user = (__u32)bpf_get_current_uid_gid();
  __u64 now = bpf_ktime_get_ns();
  struct save_budget* budget = bpf_map_lookup_elem(&save_budgets, &user);
  if (!budget) {
    struct save_budget fresh = {.window_ns = now};
    bpf_map_update_elem(&save_budgets, &user, &fresh, BPF_NOEXIST);
    return bpf_map_lookup_elem(&save_budgets, &user);
  }
  __u64 windows = (now - budget->window_ns) / SAVE_WINDOW_NS, paid = windows * SAVE_BUDGET;
  if (windows > 0) {
    budget->window_ns = now;
    budget->spent = budget->spent > paid ? budget->spent - paid : 0;
  }
  return budget->spent < SAVE_BUDGET ? budget : NULL;
}

/* `is_last`: the program writes nothing after this. */
static __always_inline void save_ring(struct rtev_ring* ring, __u32 tgid, __u64 base, bool is_last) {
  struct save save = {.ring = ring, .base = base, .tgid = tgid};
  struct ring_header* header = &save.header;
  struct save_budget* budget = open_save_budget();
  if (!budget) {
    count_drop(RTEV_STAT_SAVE_DROPPED);
    return;
  }
  if (read_user(header, sizeof(*header), base)) {
    count_drop(RTEV_STAT_SAVE_DROPPED);
    return;
  }
  /* User space validates the header. Here it only has to bound the work. */
  if (!header->rings || header->rings > RTEV_MAX_DOMAINS || !header->ring_words) return;
  if (!ring->header_saved) ring->header_saved = emit_header(&save, RTEV_SAVED_RING, 0, ring->length);
  if (!ring->header_saved) return;
  bpf_loop(header->rings, save_domain, &save, 0);
  if (is_last && !save.incomplete) emit_header(&save, RTEV_SAVED_LAST, 0, 0);
  /* OCaml 5.0 has no names and leaves their offset uninitialised. */
  if (!ring->names_saved && header->names_offset && header->names_offset < ring->length) {
    ring->names_saved = true;
    bpf_loop(MAX_NAMES, save_name, &save, 0);
  }
  __sync_fetch_and_add(&budget->spent, save.price);
}

struct found_mapping {
  __u64 inode;
  __u64 begin; /* 0: the mapping is of another file */
};

static long find_begin(struct task_struct* task, struct vm_area_struct* area, struct found_mapping* mapping) {
  if (BPF_CORE_READ(area, vm_file, f_inode, i_ino) == mapping->inode) mapping->begin = BPF_CORE_READ(area, vm_start);
  return 0;
}

/* The address at which the current process maps its ring; 0 if unknown. bpf_find_vma fails while another thread changes
 * the mappings, so it is retried: there may be no other opportunity. */
static __always_inline __u64 find_mapping(const struct rtev_ring* ring) {
  struct found_mapping mapping = {.inode = ring->inode};
  for (int tries = 0; tries < 4 && !mapping.begin; ++tries)
    bpf_find_vma(bpf_get_current_task_btf(), ring->address, find_begin, &mapping, 0);
  return mapping.begin;
}

#endif
