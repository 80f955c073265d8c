/* SPDX-License-Identifier: MIT */
/* Records and map values that the BPF programs and user space exchange. Fixed-width types only; included by both sides.
 * Values of enums are append-only. */
#ifndef RTEV_BPF_RECORDS_H
#define RTEV_BPF_RECORDS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define RTEV_COMM 16
#define RTEV_RING_SLOTS 16384  /* for ring files that are read at the same time; slot 0 stands for no ring */
#define RTEV_MAX_CPUS 4096     /* of any kernel */
#define RTEV_MAX_DOMAINS 4096  /* of any OCaml 5 program (Max_domains_max) */
#define RTEV_MAX_TRACKED 65536 /* OCaml processes tracked at the same time */

/* ---- Processes ---- */

enum rtev_lifecycle_type {
  RTEV_EXEC = 1, /* a process runs a new program; detail = old tid if a thread other than the leader called exec */
  RTEV_FORK = 2, /* a new process (not a thread); peer = tgid of the child, start_time = the child's */
  RTEV_EXIT = 3, /* the last thread of a process ended; detail = exit status as wait(2) returns it */
  RTEV_RING = 4, /* a process is about to map a file "*.events"; detail = requested length; a struct rtev_ring_record */
  RTEV_PROBE = 5,  /* a runtime function was entered; peer = enum rtev_probe, detail = binary id */
  RTEV_PAUSED = 7, /* the runtime of a process that user space tracks has its events paused */
};

/* Probed functions of OCaml's runtime. */
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
  __u32 type; /* enum rtev_lifecycle_type */
  __u32 tgid;
  __u32 tid;
  __u32 peer;
  __u32 flags;
  /* Exec and exit: the maximum resident set size over all programs that the process ran so far, as in getrusage(2), but
   * in pages. */
  __u32 max_rss_pages;
  __u64 start_code; /* lowest address of the program's code; 0 = unknown */
  __u32 uid;        /* of the process's user, in the initial user namespace */
  __u32 ns_pid;     /* pid in the process's own pid namespace; fork: the child's */
  char comm[RTEV_COMM];
};

#define RTEV_MAX_PATH_BYTES 2048

/* A file and its path. */
struct rtev_file {
  __u64 inode;      /* the kernel's own number; on some file systems not the st_ino of stat(2) */
  __u32 device;     /* of the file system, likewise: major << 20 | minor */
  __u32 path_bytes; /* 0: the path is unknown or too long */
};

/* An RTEV_RING record. By the time it is read, the process may be gone and only its files left. */
struct rtev_ring_record {
  struct rtev_lifecycle lifecycle;
  __s64 clock_offset; /* host CLOCK_MONOTONIC minus the clock of the process's time namespace, ns */
  __u64 address;      /* of the mapping: its beginning, or another address within it if the kernel aligned it */
  struct rtev_file ring;
  struct rtev_file program; /* that the process runs */
  /* The path of the ring, then that of the program; the record ends behind them. A path is a list of names, each with
   * a NUL behind it, from the file up to the root of its file system (not of the mount). */
  char paths[2 * RTEV_MAX_PATH_BYTES];
};

/* What a process may still announce (RTEV_RING, RTEV_PROBE), and what it announced in vain; the value of the map
 * "record_budgets", by tgid. Of "user_record_budgets", too, without the drops. */
struct rtev_record_budget {
  __u64 window_ns; /* begin of the window of time that the budget is for */
  __u64 dropped;   /* records, since the start */
  __u32 spent;     /* in this window */
  __u32 pad;
  char comm[RTEV_COMM]; /* of the thread that announced the last dropped one */
};

/* ---- Saved rings ---- */

/* Which rings are saved before they are gone. */
enum rtev_save_mode {
  RTEV_SAVE_OFF = 0,
  RTEV_SAVE_KNOWN = 1, /* where a runtime function is probed or the kernel announces an exec */
  RTEV_SAVE_ALL = 2,   /* also at every munmap(2) of a ring */
};

#define RTEV_REMEMBERED_DOMAINS 128 /* of further domains nothing is saved */

/* What the programs file_is_changing and file_mappings are asked about. */
struct rtev_open_file {
  __u32 fd;              /* of the process that asks */
  __u32 is_to_be_mapped; /* or unmapped: nonzero if it is not only to be read */
  __u32 zero;            /* always: see file_mappings */
  __u32 pad;
  __u64 address; /* for file_mappings: where this process has mapped the file; 0 = it need not be known */
};

