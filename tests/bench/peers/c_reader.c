// SPDX-License-Identifier: MIT
// OCaml's C reader with minimal callbacks that see every event, and system functions for the peer program.
#define _GNU_SOURCE
#define CAML_INTERNALS
#include <caml/alloc.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/runtime_events_consumer.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

// The library defines these; OCaml 5.3's header declares different ones.
extern void caml_runtime_events_set_alloc(struct caml_runtime_events_cursor*, int (*)(int, void*, uint64_t, uint64_t*));
extern void caml_runtime_events_set_user_unit(struct caml_runtime_events_cursor*,
                                              int (*)(int, void*, int64_t, uintnat, char*));
extern void caml_runtime_events_set_user_span(struct caml_runtime_events_cursor*,
                                              int (*)(int, void*, int64_t, uintnat, char*, int));
extern void caml_runtime_events_set_user_int(struct caml_runtime_events_cursor*,
                                             int (*)(int, void*, int64_t, uintnat, char*, uint64_t));
extern void caml_runtime_events_set_user_custom(struct caml_runtime_events_cursor*,
                                                int (*)(int, void*, int64_t, uintnat, char*, uintnat, uint64_t*));

// Kept by the callbacks: the minimum to check that readers agree.
struct seen {
  uint64_t events;
  uint64_t time_sum;
  uint64_t lost_words;
};

static inline int see(void* data, uint64_t time) {
  struct seen* seen = data;
  ++seen->events;
  seen->time_sum += time;
  return 1;
}

static int on_phase(int domain, void* data, uint64_t time, ev_runtime_phase phase) {
  (void)domain, (void)phase;
  return see(data, time);
}
static int on_counter(int domain, void* data, uint64_t time, ev_runtime_counter counter, uint64_t value) {
  (void)domain, (void)counter, (void)value;
  return see(data, time);
}
static int on_alloc(int domain, void* data, uint64_t time, uint64_t* buckets) {
  (void)domain, (void)buckets;
  return see(data, time);
}
static int on_lifecycle(int domain, void* data, int64_t time, ev_lifecycle lifecycle, int64_t datum) {
  (void)domain, (void)lifecycle, (void)datum;
  return see(data, (uint64_t)time);
}
static int on_unit(int domain, void* data, int64_t time, uintnat id, char* name) {
  (void)domain, (void)id, (void)name;
  return see(data, (uint64_t)time);
}
static int on_span(int domain, void* data, int64_t time, uintnat id, char* name, int span) {
  (void)domain, (void)id, (void)name, (void)span;
  return see(data, (uint64_t)time);
}
static int on_int(int domain, void* data, int64_t time, uintnat id, char* name, uint64_t value) {
  (void)domain, (void)id, (void)name, (void)value;
  return see(data, (uint64_t)time);
}
static int on_custom(int domain, void* data, int64_t time, uintnat id, char* name, uintnat words, uint64_t* bytes) {
  (void)domain, (void)id, (void)name, (void)words, (void)bytes;
  return see(data, (uint64_t)time);
}
static int on_lost(int domain, void* data, int words) {
  (void)domain;
  ((struct seen*)data)->lost_words += (unsigned)words;
  return 1;
}

static struct caml_runtime_events_cursor* cursor;
static struct seen seen;

value bench_c_open(value directory, value pid) {
  if (caml_runtime_events_create_cursor(String_val(directory), Int_val(pid), &cursor) != E_SUCCESS)
    caml_failwith("cannot open the ring");
  caml_runtime_events_set_runtime_begin(cursor, on_phase);
  caml_runtime_events_set_runtime_end(cursor, on_phase);
  caml_runtime_events_set_runtime_counter(cursor, on_counter);
  caml_runtime_events_set_alloc(cursor, on_alloc);
  caml_runtime_events_set_lifecycle(cursor, on_lifecycle);
  caml_runtime_events_set_user_unit(cursor, on_unit);
  caml_runtime_events_set_user_span(cursor, on_span);
  caml_runtime_events_set_user_int(cursor, on_int);
  caml_runtime_events_set_user_custom(cursor, on_custom);
  caml_runtime_events_set_lost_events(cursor, on_lost);
  return Val_unit;
}

value bench_c_close(value unit) {
  caml_runtime_events_free_cursor(cursor);
  return unit;
}

// The number of events seen by this poll; -1 on failure. The result of the poll itself does not count user events of
// type unit.
value bench_c_poll(value unit) {
  (void)unit;
  const uint64_t before = seen.events;
  if (caml_runtime_events_read_poll(cursor, &seen, 0, NULL) != E_SUCCESS) return Val_int(-1);
  return Val_long(seen.events - before);
}

value bench_c_events(value unit) {
  (void)unit;
  return Val_long(seen.events);
}
value bench_c_time_sum(value unit) {
  (void)unit;
  return Val_long(seen.time_sum);
}
value bench_c_lost(value unit) {
  (void)unit;
  return Val_long(seen.lost_words);
}

value bench_cpu_ns(value unit) {
  (void)unit;
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Val_long(now.tv_sec * 1000000000L + now.tv_nsec);
}

value bench_sleep_us(value microseconds) {
  const long us = Long_val(microseconds);
  const struct timespec pause = {us / 1000000, us % 1000000 * 1000};
  if (us > 0) nanosleep(&pause, NULL);
  return Val_unit;
}

static volatile sig_atomic_t stopped;

static void stop(int signal_number) {
  (void)signal_number;
  stopped = 1;
}

value bench_stop_at_sigterm(value unit) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = stop;
  sigaction(SIGTERM, &action, NULL);
  return unit;
}

value bench_stopped(value unit) {
  (void)unit;
  return Val_bool(stopped);
}

// Faults in the pages of every mapped ring file, so that the first poll has no page faults.
value bench_touch_rings(value unit) {
  FILE* maps = fopen("/proc/self/maps", "re");
  char line[4096];
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long begin = 0, end = 0;
    if (strstr(line, ".events\n") != NULL && sscanf(line, "%lx-%lx", &begin, &end) == 2)
      madvise((void*)begin, end - begin, MADV_POPULATE_READ);
  }
  if (maps != NULL) fclose(maps);
  return unit;
}
