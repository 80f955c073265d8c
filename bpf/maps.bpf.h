/* SPDX-License-Identifier: MIT */
/* What the BPF programs share: maps, options, and how a lifecycle record is written. All maps are defined in
 * lifecycle.bpf.c, which must be linked first: bpftool's linker (libbpf 1.1) misplaces objects that it sees used before
 * it sees them defined. */
#ifndef RTEV_MAPS_BPF_H
#define RTEV_MAPS_BPF_H

/* The kernel's types come first. */
/* clang-format off */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
/* clang-format on */

#include "records.h"

#define EBUSY 16
#define EEXIST 17

/* A function that the verifier looks at once, knowing nothing of its arguments, and not on each way to its calls. So a
 * pointer has to be tested for NULL in it, and the result is a number. Not for functions of several objects that are
 * linked. */
#define GLOBAL_FUNCTION __attribute__((noinline))

#define RTEV_MAX_FOLLOWED 32768            /* processes followed at the same time */
#define RTEV_MAX_THREADS 65536             /* threads of tracked processes */
#define RTEV_LIFECYCLE_BUFFER_BYTES 262144 /* about 3000 records, or 1000 of rings */

/* OCaml processes, by tgid. User space adds them, and so does the program that sees a ring being mapped; removed when
 * the process exits or execs. */
struct tracked_map {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_MAX_TRACKED);
  __uint(map_flags, BPF_F_NO_PREALLOC); /* elements are added only in contexts that may allocate */
  __type(key, __u32);
  __type(value, struct rtev_tracked);
};
extern struct tracked_map tracked SEC(".maps");

/* CMD of "-- CMD" and its descendants, by tgid. */
struct followed_map {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_MAX_FOLLOWED);
  __type(key, __u32);
  __type(value, __u8);
};
extern struct followed_map followed SEC(".maps");

/* A thread of a tracked process. */
struct thread_state {
  __s32 domain; /* -1: unknown */
  __u8 role;    /* enum rtev_role */
  __u8 flags;   /* when it last left its cpu */
  __u8 tries;   /* attempts to find the role */
  __u8 pad;
  __u32 user;      /* its user id, as counted in threads_of_users */
  __u32 ring_part; /* of its domain's ring that was being filled when the ring was checked last */
};

/* Threads, by tid. Preallocated, and not task storage: elements are added with a run queue locked. Before Linux 6.4
 * task storage allocates in a way that can wake a thread there, which would deadlock on that lock. */
struct threads_map {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_MAX_THREADS);
  __type(key, __u32);
  __type(value, struct thread_state);
};
extern struct threads_map threads SEC(".maps");

/* Threads in the map, by user: the rest of the map is for others. Users with the same index share. */
#define MAX_THREADS_OF_USER (RTEV_MAX_THREADS / 4 * 3)
#define THREAD_COUNTS 4096
extern __u32 threads_of_users[THREAD_COUNTS];

#define RTEV_MAX_USAGES 16384 /* threads whose usage is summed up */

/* What a thread used and was not reported yet. Times in ns, of CLOCK_MONOTONIC. */
struct thread_usage {
  __u64 since_ns; /* when it entered its cpu or was seen there last; or when it was woken, or left */
  __u64 cpu_ns;
  __u64 reported_ns;
  __s32 domain; /* as its last record says */
  __u8 role;    /* enum rtev_role, likewise */
  __u8 is_on_cpu;
  __u8 waits;          /* for a cpu */
  __u8 is_woken_early; /* it was woken while it was on a cpu still */
  __u8 is_silent;      /* it left its cpu without a record */
  __u8 delay_count;
  __u8 pad[2];
  __u32 delays[RTEV_USAGE_DELAYS];
};

/* Of a thread that was not looked at yet. */
static __always_inline __u8 first_role(struct task_struct* task) {
  return task->pid == task->tgid ? RTEV_ROLE_MUTATOR : RTEV_ROLE_UNKNOWN;
}

/* By tid. As small as can be unless sums are wanted. */
struct usages_map {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, RTEV_MAX_USAGES);
  __type(key, __u32);
  __type(value, struct thread_usage);
};
extern struct usages_map usages SEC(".maps");

struct usage_scratch_map {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct thread_usage);
};
extern struct usage_scratch_map usage_scratch SEC(".maps"); /* zero, but for what usage_of() sets */

