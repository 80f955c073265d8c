/* SPDX-License-Identifier: MIT */
/* What ringless.bpf.c and userspace/ say to each other, beside records.h. */
#ifndef RTEV_RINGLESS_H
#define RTEV_RINGLESS_H

#include "records.h"

#define RTEV_RINGLESS_PROCESSES 16384     /* probed at once */
#define RTEV_RINGLESS_BINARIES 4096       /* likewise */
#define RTEV_RINGLESS_WINDOW_NS 100000000 /* over which the events of a process are counted for its limit */

/* Functions of OCaml's runtime that write events. */
enum rtev_emitter {
  RTEV_EMIT_BEGIN = 0,     /* caml_ev_begin(phase) */
  RTEV_EMIT_END = 1,       /* caml_ev_end(phase) */
  RTEV_EMIT_COUNTER = 2,   /* caml_ev_counter(counter, value) */
  RTEV_EMIT_LIFECYCLE = 3, /* caml_ev_lifecycle(event, datum) */
  RTEV_EMITTERS = 4,
};

/* What the probes must know of a binary; the value of the map "binaries", by binary id. */
struct rtev_ringless_binary {
  __s64 domain_self_tls; /* as in struct rtev_tracked */
  __s64 caml_state_tls;
  /* By function: address of the runtime's flag "events are enabled" less the probed address. 0: what is probed is the
   * branch on that flag, and the processor's zero flag holds what the function has just seen of it. */
  __s64 enabled[RTEV_EMITTERS];
  /* Of a shared library, by function: address of the word that holds the number of its thread-local variables (struct
   * rtev_tracked has the number itself), less the probed address. 0: of a program. */
  __s64 tls_module_word[RTEV_EMITTERS];
  __u32 id_offset;
  __u32 round; /* one more each time the probes were taken off and put back */
};

/* What the probes know of a process since its first hit; the value of the map "processes", by tgid. */
struct rtev_ringless_process {
  __u64 image;         /* tells the program that it runs from those that had its number before */
  __u64 since_ns;      /* of the first hit */
  __u64 window_ns;     /* since when hits are counted */
  __u32 hits;          /* in this window */
  __u32 lost_words;    /* not told yet */
  __u32 binary;        /* one file can be probed twice, through two overlay mounts: hits with another id are doubles */
  __u32 limited_round; /* of its binary, in which it made too many events; the first round is 1 */
  __u32 silent;        /* has a ring, or is not to be traced */
  __u32 pad;
};

enum rtev_probed_type {
  RTEV_PROBED_EVENT = 1,
  RTEV_PROBED_LIMITED = 2, /* the process makes too many events: nothing more of it until the next round */
  RTEV_PROBED_END = 3,     /* the process ended, after events that were lost */
};

struct rtev_probed {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u64 value;   /* the function's second argument, if it has one */
  __u32 tgid;
  __u32 binary;
  __u32 lost_words; /* of events right before this one that found no room: what they take in a ring */
  __u16 id;         /* the function's first argument */
  __u16 domain;
  __u8 type;    /* enum rtev_probed_type */
  __u8 emitter; /* enum rtev_emitter */
  __u8 pad[6];
};

#endif
