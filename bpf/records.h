/* SPDX-License-Identifier: MIT */
/* What the BPF programs and userspace/kernel/ say to each other. Fixed-width types only; included by both sides.
 * Values of enums are append-only. */
#ifndef RTEV_BPF_RECORDS_H
#define RTEV_BPF_RECORDS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define RTEV_COMM 16
#define RTEV_SLOTS 16384 /* ring files watched at once; slot 0 is nobody's */
#define RTEV_CPUS 4096
#define RTEV_TRACKED 65536 /* OCaml processes tracked at once */

enum rtev_lifecycle_type {
  RTEV_EXEC = 1,  /* a process runs a new program; detail = old tid where a thread other than the leader called exec */
  RTEV_FORK = 2,  /* a new process (not a thread); peer = tgid of the child, start_time = the child's */
  RTEV_EXIT = 3,  /* the last thread of a process ended; detail = exit code as wait(2) would give it */
  RTEV_RING = 4,  /* a process is about to map a file "*.events"; detail = length asked for; a struct rtev_birth */
  RTEV_PROBE = 5, /* a runtime function was entered; peer = enum rtev_probe, detail = binary id */
  RTEV_WAKE = 6,  /* nothing but a wake-up: a tracked process runs again while the reader sleeps */
};

/* Functions of OCaml's runtime that are probed. */
enum rtev_probe {
  RTEV_PROBE_INIT = 1,         /* caml_runtime_events_init */
  RTEV_PROBE_START = 2,        /* caml_ml_runtime_events_start (5.2+) */
  RTEV_PROBE_C_START = 3,      /* caml_runtime_events_start */
  RTEV_PROBE_PAUSE = 4,        /* caml_ml_runtime_events_pause, or caml_runtime_events_pause before 5.2 */
  RTEV_PROBE_RESUME = 5,       /* likewise */
  RTEV_PROBE_STW_CREATE = 6,   /* stw_create_runtime_events: once per domain */
  RTEV_PROBE_STW_TEARDOWN = 7, /* stw_teardown_runtime_events: once per domain */
  RTEV_PROBE_DESTROY = 8,      /* caml_runtime_events_destroy */
  RTEV_PROBE_POST_FORK = 9,    /* caml_runtime_events_post_fork, in the child */
};

#define RTEV_FOLLOWED 1u /* flags: the process is CMD of "-- CMD" or one of its descendants */

struct rtev_lifecycle {
  __u64 time_ns;    /* CLOCK_MONOTONIC */
  __u64 start_time; /* of the process: ns of CLOCK_BOOTTIME, as in /proc/PID/stat but not yet rounded to ticks */
  __u64 detail;
  __u32 type;
  __u32 tgid;
  __u32 tid;
  __u32 peer;
  __u32 flags;
  /* Exec and exit: what the process had in RAM at the most, over all programs that it ran so far; as getrusage(2) has
   * it, but in pages. */
  __u32 max_rss_pages;
  char comm[RTEV_COMM];
};

#define RTEV_PATH 2048 /* bytes of a path at the most */

/* A file, and where it lies. */
struct rtev_file {
  __u64 inode;      /* the kernel's own number: on some file systems not what stat(2) says */
  __u32 device;     /* of the file system, likewise: major << 20 | minor */
  __u32 path_bytes; /* 0: the path is not known or too long */
};

/* An RTEV_RING record. Its files may be all that is left of the process when it is read. */
struct rtev_birth {
  struct rtev_lifecycle lifecycle;
  __s64 clock_offset; /* CLOCK_MONOTONIC of the host minus that of the process's time namespace, ns */
  struct rtev_file ring;
  struct rtev_file program; /* that the process runs */
  /* Their paths, one after the other, and no more bytes than that. Each as the names from the file up to the root of
   * its file system (not of the mount), each name with a NUL behind it. */
  char paths[2 * RTEV_PATH];
};

#define RTEV_REMEMBERED_DOMAINS 128 /* of more domains all is drained each time */

/* A ring that may have to be drained; the value of the map "rings", by tgid. */
struct rtev_ring {
  __u64 birth_ns; /* or any time that tells it from others of the process, where user space found it */
  __u64 inode;    /* of its file */
  __u64 length;   /* of its mapping, as asked for */
  __u64 inside;   /* an address in the mapping */
  __u32 chunks;   /* told so far */
  __u8 header_told;
  __u8 names_told;
  __u8 execs;                             /* its process is about to run another program */
  __u64 drained[RTEV_REMEMBERED_DOMAINS]; /* up to there, for each domain */
};

/* What is kept of a ring that nobody has opened by the time its runtime takes it down, and of any ring whose process is
 * about to run another program: records of their own buffer. */
enum rtev_drained_type {
  RTEV_DRAINED_RING = 1,   /* its file's header is the payload; end = bytes of the file. Before all others. */
  RTEV_DRAINED_WORDS = 2,  /* words [begin, end) of a domain, counted from the ring's birth, are the payload */
  RTEV_DRAINED_DOMAIN = 3, /* behind a domain's words: it holds [begin, end) in all, whether or not all found room */
  RTEV_DRAINED_NAME = 4,   /* the name of the user event `begin`, as it lies in the file, is the payload */
  RTEV_DRAINED_LAST = 5,   /* what was told so far is how the next program finds the ring */
};