/* What touching a page of a mapped file takes. A later state takes more. */
enum rtev_page_state {
  RTEV_PAGES_READY = 0,
  RTEV_PAGES_HOLE = 1,   /* of a file that is in memory only (tmpfs): memory for it */
  RTEV_PAGES_ABSENT = 2, /* a read of the disk */
  RTEV_PAGES_BUSY = 3,   /* waiting for a system call of someone else */
  RTEV_PAGES_RETRY = 4,  /* not known: another thread of the process that asks is changing its mappings */
};

#define RTEV_MAX_PAGE_RANGES 256
#define RTEV_MAX_PAGES_OF_RANGE 17

/* Mapped memory of the process that asks. */
struct rtev_page_range {
  __u64 address;
  __u32 bytes; /* on at most RTEV_MAX_PAGES_OF_RANGE pages */
  __u32 state; /* the answer: the latest enum rtev_page_state of its pages */
};

/* What the program look_at_pages is asked about. */
struct rtev_page_count {
  __u32 ranges; /* of the array page_ranges */
};

#define RTEV_MAX_MAPPINGS 8192 /* of a file that is probed */

/* Whether the kernel can visit all mappings of a file soon; the result of the program file_mappings. */
enum rtev_mappings {
  RTEV_MAPPINGS_FREE = 0,
  RTEV_MAPPINGS_LOCKED = 1, /* a process that maps it keeps its memory map locked: try again later */
  RTEV_MAPPINGS_MANY = 2,   /* there are more than RTEV_MAX_MAPPINGS */
};

/* A ring that may have to be saved; the value of the map "rings", by tgid. */
struct rtev_ring {
  __u64 announced_ns; /* identifies the ring among those of the process; user space chooses it for rings it found */
  __u64 inode;        /* of its file */
  __u64 length;       /* of its mapping, as requested */
  __u64 address;      /* anywhere within the mapping */
  __u32 chunks;       /* emitted so far */
  __u8 header_saved;
  __u8 names_saved;
  __u8 in_exec;                               /* the process is about to run another program */
  __u64 saved_until[RTEV_REMEMBERED_DOMAINS]; /* position in words, by domain */
};

/* Records about a ring that is not opened when its runtime unmaps it, or whose process is about to run another program.
 * They have a buffer of their own. */
enum rtev_saved_type {
  RTEV_SAVED_RING = 1,  /* the first one; payload = header of the ring file, end = bytes of the file */
  RTEV_SAVED_WORDS = 2, /* payload = words [begin, end) of a domain, counted from the creation of the ring */
  RTEV_SAVED_DOMAIN =
      3,               /* follows the words of a domain: it held [begin, end), whether or not all of them were saved */
  RTEV_SAVED_NAME = 4, /* payload = name of the user event number `begin`, as in the file */
  RTEV_SAVED_LAST = 5, /* the program writes nothing more: the next program finds the ring as saved so far */
};

#define RTEV_SAVED_HEADER_BYTES 64       /* header of a ring file */
#define RTEV_SAVED_CHUNK_BYTES 16384     /* the largest payload */
#define RTEV_SAVED_SMALL_CHUNK_BYTES 512 /* enough for most payloads: short-lived programs write little */
#define RTEV_SAVED_BUFFER_BYTES 4194304  /* size of the buffer */
#define RTEV_SAVED_RESERVED_BYTES 524288 /* part of it reserved for records without words: they say what was lost */

struct rtev_saved {
  __u64 announced_ns; /* of the ring */
  __u64 begin;
  __u64 end;
  __u32 tgid;
  __u32 uid;    /* real user id of the process */
  __u16 type;   /* enum rtev_saved_type */
  __u16 domain; /* for RTEV_SAVED_WORDS and RTEV_SAVED_DOMAIN */
  __u32 bytes;  /* of payload, which follows; bytes behind the payload are undefined */
};

/* ---- Threads and cpus ---- */

/* Roles of threads in OCaml's runtime. */
enum rtev_role {
  RTEV_ROLE_UNKNOWN = 0,
  RTEV_ROLE_MUTATOR = 1, /* runs OCaml code: main thread, domain threads, systhreads */
  RTEV_ROLE_BACKUP = 2,  /* serves stop-the-world requests while its domain blocks */
  RTEV_ROLE_TICK = 3,    /* systhreads' timer; never writes to a ring */
};

