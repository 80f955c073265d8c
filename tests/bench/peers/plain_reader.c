// SPDX-License-Identifier: MIT
// A plain consumer of runtime events: OCaml's C reader, which polls at an interval and writes each event to a file.
#define _GNU_SOURCE
#define CAML_INTERNALS
#include <caml/mlvalues.h>
#include <caml/runtime_events_consumer.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

// As in c_reader.c.
extern void caml_runtime_events_set_alloc(struct caml_runtime_events_cursor*, int (*)(int, void*, uint64_t, uint64_t*));
extern void caml_runtime_events_set_user_unit(struct caml_runtime_events_cursor*,
                                              int (*)(int, void*, int64_t, uintnat, char*));
extern void caml_runtime_events_set_user_span(struct caml_runtime_events_cursor*,
                                              int (*)(int, void*, int64_t, uintnat, char*, int));
extern void caml_runtime_events_set_user_int(struct caml_runtime_events_cursor*,
                                             int (*)(int, void*, int64_t, uintnat, char*, uint64_t));
extern void caml_runtime_events_set_user_custom(struct caml_runtime_events_cursor*,
                                                int (*)(int, void*, int64_t, uintnat, char*, uintnat, uint64_t*));

enum kind {
  kind_begin,
  kind_end,
  kind_counter,
  kind_alloc,
  kind_lifecycle,
  kind_unit,
  kind_span,
  kind_int,
  kind_custom
};

struct record {
  uint64_t time;
  uint64_t value;
  uint32_t domain;
  uint16_t id;
  uint16_t kind;
};

static FILE* file;
static uint64_t events, lost_words;

static int put(int domain, uint64_t time, enum kind kind, uint64_t id, uint64_t value) {
  const struct record record = {time, value, (uint32_t)domain, (uint16_t)id, (uint16_t)kind};
  ++events;
  return fwrite_unlocked(&record, sizeof record, 1, file) == 1;
}

static int on_begin(int domain, void* data, uint64_t time, ev_runtime_phase phase) {
  (void)data;
  return put(domain, time, kind_begin, phase, 0);
}
static int on_end(int domain, void* data, uint64_t time, ev_runtime_phase phase) {
  (void)data;
  return put(domain, time, kind_end, phase, 0);
}
static int on_counter(int domain, void* data, uint64_t time, ev_runtime_counter counter, uint64_t value) {
  (void)data;
  return put(domain, time, kind_counter, counter, value);
}
static int on_alloc(int domain, void* data, uint64_t time, uint64_t* buckets) {
  (void)data;
  return put(domain, time, kind_alloc, 0, buckets[0]);
}
static int on_lifecycle(int domain, void* data, int64_t time, ev_lifecycle lifecycle, int64_t datum) {
  (void)data;
  return put(domain, (uint64_t)time, kind_lifecycle, lifecycle, (uint64_t)datum);
}
static int on_unit(int domain, void* data, int64_t time, uintnat id, char* name) {
  (void)data, (void)name;
  return put(domain, (uint64_t)time, kind_unit, id, 0);
}
static int on_span(int domain, void* data, int64_t time, uintnat id, char* name, int span) {
  (void)data, (void)name;
  return put(domain, (uint64_t)time, kind_span, id, (uint64_t)span);
}
static int on_int(int domain, void* data, int64_t time, uintnat id, char* name, uint64_t value) {
  (void)data, (void)name;
  return put(domain, (uint64_t)time, kind_int, id, value);
}
static int on_custom(int domain, void* data, int64_t time, uintnat id, char* name, uintnat words, uint64_t* bytes) {
  (void)data, (void)name, (void)words;
  return put(domain, (uint64_t)time, kind_custom, id, bytes[0]);
}
static int on_lost(int domain, void* data, int words) {
  (void)domain, (void)data;
  lost_words += (uint64_t)words;
  return 1;
}

static volatile sig_atomic_t stopped;

static void stop(int signal_number) {
  (void)signal_number;
  stopped = 1;
}

// Says "ready", polls until SIGTERM, then says "EVENTS LOST-WORDS". False if the ring or the file cannot be opened.
value bench_plain_reader(value directory, value pid, value interval_us, value path) {
  struct sigaction action = {.sa_handler = stop};
  sigaction(SIGTERM, &action, NULL);
  struct caml_runtime_events_cursor* cursor;
  file = fopen(String_val(path), "we");
  if (file == NULL || caml_runtime_events_create_cursor(String_val(directory), Int_val(pid), &cursor) != E_SUCCESS)
    return Val_false;
  caml_runtime_events_set_runtime_begin(cursor, on_begin);
  caml_runtime_events_set_runtime_end(cursor, on_end);
  caml_runtime_events_set_runtime_counter(cursor, on_counter);
  caml_runtime_events_set_alloc(cursor, on_alloc);
  caml_runtime_events_set_lifecycle(cursor, on_lifecycle);
  caml_runtime_events_set_user_unit(cursor, on_unit);
  caml_runtime_events_set_user_span(cursor, on_span);
  caml_runtime_events_set_user_int(cursor, on_int);
  caml_runtime_events_set_user_custom(cursor, on_custom);
  caml_runtime_events_set_lost_events(cursor, on_lost);
  const long us = Long_val(interval_us);
  const struct timespec pause = {us / 1000000, us % 1000000 * 1000};
  puts("ready");
  fflush(stdout);
  while (!stopped) {
    caml_runtime_events_read_poll(cursor, NULL, 0, NULL);
    nanosleep(&pause, NULL);
  }
  fclose(file);
  caml_runtime_events_free_cursor(cursor);
  printf("%llu %llu\n", (unsigned long long)events, (unsigned long long)lost_words);
  fflush(stdout);
  return Val_true;
}