/* A buffer for each cpu, or for several cpus. Created by user space. */
struct sched_buffer {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 65536);
};
struct sched_buffers_map {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, 1);
  __type(key, __u32);
  __array(values, struct sched_buffer);
};
extern struct sched_buffers_map sched_buffers SEC(".maps");

extern const volatile __u32 sched_mode; /* enum rtev_sched_mode */
extern const volatile __u32 sched_buffer_count;
extern const volatile __u32 sched_wakeup_shift; /* the reader is woken each time 1 << this bytes more wait */

/* Separate from scheduler records and small: a burst of those cannot push out an exec. */
struct lifecycle_map {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, RTEV_LIFECYCLE_BUFFER_BYTES);
};
extern struct lifecycle_map lifecycle SEC(".maps");

/* What was lost, by enum rtev_stat. */
struct stats_map {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, RTEV_STAT_COUNT);
  __type(key, __u32);
  __type(value, __u64);
};
extern struct stats_map stats SEC(".maps");

/* Records that one process, and all processes of a user, may cause in a window of time, as a price: the buffer and its
 * reader are for all users. A user may start hundreds of programs at once. */
#define RECORD_WINDOW_NS 10000000
#define RECORD_BUDGET 512
#define USER_RECORD_WINDOW_NS 100000000
#define USER_RECORD_BUDGET 8192
#define RING_PRICE 16 /* a ring is opened, a probe's record is only read */
#define PROBE_PRICE 1
#define PROBE_PRICE_OF_USER 4 /* a program of many domains passes its probes with all of them at once */
/* Probes leave the rest of the budget to rings and starts: one program that pauses all the time would use it up. */
#define USER_PROBE_BUDGET (USER_RECORD_BUDGET / 2)
#define START_PRICE 8 /* of exec, and of fork together with the exit */

struct record_budgets_map {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, struct rtev_record_budget);
};
extern struct record_budgets_map record_budgets SEC(".maps");
extern struct record_budgets_map user_record_budgets SEC(".maps"); /* by user */

extern const volatile bool follow_only; /* report only followed processes */

/* Atomic although each cpu has its own counters: a uprobe's program can be preempted by another one. */
static __always_inline void count_drop(__u32 stat) {
  __u64* drops = bpf_map_lookup_elem(&stats, &stat);
  if (drops) __sync_fetch_and_add(drops, 1);
}

/* The same for an announcement of the current process, which user space names if it has the most of them. */
static __always_inline void count_dropped_announcement(__u32 stat) {
  count_drop(stat);
  __u32 tgid = bpf_get_current_pid_tgid() >> 32;
  struct rtev_record_budget* budget = bpf_map_lookup_elem(&record_budgets, &tgid);
  if (!budget) return;
  __sync_fetch_and_add(&budget->dropped, 1);
  bpf_get_current_comm(budget->comm, sizeof(budget->comm));
}

/* Takes the result of adding a process or thread to a map. */
static __always_inline void count_untracked(long error) {
  if (error && error != -EEXIST) count_drop(RTEV_STAT_UNTRACKED);
}

static __always_inline __u32* threads_of(__u32 user) {
  return &threads_of_users[user % THREAD_COUNTS];
}

static __always_inline void forget_thread(__u32 tid) {
  struct thread_state* state = bpf_map_lookup_elem(&threads, &tid);
  if (!state) return;
  __u32 user = state->user;
  if (!bpf_map_delete_elem(&threads, &tid)) __sync_fetch_and_add(threads_of(user), -1);
}

static __always_inline bool is_followed(__u32 tgid) {
  return bpf_map_lookup_elem(&followed, &tgid) != NULL;
}

/* NULL if the descriptor is not open. */
static __always_inline struct file* open_file(struct task_struct* task, __u32 fd) {
  struct fdtable* table = BPF_CORE_READ(task, files, fdt);
  if (fd >= BPF_CORE_READ(table, max_fds)) return NULL;
  struct file** files = BPF_CORE_READ(table, fd);
  struct file* file = NULL;
  return bpf_probe_read_kernel(&file, sizeof(file), files + fd) ? NULL : file;
}