#define RTEV_HOLDS_LOCK 1u     /* thread flags: held its domain's lock when it left the cpu */
#define RTEV_TRACKED_THREAD 2u /* thread flags: belongs to a tracked process */
#define RTEV_HOLDS_NO_LOCK 4u  /* thread flags: certainly did not, so no pause of its domain is on this thread */

struct rtev_thread {
  __u32 tgid;
  __u32 tid;
  __s32 domain; /* -1: unknown */
  __s16 prio;   /* the kernel's: 120 = nice 0 */
  __u8 role;    /* enum rtev_role */
  __u8 flags;
  char comm[RTEV_COMM];
};

/* Which scheduler records are written. */
enum rtev_sched_mode {
  RTEV_SCHED_OFF = 0,
  RTEV_SCHED_OCAML = 1,
  RTEV_SCHED_ALL = 2,
  /* Those of OCaml's threads that may be in a pause, and sums of what all of them use. */
  RTEV_SCHED_SUMS = 3,
};

enum rtev_sched_type { RTEV_SWITCH = 1, RTEV_WAKEUP = 2, RTEV_USAGE = 3 };

#define RTEV_SYSCALL_NONE (-1)    /* it blocks in none: it touched memory that has to be read first */
#define RTEV_SYSCALL_UNKNOWN (-2) /* also of threads that are still runnable, or dead */

struct rtev_sched {
  __u64 time_ns;           /* CLOCK_MONOTONIC */
  __u32 type;              /* enum rtev_sched_type */
  __u32 cpu;               /* switch: where it happens; wakeup: where the woken thread ran last */
  __u32 state;             /* switch: task state of the thread that leaves, as in the kernel; 0 = still runnable */
  __u16 preempted;         /* switch: the kernel preempted the thread */
  __s16 syscall;           /* switch: number of the system call in which a tracked thread blocks; or RTEV_SYSCALL_... */
  struct rtev_thread prev; /* switch: leaves the cpu; wakeup: the waker, or the thread that the interrupt interrupted */
  struct rtev_thread next; /* switch: enters the cpu; wakeup: the woken thread */
};

#define RTEV_USAGE_DELAYS 14
#define RTEV_LONG_DELAY (1u << 31) /* the rest is the time in units of RTEV_LONG_DELAY_NS */
#define RTEV_LONG_DELAY_NS 1024

/* RTEV_USAGE: what a thread used since its last such record. As long as struct rtev_sched, and in the same buffers. */
struct rtev_usage {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u32 type;    /* RTEV_USAGE */
  __u32 tgid;
  __u32 tid;
  __u8 role; /* enum rtev_role */
  __u8 delay_count;
  __u16 pad;
  __u64 cpu_ns;
  __u32 delays[RTEV_USAGE_DELAYS]; /* ns between being runnable and entering a cpu, or RTEV_LONG_DELAY */
};

/* What the BPF programs need to know of a tracked process; the value of the map "tracked", by tgid. */
struct rtev_tracked {
  __s64 domain_self_tls; /* thread pointer + this = address of the variable domain_self; 0 = unknown */
  __s64 caml_state_tls;  /* likewise caml_state */
  __u64 backup_begin;    /* code of backup_thread_func, absolute: [begin, end); 0 = unknown */
  __u64 backup_end;
  __u64 tick_begin; /* likewise caml_thread_tick */
  __u64 tick_end;
  __u32 id_offset; /* offset of the domain's id in caml_state's block; 0 = unknown */
  __u32 slot;      /* of its ring file, or 0 */
  __u32 binary;    /* id of its binary: hits of a probe with another id are duplicates and ignored */
  /* Module id of the shared runtime's block of thread-local variables; the offsets above count from one byte before
   * the block. 0 = they count from the thread pointer. */
  __u32 tls_module;
  /* Absolute addresses of words to be read when a thread of the process leaves its cpu; 0 = nothing to read. */
  __u64 tls_module_word; /* holds tls_module */
  __u64 paused_flag;     /* runtime_events_paused: read once, reported with RTEV_PAUSED if it is set */
  /* Its ring file: address of the first domain's indices, head and tail; 0 = unknown. Bytes from the indices of one
   * domain to those of the next. log2 of the words of a part of a ring: the reader is woken when more than one was
   * filled. */
  __u64 ring_indices;
  __u32 ring_stride;
  __u32 ring_part_shift;
};

