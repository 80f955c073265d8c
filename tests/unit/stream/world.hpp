// SPDX-License-Identifier: MIT
// A small traced world for tests of sinks: one process with a ring, and batches made by hand.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "stream/sink.hpp"

namespace rtev::test {

/// Strings that must never come out as they are.
inline std::string all_bytes() {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  return bytes;
}
inline const std::vector<std::string>& hostile_strings() {
  static const std::vector<std::string> strings = {
      all_bytes(),
      "\x1b[2J\x1b]0;owned\x07",
      "\x9b"
      "31m",
      "\xc2\x9b"
      "31m",
      "line\nbreak\r\ttab",
      "\xe2\x82",
      "\xf0\x9f\x98",
      "\xc0\xaf",
      "\xe0\x80\x80",
      "\xed\xa0\x80",
      "\xf4\x90\x80\x80",
      "\xff\xfe",
      "quote\" backslash\\",
      "\xe2\x80\xae"
      "txt.exe",
      std::string("nul\0inside", 10),
      "\x7f",
  };
  return strings;
}

class World {
 public:
  explicit World(ProcessInfo facts = default_facts()) : process(registry.add_process(std::move(facts))) {
    slot = add_ring(process);
  }

  static ProcessInfo default_facts() {
    ProcessInfo facts;
    facts.pid = 4242;
    facts.ns_pid = 7;
    facts.start_ticks = 99;
    facts.exec_generation = 1;
    facts.comm = "server";
    facts.exe = "/usr/bin/server";
    facts.version = "5.3";
    facts.family_source = FamilySource::symbols;
    facts.ring = RingState::active;
    facts.ring_path = "/run/4242.events";
    return facts;
  }

  std::uint32_t add_ring(ProcessIndex owner) {
    return registry.add_ring({.process = owner, .domains = 128, .user_event_name = [this](std::uint16_t id) {
                                const auto found = user_names.find(id);
                                return found == user_names.end() ? std::string_view{} : found->second;
                              }});
  }

  Registry registry;
  ProcessIndex process;
  std::uint32_t slot = 0;
  std::map<std::uint16_t, std::string> user_names;
};

/// Collects events and payloads; batch() is valid until the next add.
class Events {
 public:
  explicit Events(std::uint32_t slot) : slot_(slot) {}

  Events& add(std::uint64_t time, EventKind kind, std::uint16_t id = 0, std::uint64_t value = 0,
              std::uint16_t domain = 0, std::uint8_t flags = 0) {
    events_.push_back({time, value, Source{slot_, domain}.pack(), id, kind, flags});
    return *this;
  }
  Events& add(std::uint64_t time, Lifecycle id, std::uint64_t value = 0, std::uint16_t domain = 0) {
    return add(time, EventKind::lifecycle, static_cast<std::uint16_t>(id), value, domain);
  }
  Events& add_bytes(std::uint64_t time, EventKind kind, std::string_view bytes, std::uint16_t id = 0,
                    std::uint16_t domain = 0) {
    add(time, kind, id, Batch::payload_ref(payloads_.size(), bytes.size()), domain);
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    payloads_.insert(payloads_.end(), first, first + bytes.size());
    return *this;
  }
  template <typename Record>
  Events& add_record(std::uint64_t time, EventKind kind, const Record& record, std::uint16_t id = 0,
                     std::uint16_t domain = 0) {
    return add_bytes(time, kind, {reinterpret_cast<const char*>(&record), sizeof record}, id, domain);
  }
  Events& late() {
    events_.back().flags |= flag_late;
    return *this;
  }

  Batch batch() const { return {events_, payloads_}; }

 private:
  std::uint32_t slot_;
  std::vector<Event> events_;
  std::vector<std::byte> payloads_;
};

inline Thread make_thread(std::int32_t pid, std::int32_t tid, std::string_view comm, bool tracked) {
  Thread thread{};
  thread.pid = pid;
  thread.tid = tid;
  thread.domain = -1;
  thread.priority = 120;
  thread.tracked = tracked;
  std::memcpy(thread.comm_bytes.data(), comm.data(), std::min(comm.size(), thread.comm_bytes.size()));
  return thread;
}

/// Ids of the 5.3+ family.
inline constexpr std::uint16_t phase_minor = 11, phase_minor_local_roots = 12, phase_major = 6, phase_wait = 42,
                               counter_minor_allocated = 5, unknown_phase = 4000;

}  // namespace rtev::test