/* The pid in the innermost pid namespace of the process. */
static __always_inline __u32 namespace_pid(struct task_struct* leader) {
  struct pid* pid = BPF_CORE_READ(leader, thread_pid);
  __u32 level = BPF_CORE_READ(pid, level), number = 0;
  /* One for each level of namespaces, beginning with the number. */
  void* numbers = __builtin_preserve_access_index(&pid->numbers[0]);
  bpf_probe_read_kernel(&number, sizeof(number), numbers + level * bpf_core_type_size(struct upid));
  return number;
}

/* Fills in what all types of record say about the process of `task`. */
static __always_inline void fill_lifecycle(struct rtev_lifecycle* record, struct task_struct* task, __u32 type) {
  struct task_struct* leader = BPF_CORE_READ(task, group_leader);
  record->time_ns = bpf_ktime_get_ns();
  record->start_time = BPF_CORE_READ(leader, start_boottime);
  record->detail = 0;
  record->type = type;
  record->tgid = BPF_CORE_READ(task, tgid);
  record->tid = BPF_CORE_READ(task, pid);
  record->peer = 0;
  record->flags = is_followed(record->tgid) ? RTEV_FOLLOWED : 0;
  record->max_rss_pages = 0;
  record->start_code = BPF_CORE_READ(task, mm, start_code);
  record->uid = BPF_CORE_READ(leader, real_cred, uid.val);
  record->ns_pid = namespace_pid(leader);
  bpf_core_read(record->comm, sizeof(record->comm), &leader->comm);
}

/* What is refused is not spent. The limit is exceeded at most by what the cpus spend at once. */
static __always_inline bool spend_of(void* budgets, __u32 key, __u32 price, __u32 limit, __u64 window_ns) {
  __u64 now = bpf_ktime_get_ns();
  struct rtev_record_budget* budget = bpf_map_lookup_elem(budgets, &key);
  if (!budget) {
    struct rtev_record_budget fresh = {.window_ns = now, .spent = price};
    bpf_map_update_elem(budgets, &key, &fresh, BPF_ANY);
    return true;
  }
  if (now - budget->window_ns > window_ns) {
    budget->window_ns = now;
    budget->spent = price;
    return true;
  }
  if (budget->spent + price > limit) return false;
  __sync_fetch_and_add(&budget->spent, price);
  return true;
}

/* False if the user of the current process has used up its budget. */
static __always_inline bool spend_as_user(__u32 price, __u32 limit) {
  return spend_of(&user_record_budgets, (__u32)bpf_get_current_uid_gid(), price, limit, USER_RECORD_WINDOW_NS);
}

/* False if the current process has used up its budget. */
static __always_inline bool spend_as_process(__u32 price) {
  return spend_of(&record_budgets, bpf_get_current_pid_tgid() >> 32, price, RECORD_BUDGET, RECORD_WINDOW_NS);
}

/* How full the buffer may be for a type of record: processes can write those of rings and probes as fast as they like,
 * which must not push out the records of exec, fork and exit. */
static __always_inline bool has_lifecycle_room(__u32 type) {
  __u64 used = bpf_ringbuf_query(&lifecycle, BPF_RB_AVAIL_DATA);
  switch (type) {
    case RTEV_RING:
      return used <= RTEV_LIFECYCLE_BUFFER_BYTES / 4 * 3;
    case RTEV_PROBE:
    case RTEV_PAUSED:
      return used <= RTEV_LIFECYCLE_BUFFER_BYTES / 2;
    default:
      return true;
  }
}

/* Reserves and fills in a record. NULL if there is no room, which is counted under `stat`. */
static __always_inline struct rtev_lifecycle* begin_lifecycle(struct task_struct* task, __u32 type, __u32 stat) {
  struct rtev_lifecycle* record = NULL;
  if (has_lifecycle_room(type)) record = bpf_ringbuf_reserve(&lifecycle, sizeof(*record), 0);
  if (!record) {
    if (type == RTEV_PROBE)
      count_dropped_announcement(stat);
    else
      count_drop(stat);
    return NULL;
  }
  fill_lifecycle(record, task, type);
  return record;
}

/* Wakes the reader for each record. They are rare, and urgent: the shortest programs have their ring for 2 ms. */
static __always_inline void submit_lifecycle(struct rtev_lifecycle* record) {
  bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

#endif