/* What is known of the ring in a slot since user space looked last. */
enum rtev_activity {
  RTEV_RAN = 1, /* a thread of its process entered or left a cpu, or was interrupted */
  /* BPF could read indices of the ring, as it does when a thread leaves its cpu or is interrupted: those of the
   * thread's domain, or of the first RTEV_FIRST_DOMAINS, if it does not know the domain. */
  RTEV_CHECKED = 2,
  RTEV_CHECKED_FIRST = 4,
  RTEV_FILLS_UP = 8,   /* more than one part of a domain's ring was filled since the ring was read */
  RTEV_PART_FULL = 16, /* at least one part was */
};

#define RTEV_FIRST_DOMAINS 12

/* What wakes the reader, each besides those with lower values. */
enum rtev_wakeup {
  RTEV_WAKE_NEVER = 0,
  RTEV_WAKE_IF_FULL = 1,   /* part of a ring */
  RTEV_WAKE_IF_ACTIVE = 2, /* any process with a ring */
};

/* The process that runs on a cpu. A cache line for each cpu, against false sharing. */
struct rtev_cpu_activity {
  __u32 slot; /* of its ring file, or 0 */
} __attribute__((aligned(64)));

/* Scheduler records of one cpu that found no room in its buffer. A cache line for each cpu. */
struct rtev_sched_drops {
  __u64 switches; /* since the start, like all counts */
  __u64 wakeups;
  __u64 taken;    /* written by user space: the sum of both when it last read them */
  __u64 first_ns; /* CLOCK_MONOTONIC: of the first and the last drop since then */
  __u64 last_ns;
} __attribute__((aligned(64)));

/* Counters of what was lost, one set per cpu. */
enum rtev_stat {
  RTEV_STAT_SWITCH_DROPPED = 0, /* no room in the cpu's buffer: counted in struct rtev_sched_drops */
  RTEV_STAT_WAKEUP_DROPPED = 1, /* likewise */
  RTEV_STAT_EXEC_DROPPED = 2,   /* no room in the lifecycle buffer, by type of record */
  RTEV_STAT_FORK_DROPPED = 3,
  RTEV_STAT_EXIT_DROPPED = 4,
  RTEV_STAT_RING_DROPPED = 5,
  RTEV_STAT_PROBE_DROPPED = 6,
  RTEV_STAT_UNTRACKED = 7,    /* no room in a map of processes or threads: what they do is not reported */
  RTEV_STAT_SAVE_DROPPED = 8, /* part of a ring that should have been saved and was not: no room, or not readable */
  RTEV_STAT_COUNT = 9,
};

/* ---- Switching events on ---- */

#define RTEV_MAX_WANTED 4096             /* processes whose events are to be switched on */
#define RTEV_MAX_WATCHED 8192            /* processes whose events are on: RTEV_CHANGED_... is reported */
#define RTEV_RUNNING_INTERVAL_NS 1000000 /* between two records of a process */

/* The value of the map "wanted", by tgid. */
struct rtev_wanted {
  __u64 not_before_ns; /* CLOCK_MONOTONIC: until then nothing is reported */
};

/* The value of the map "watched", by tgid. */
struct rtev_watched {
  __u32 user;       /* effective */
  __u32 may_filter; /* 1: RTEV_CHANGED_FILTER is not reported */
  /* As they were when BPF first saw the process; 0: it has not yet. */
  __u64 root;   /* its root directory */
  __u64 mount;  /* that this is of */
  __u64 mounts; /* its mount namespace */
};

#define RTEV_CHANGED_USER 1
#define RTEV_CHANGED_ROOT 2
#define RTEV_CHANGED_MOUNTS 3
#define RTEV_CHANGED_FILTER 4 /* of system calls: it has one now */
#define RTEV_CHANGED_FILES 5  /* few more can be opened */

/* A thread of a wanted process enters a cpu, was interrupted on it, or dies by a signal; or one of a watched process
 * has changed. */
