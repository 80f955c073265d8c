// SPDX-License-Identifier: MIT
// A small traced world for tests of sinks: one process with a ring, and batches made by hand.
#pragma once

#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "rtev/names.hpp"
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
  explicit World(ProcessInfo info = default_info()) : process(registry.add_process(std::move(info))) {
    slot = add_ring(process);
  }

  static ProcessInfo default_info() {
    ProcessInfo info;
    info.pid = 4242;
    info.ns_pid = 7;
    info.start_ticks = 99;
    info.exec_generation = 1;
    info.comm = "server";
    info.exe = "/usr/bin/server";
    info.version = "5.3";
    info.family_source = FamilySource::symbols;
    info.ring = RingState::active;
    info.ring_path = "/run/4242.events";
    return info;
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
  /// Several events: times, each with a begin (>) or end (<) of a phase of the 5.3+ family, the begin ([) or end (]) of
  /// a user span by its id, a lifecycle event (!) or a loss of 100 words since 10 ns before (?); and a domain that is
  /// not 0 (@). "10 >major 20 [1@2 30 ]1@2 40 <major 50 ?". Times count from `base_ns`.
  Events& add(const std::string& script, std::uint64_t base_ns = 0) {
    std::istringstream in{script};
    std::uint64_t time = 0;
    for (std::string word; in >> time >> word;) {
      time += base_ns;
      const std::size_t at = word.find('@');
      const std::string name = word.substr(1, at - 1);
      const auto domain = static_cast<std::uint16_t>(at == std::string::npos ? 0 : std::stoi(word.substr(at + 1)));
      if (word[0] == '!') {
        std::uint16_t id = 0;
        while (lifecycle_name(id) != name) ++id;
        add(time, EventKind::lifecycle, id, 0, domain);
      } else if (word[0] == '?') {
        add_record(time, EventKind::lost, Loss{.words = 100, .from_ns = time - 10, .to_ns = time}, 0, domain);
      } else if (word[0] == '[' || word[0] == ']') {
        const EventKind kind = word[0] == '[' ? EventKind::user_begin : EventKind::user_end;
        add(time, kind, static_cast<std::uint16_t>(std::stoi(name)), 0, domain);
      } else {
        const auto id = name[0] == '#' ? static_cast<Phase>(std::stoi(name.substr(1)))
                                       : find_phase(Family::since_5_3, name).value();
        add(time, word[0] == '>' ? EventKind::begin : EventKind::end, static_cast<std::uint16_t>(id), 0, domain);
      }
    }
    return *this;
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