#define RTEV_DRAINED_HEADER 64     /* bytes of a ring file's header */
#define RTEV_DRAINED_CHUNK 16384   /* bytes of a payload at the most */
#define RTEV_DRAINED_FEW 512       /* bytes of most payloads at the most: short-lived programs write little */
#define RTEV_DRAINED_BYTES 4194304 /* room in the buffer */
#define RTEV_DRAINED_SPARE 524288  /* of it, kept for records that tell how much was lost */

struct rtev_drained {
  __u64 birth_ns; /* time of the record of the ring's birth */
  __u64 begin;
  __u64 end;
  __u32 tgid;
  __u32 type;   /* enum rtev_drained_type */
  __u32 domain; /* of words and domains */
  __u32 bytes;  /* of payload behind this; what comes after them in the record is not meant */
};

/* Roles of threads in OCaml's runtime. */
enum rtev_role {
  RTEV_ROLE_UNKNOWN = 0,
  RTEV_ROLE_MUTATOR = 1, /* runs OCaml code: main thread, domain threads, systhreads */
  RTEV_ROLE_BACKUP = 2,  /* serves stop-the-world requests while its domain blocks */
  RTEV_ROLE_TICK = 3,    /* systhreads' timer; never writes to a ring */
};

#define RTEV_HOLDS_LOCK 1u     /* thread flags: held its domain's lock when it left the cpu */
#define RTEV_TRACKED_THREAD 2u /* thread flags: belongs to a tracked process */

struct rtev_thread {
  __u32 tgid;
  __u32 tid;
  __s32 domain; /* -1: not known */
  __s16 prio;   /* the kernel's: 120 = nice 0 */
  __u8 role;    /* enum rtev_role */
  __u8 flags;
  char comm[RTEV_COMM];
};

enum rtev_sched_type { RTEV_SWITCH = 1, RTEV_WAKEUP = 2 };

struct rtev_sched {
  __u64 time_ns;
  __u32 type;
  __u32 cpu;               /* switch: where it happens; wakeup: where the woken thread ran last */
  __u32 state;             /* switch: why the leaving thread left: the kernel's task state, 0 = could go on running */
  __u32 preempted;         /* switch: the kernel took the cpu away */
  struct rtev_thread prev; /* switch: leaves the cpu; wakeup: the waker, or whom an interrupt interrupted */
  struct rtev_thread next; /* switch: enters the cpu; wakeup: the woken */
};

/* What the kernel side must know of a tracked process; the value of the map "tracked", by tgid. */
struct rtev_tracked {
  __s64 domain_self_tls; /* thread pointer + this = address of the variable domain_self; 0 = not known */
  __s64 caml_state_tls;  /* likewise caml_state */
  __u64 backup_begin;    /* code of backup_thread_func, absolute: [begin, end); 0 = not known */
  __u64 backup_end;
  __u64 tick_begin; /* code of caml_thread_tick */
  __u64 tick_end;
  __u32 id_offset; /* offset of the domain's id in caml_state's block; 0 = not known */
  __u32 slot;      /* of its ring file, or 0 */
  __u32 binary;    /* id of its binary: a probe hit with another id is a double and dropped */
  /* Number of the shared runtime's block of thread-local variables, in which the offsets above count from one byte
   * before its begin; 0 = they count from the thread pointer. */
  __u32 tls_module;
};

/* Counters, one set per cpu. */
enum rtev_stat {
  RTEV_STAT_SWITCH_DROPPED = 0, /* no room in the cpu's buffer: counted in struct rtev_sched_drops */
  RTEV_STAT_WAKEUP_DROPPED = 1, /* likewise */
  RTEV_STAT_EXEC_DROPPED = 2,   /* no room in the lifecycle buffer, by kind */
  RTEV_STAT_FORK_DROPPED = 3,
  RTEV_STAT_EXIT_DROPPED = 4,
  RTEV_STAT_RING_DROPPED = 5,
  RTEV_STAT_PROBE_DROPPED = 6,
  RTEV_STAT_UNTRACKED = 7,     /* no room in a table of processes or threads: what happens there is not known or told */
  RTEV_STAT_DRAIN_DROPPED = 8, /* what should have been drained of a ring and was not: no room, or not readable */
  RTEV_STAT_COUNT = 9,
};

/* What runs on a cpu now. A cache line for each, so that cpus do not fight for it. */
struct rtev_cpu_activity {
  __u32 slot; /* of its process's ring file, or 0 */
} __attribute__((aligned(64)));

/* Scheduler records of one cpu that found no room in its buffer. Where they lie in time is told by the first and the
 * last one since user space took note of them. A cache line for each cpu. */
struct rtev_sched_drops {
  __u64 switches; /* ever, as all counts */
  __u64 wakeups;
  __u64 taken;    /* written by user space: the sum of both that it has seen */
  __u64 first_ns; /* CLOCK_MONOTONIC; of those that are not taken yet */
  __u64 last_ns;
} __attribute__((aligned(64)));

enum rtev_drain_mode { RTEV_DRAIN_OFF = 0, RTEV_DRAIN_KNOWN = 1, RTEV_DRAIN_ALL = 2 };

enum rtev_sched_mode { RTEV_SCHED_OFF = 0, RTEV_SCHED_OCAML = 1, RTEV_SCHED_ALL = 2 };

#endif