struct rtev_running {
  __u64 time_ns;    /* CLOCK_MONOTONIC */
  __u64 start_time; /* of the process: ns of CLOCK_BOOTTIME */
  __u64 thread_pointer;
  __u32 tgid;
  __u32 tid;
  __u32 signal;   /* that it dies by, or 0 */
  __u32 dumpable; /* 1: its user may read its memory */
  __u32 changed;  /* RTEV_CHANGED_..., or 0 */
  __u32 locks;    /* 1: what it maps is locked in memory, see mlockall(2) */
};

/* What memory.bpf.c says of a process. */
struct rtev_group_memory {
  __u64 start_time; /* of the process: ns of CLOCK_BOOTTIME */
  __u64 pages_left; /* of its control group and those above it, the least one */
};

#define RTEV_NO_LIMIT (~0ull)

/* ---- Ring-less tracing: events of programs whose events are off ---- */

#define RTEV_MAX_RINGLESS_PROCESSES 16384 /* probed at the same time */
#define RTEV_MAX_RINGLESS_BINARIES 4096   /* likewise */
#define RTEV_RINGLESS_WINDOW_NS 100000000 /* over which the events of a process are counted for its limit */

/* Pauses of a program beyond the limit: the first one, then twice as long each time, up to the longest. After this many
 * times its last pause within the limit, it begins with the shortest again. */
#define RTEV_RINGLESS_MIN_PAUSE_NS 1000000000
#define RTEV_RINGLESS_MAX_PAUSE_NS 32000000000
#define RTEV_RINGLESS_PAUSE_RESET 4

/* Functions of OCaml's runtime that write events. */
enum rtev_emitter {
  RTEV_EMIT_BEGIN = 0,     /* caml_ev_begin(phase) */
  RTEV_EMIT_END = 1,       /* caml_ev_end(phase) */
  RTEV_EMIT_COUNTER = 2,   /* caml_ev_counter(counter, value) */
  RTEV_EMIT_LIFECYCLE = 3, /* caml_ev_lifecycle(event, datum) */
  RTEV_EMITTERS = 4,
};

/* What the probes need to know of a binary; the value of the map "binaries", by binary id. */
struct rtev_ringless_binary {
  __s64 domain_self_tls; /* as in struct rtev_tracked */
  __s64 caml_state_tls;
  /* By emitter: address of the runtime's flag "events are enabled" minus the probed address. 0: the probed instruction
   * is the branch on that flag, and the processor's zero flag holds the result of the test. */
  __s64 enabled[RTEV_EMITTERS];
  /* By emitter, for a shared library: address of the word that holds its TLS module id minus the probed address (struct
   * rtev_tracked has the id itself). 0: for a program. */
  __s64 tls_module_word[RTEV_EMITTERS];
  __u32 id_offset;
  __u32 round; /* counts how often the probes were attached; the first round is 1 */
};

/* What the probes remember of a process from its first hit on; the value of the map "processes", by tgid. */
struct rtev_ringless_process {
  __u64 image;         /* identifies the program among those that run under this tgid one after the other */
  __u64 since_ns;      /* of the first hit */
  __u64 window_ns;     /* begin of the window in which hits are counted */
  __u64 pause_ns;      /* length of its last pause */
  __u64 resume_ns;     /* end of its last pause */
  __u32 hits;          /* in this window */
  __u32 lost_words;    /* not reported yet */
  __u32 binary;        /* one file can be probed twice, through two overlay mounts: hits with another id are ignored */
  __u32 limited_round; /* while it pauses: round of its binary in which it exceeded the limit; otherwise 0 */
  __u32 ignored;       /* it has a ring, or user space does not want its events */
  __u32 pad;
};

enum rtev_probed_type {
  RTEV_PROBED_EVENT = 1,
  RTEV_PROBED_LIMITED = 2, /* an event that exceeds the limit: the process pauses, until the next round at most */
  RTEV_PROBED_END = 3,     /* no event: the process ended with lost_words that were not reported yet */
  RTEV_PROBED_RESUMED = 4, /* the first event after a pause */
};

struct rtev_probed {
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u64 value;   /* the function's second argument, if it has one */
  __u32 tgid;
  __u32 binary;
  __u32 lost_words; /* of events right before this one that found no room: the words they would take in a ring */
  __u16 id;         /* the function's first argument */
  __u16 domain;
  __u8 type;    /* enum rtev_probed_type */
  __u8 emitter; /* enum rtev_emitter */
  __u8 pad[6];
};

#endif
