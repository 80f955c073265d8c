// SPDX-License-Identifier: MIT
#include "recording/jsonl_fields.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace rtev::jsonl {
namespace {

/// The value of an enumeration that goes by a name; there are `count` of them, from 0 on.
template <typename Enum>
std::optional<Enum> named(std::string_view name, int count) {
  for (int value = 0; value < count; ++value) {
    if (to_string(static_cast<Enum>(value)) == name) return static_cast<Enum>(value);
  }
  return std::nullopt;
}

std::optional<unsigned> nibble(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return std::nullopt;
}

}  // namespace

const Json& member(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found != object.end() ? *found : null;
}

const Json& list(const Json& object, const char* key) {
  static const Json empty = Json::array();
  const Json& value = member(object, key);
  return value.is_array() ? value : empty;
}

std::string string(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string{};
}

std::optional<EventKind> kind_of(std::string_view type) {
  for (const EventKind kind : {EventKind::begin, EventKind::end, EventKind::counter, EventKind::alloc,
                               EventKind::lifecycle, EventKind::lost}) {
    if (to_string(kind) == type) return kind;
  }
  return std::nullopt;
}

std::optional<LossReason> loss_reason_of(std::string_view reason) {
  return named<LossReason>(reason, static_cast<int>(LossReason::unprobed) + 1);
}

std::optional<ProcessAction> action_of(std::string_view action) {
  return named<ProcessAction>(action, static_cast<int>(ProcessAction::probe) + 1);
}

LeftState state_of(std::string_view state) {
  return named<LeftState>(state, static_cast<int>(LeftState::other)).value_or(LeftState::other);
}

std::optional<std::vector<std::byte>> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const auto high = nibble(text[at]), low = nibble(text[at + 1]);
    if (!high || !low) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(*high << 4 | *low));
  }
  return bytes;
}

void read_family(const Json& line, ProcessInfo& facts) {
  facts.version = string(line, "version");
  facts.family = string(line, "family") == to_string(Family::before_5_3) ? Family::before_5_3 : Family::since_5_3;
  facts.family_source = named<FamilySource>(string(line, "family_source"), static_cast<int>(FamilySource::forced) + 1)
                            .value_or(FamilySource::assumed);
}

void read_image(const Json& line, ProcessInfo& facts) {
  facts.exe = string(line, "exe");
  facts.runtime = string(line, "runtime");
  read_family(line, facts);
  facts.ns_pid = number<std::int32_t>(line, "ns_pid");
  facts.start_ticks = number<std::uint64_t>(line, "start_ticks");
  facts.exec_generation = number<std::uint32_t>(line, "exec_generation");
}

std::int64_t exit_detail(const Json& line) {
  const Json& status = member(line, "status");
  // As wait(2) has it: the code in the second byte, a signal in the first.
  if (status.contains("code")) return std::int64_t{number<std::uint8_t>(status, "code")} << 8;
  if (status.contains("signal")) return number<std::uint8_t>(status, "signal");
  return status.contains("exec") ? exit_by_exec : exit_unseen;
}

Thread read_thread(const Json& object) {
  Thread thread{.pid = number<std::int32_t>(object, "pid"),
                .tid = number<std::int32_t>(object, "tid"),
                .domain = object.contains("domain") ? number<std::int32_t>(object, "domain") : -1,
                .priority = number<std::int16_t>(object, "prio"),
                .role = named<ThreadRole>(string(object, "role"), static_cast<int>(ThreadRole::tick) + 1)
                            .value_or(ThreadRole::unknown),
                .tracked = object.contains("tracked"),
                .holds_lock = object.contains("lock"),
                .comm_bytes = {}};
  const std::string comm = string(object, "comm");
  std::memcpy(thread.comm_bytes.data(), comm.data(), std::min(comm.size(), thread.comm_bytes.size()));
  return thread;
}

std::uint32_t sched_source(std::uint32_t cpu) {
  constexpr std::uint32_t most = (1u << Source::domain_bits) - 1;
  return Source{0, static_cast<std::uint16_t>(first_sched_stream + std::min(cpu, most - first_sched_stream))}.pack();
}

Accounting read_words(const Json& object) {
  const Json& words = member(object, "words");
  return {.written = number<std::uint64_t>(words, "written"),
          .delivered = number<std::uint64_t>(words, "delivered"),
          .lost = number<std::uint64_t>(words, "lost"),
          .before_attach = number<std::uint64_t>(words, "before_attach"),
          .corrupt = number<std::uint64_t>(words, "corrupt"),
          .unread = number<std::uint64_t>(words, "unread"),
          .events = number<std::uint64_t>(object, "events")};
}

void read_figures(const Json& process, ProcessInfo& facts) {
  facts.pid = number<std::int32_t>(process, "pid");
  facts.comm = string(process, "comm");
  facts.exe = string(process, "exe");
  facts.exec_generation = number<std::uint32_t>(process, "exec_generation");
  facts.runtime = string(process, "runtime");
  facts.version = string(process, "version");
  facts.family_source =
      named<FamilySource>(string(process, "family_source"), static_cast<int>(FamilySource::forced) + 1)
          .value_or(FamilySource::assumed);
  facts.ring =
      named<RingState>(string(process, "ring"), static_cast<int>(RingState::ended) + 1).value_or(RingState::none);
  facts.domains = number<std::uint32_t>(process, "domains");
  facts.max_rss_bytes = number<std::uint64_t>(process, "max_rss_bytes");
  facts.words = read_words(process);
}

RunSummary read_summary(const Json& line) {
  RunSummary summary;
  summary.end_ns = number<std::uint64_t>(line, "end");
  const Json& events = member(line, "events");
  for (std::size_t kind = 0; kind < event_kind_count; ++kind) {
    const std::string name(to_string(static_cast<EventKind>(kind)));
    summary.events[kind] = number<std::uint64_t>(events, name.c_str());
  }
  summary.late = number<std::uint64_t>(line, "late");
  summary.forced = number<std::uint64_t>(line, "forced");
  summary.rings_missed = number<std::uint64_t>(line, "rings_missed");
  if (const Json& drops = member(line, "drops"); drops.is_object()) {
    for (const auto& drop : drops.items())
      summary.drops.push_back({.kind = drop.key(), .count = as_number<std::uint64_t>(drop.value())});
  }
  const Json& self = member(line, "self");
  summary.own_cpu_ns = number<std::uint64_t>(self, "cpu_ns");
  summary.own_max_rss_bytes = number<std::uint64_t>(self, "max_rss_bytes");
  summary.complete = !line.contains("truncated");
  return summary;
}

}  // namespace rtev::jsonl
