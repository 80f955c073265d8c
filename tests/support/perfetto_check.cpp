// SPDX-License-Identifier: MIT
#include "support/perfetto_check.hpp"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "perfetto_trace.pb.h"

namespace rtev::test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr std::uint32_t state_cleared = 1, needs_state = 2;

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(nlohmann::json(text).dump());
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

/// Fields that are not in the schema, and strings that are not UTF-8.
void check_fields(const Message& message, std::vector<std::string>& errors) {
  const auto* reflection = message.GetReflection();
  const auto complain = [&](const std::string& what) { errors.push_back(message.GetTypeName() + ": " + what); };
  if (const auto& unknown = reflection->GetUnknownFields(message); !unknown.empty())
    complain("unknown field " + std::to_string(unknown.field(0).number()));
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
        check_fields(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                          : reflection->GetMessage(message, field),
                     errors);
      } else if (field->type() == FieldDescriptor::TYPE_STRING) {
        const std::string text = field->is_repeated() ? reflection->GetRepeatedString(message, field, i)
                                                      : reflection->GetString(message, field);
        if (!is_utf8(text)) complain("a string that is not UTF-8 in " + field->name());
      }
    }
  }
}

/// The interned names of one sequence of packets.
struct Sequence {
  bool valid = false;
  std::map<std::uint64_t, std::string> events{}, categories{}, details{};
};

struct TrackEvent {
  std::uint64_t time;
  pb::TrackEvent event;
  PerfettoEvent named;
};

class Reader {
 public:
  explicit Reader(std::string_view file) { read(file); }
  PerfettoTrace take(Ending ending) {
    replay(ending);
    check_tracks();
    check_flows();
    check_scheduling();
    return std::move(trace_);
  }

 private:
  void complain(std::string what) {
    trace_.errors.push_back("packet " + std::to_string(trace_.packets) + ": " + std::move(what));
  }

  /// A file is a sequence of fields number 1 with a length each.
  void read(std::string_view file) {
    std::size_t at = 0;
    while (at < file.size()) {
      google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(file.data() + at),
                                                static_cast<int>(std::min<std::size_t>(file.size() - at, INT32_MAX)));
      std::uint32_t tag = 0, size = 0;
      if (!in.ReadVarint32(&tag) || !in.ReadVarint32(&size)) break;
      if (tag != 0x0A) {
        complain("does not begin like one");
        break;
      }
      const auto begin = at + static_cast<std::size_t>(in.CurrentPosition());
      if (file.size() - begin < size) break;
      pb::TracePacket packet;
      if (packet.ParseFromArray(file.data() + begin, static_cast<int>(size)))
        add(packet);
      else
        complain("cannot be decoded");
      ++trace_.packets;
      at = begin + size;
    }
    trace_.bytes_left = file.size() - at;
  }

  void add(const pb::TracePacket& packet) {
    check_fields(packet, trace_.errors);
    if (packet.has_timestamp_clock_id()) complain("has a clock of its own");
    Sequence& sequence = sequences_[packet.trusted_packet_sequence_id()];
    if (packet.previous_packet_dropped() != 0) {
      ++trace_.losses;
      sequence = {};
    }
    if (packet.sequence_flags() & state_cleared) {
      if (sequence.valid) ++trace_.restarts;
      sequence = {.valid = true};
    }
    if ((packet.sequence_flags() & needs_state) && !sequence.valid) complain("needs names that were dropped");
    const auto intern = [&](const auto& names, auto& table) {
      for (const auto& entry : names) {
        if (entry.iid() == 0 || !table.emplace(entry.iid(), entry.name()).second) complain("a name is defined twice");
      }
    };
    intern(packet.interned_data().event_names(), sequence.events);
    intern(packet.interned_data().event_categories(), sequence.categories);
    intern(packet.interned_data().debug_annotation_names(), sequence.details);

    for (const auto& clock : packet.clock_snapshot().clocks()) trace_.clocks[clock.clock_id()] = clock.timestamp();
    if (packet.has_system_info() && packet.system_info().utsname().machine().empty()) complain("no machine");
    if (packet.system_info().utsname().sysname() == "Linux") trace_.kernel = packet.system_info().utsname().release();
    for (const auto& process : packet.process_tree().processes()) trace_.processes[process.pid()] = process.cmdline(0);
    for (const auto& thread : packet.process_tree().threads())
      trace_.threads[thread.tid()] = {thread.tgid(), thread.name()};
    if (packet.has_track_descriptor()) describe(packet.track_descriptor());
    if (packet.has_track_event()) add(packet, packet.track_event(), sequence);
    if (packet.has_ftrace_events()) add(packet.ftrace_events());
  }

  void describe(const pb::TrackDescriptor& descriptor) {
    if (descriptor.uuid() == 0) complain("a track without uuid");
    const auto [found, is_new] = trace_.tracks.try_emplace(descriptor.uuid());
    PerfettoTrack track = std::move(found->second);
    const PerfettoTrack before = track;
    track.name = descriptor.name();
    track.parent = descriptor.parent_uuid();
    track.rank = descriptor.sibling_order_rank();
    track.is_process = descriptor.has_process();
    track.is_counter = descriptor.has_counter();
    if (descriptor.has_process()) {
      track.pid = descriptor.process().pid();
      track.name = descriptor.process().process_name();
    } else if (descriptor.has_thread()) {
      track.pid = descriptor.thread().pid();
      track.tid = descriptor.thread().tid();
      track.name = descriptor.thread().thread_name();
      trace_.threads[track.tid] = {track.pid, track.name};
    } else if (track.parent != 0) {
      track.pid = trace_.tracks[track.parent].pid;
    }
    if (descriptor.has_counter()) {
      track.unit = descriptor.counter().unit_name();
      if (track.unit.empty() && descriptor.counter().unit() != 0)
        track.unit = std::to_string(descriptor.counter().unit());
    }
    if (!is_new && (before.pid != track.pid || before.tid != track.tid || before.parent != track.parent ||
                    before.is_counter != track.is_counter || before.is_process != track.is_process))
      complain("a track becomes another one");
    trace_.tracks[descriptor.uuid()] = std::move(track);
  }

  template <typename Table>
  std::string look_up(const Table& table, std::uint64_t iid) {
    const auto found = table.find(iid);
    if (found != table.end()) return found->second;
    complain("an undefined name");
    return {};
  }

  static std::string text_of(const pb::DebugAnnotation& detail) {
    if (detail.has_string_value()) return detail.string_value();
    if (detail.has_uint_value()) return std::to_string(detail.uint_value());
    if (detail.has_int_value()) return std::to_string(detail.int_value());
    if (detail.has_bool_value()) return detail.bool_value() ? "true" : "false";
    std::string all;
    for (const auto& value : detail.array_values()) all += (all.empty() ? "" : ",") + text_of(value);
    return all;
  }

  void add(const pb::TracePacket& packet, const pb::TrackEvent& event, const Sequence& sequence) {
    if (!packet.has_timestamp() || packet.trusted_packet_sequence_id() == 0 || !sequence.valid)
      complain("an event without time or sequence");
    if (!trace_.tracks.contains(event.track_uuid())) complain("an event on a track that is not described");
    PerfettoEvent named{.time = packet.timestamp()};
    named.name = event.has_name_iid() ? look_up(sequence.events, event.name_iid()) : event.name();
    if (event.category_iids_size() > 0) named.category = look_up(sequence.categories, event.category_iids(0));
    if (event.categories_size() > 0) named.category = event.categories(0);
    const bool must_be_named = event.type() == pb::TrackEvent::SLICE_BEGIN || event.type() == pb::TrackEvent::INSTANT;
    if (must_be_named && (named.name.empty() || named.category.empty())) complain("an event without name or category");
    for (const auto& detail : event.debug_annotations()) {
      const std::string name = detail.has_name_iid() ? look_up(sequence.details, detail.name_iid()) : detail.name();
      if (!named.details.emplace(name, text_of(detail)).second) complain("detail " + name + " twice");
    }
    events_.push_back({packet.timestamp(), event, std::move(named)});
  }

  void add(const pb::FtraceEventBundle& bundle) {
    for (const auto& event : bundle.event()) {
      if (!event.has_timestamp()) complain("a scheduler event without time");
      if (event.has_sched_switch()) {
        const auto& change = event.sched_switch();
        trace_.switches.push_back({event.timestamp(), bundle.cpu(), change.prev_pid(), change.next_pid(),
                                   change.prev_state(), change.prev_prio(), change.next_prio(), change.prev_comm(),
                                   change.next_comm()});
        if (static_cast<std::int32_t>(event.pid()) != change.prev_pid())
          complain("a switch reported by another thread");
      } else if (event.has_sched_waking()) {
        trace_.wakings.push_back({event.timestamp(), bundle.cpu(), static_cast<std::int32_t>(event.pid()),
                                  event.sched_waking().pid(), event.sched_waking().target_cpu()});
      } else if (event.has_sched_process_free()) {
        trace_.freed.push_back(event.sched_process_free().pid());
      } else {
        complain("an empty scheduler event");
      }
    }
  }

  /// Events ordered by time, then in file order.
  void replay(Ending ending) {
    std::ranges::stable_sort(events_, {}, &TrackEvent::time);
    std::map<std::uint64_t, std::vector<std::size_t>> open;
    for (auto& [time, event, named] : events_) {
      PerfettoTrack& track = trace_.tracks[event.track_uuid()];
      auto& stack = open[event.track_uuid()];
      if (track.is_counter != (event.type() == pb::TrackEvent::COUNTER)) complain("counter or not: " + named.name);
      switch (event.type()) {
        case pb::TrackEvent::SLICE_BEGIN: {
          PerfettoSlice slice{std::move(named)};
          slice.depth = stack.size();
          slice.flows_out.assign(event.flow_ids().begin(), event.flow_ids().end());
          slice.flows_in.assign(event.terminating_flow_ids().begin(), event.terminating_flow_ids().end());
          stack.push_back(track.slices.size());
          track.slices.push_back(std::move(slice));
          break;
        }
        case pb::TrackEvent::SLICE_END:
          if (stack.empty()) {
            complain("an end without begin on " + track.name + " at " + std::to_string(time));
          } else {
            PerfettoSlice& slice = track.slices[stack.back()];
            slice.end = time;
            slice.ended = true;
            for (auto& [name, value] : named.details) slice.details[name] = std::move(value);
            stack.pop_back();
          }
          break;
        case pb::TrackEvent::INSTANT:
          track.instants.push_back(std::move(named));
          break;
        case pb::TrackEvent::COUNTER:
          track.values.emplace_back(time, event.counter_value());
          break;
        default:
          complain("an event without type");
      }
    }
    if (ending == Ending::open) return;
    for (const auto& [uuid, stack] : open) {
      for (const std::size_t slice : stack)
        complain("never ends on " + trace_.tracks[uuid].name + ": " + trace_.tracks[uuid].slices[slice].name);
    }
  }

  void check_tracks() {
    for (const auto& [uuid, track] : trace_.tracks) {
      auto parent = trace_.tracks.find(track.parent);
      // Tracks of tasks are in a group of their process.
      if (parent != trace_.tracks.end() && parent->second.name == "tasks" && !parent->second.is_process)
        parent = trace_.tracks.find(parent->second.parent);
      if (track.parent != 0 &&
          (parent == trace_.tracks.end() || !parent->second.is_process || (track.pid != parent->second.pid)))
        complain("track " + track.name + " is not part of its process");
      if (track.is_counter && (track.unit.empty() || track.parent == 0))
        complain("counter without unit: " + track.name);
      if (track.name.empty()) complain("track without name: " + std::to_string(uuid));
    }
  }

  void check_flows() {
    std::map<std::uint64_t, std::uint64_t> left;  // times by id
    for (const auto& [uuid, track] : trace_.tracks) {
      for (const PerfettoSlice& slice : track.slices) {
        for (const std::uint64_t id : slice.flows_out) {
          if (!left.emplace(id, slice.time).second) complain("an arrow leaves twice");
        }
      }
    }
    std::set<std::uint64_t> reached;
    for (const auto& [uuid, track] : trace_.tracks) {
      for (const PerfettoSlice& slice : track.slices) {
        for (const std::uint64_t id : slice.flows_in) {
          const auto from = left.find(id);
          if (from == left.end() || from->second > slice.time) complain("an arrow from nowhere");
          if (!reached.insert(id).second) complain("an arrow arrives twice");
        }
      }
    }
  }

  void check_scheduling() {
    std::ranges::stable_sort(trace_.switches, {}, &PerfettoSwitch::time);
    std::ranges::stable_sort(trace_.wakings, {}, &PerfettoWaking::time);
    std::map<std::uint32_t, std::int32_t> running;  // tid by cpu
    const auto check_thread = [&](std::int32_t tid) {
      if (tid == 0) return;
      const auto thread = trace_.threads.find(tid);
      if (thread == trace_.threads.end() || thread->second.tgid == 0)
        complain("thread " + std::to_string(tid) + " has no process");
    };
    for (const PerfettoSwitch& change : trace_.switches) {
      check_thread(change.prev);
      check_thread(change.next);
      const auto before = running.find(change.cpu);
      if (before != running.end() && before->second != change.prev)
        complain("cpu " + std::to_string(change.cpu) + ": not left by who entered at " + std::to_string(change.time));
      running[change.cpu] = change.next;
      const bool twice =
          change.next != 0 && std::ranges::count(running, change.next, [](const auto& cpu) { return cpu.second; }) > 1;
      if (twice) complain("thread " + std::to_string(change.next) + " on two cpus at " + std::to_string(change.time));
    }
    for (const PerfettoWaking& waking : trace_.wakings) {
      check_thread(waking.waker);
      check_thread(waking.woken);
    }
    for (const auto& [tid, thread] : trace_.threads) {
      if (!thread.name.empty() && !trace_.processes.contains(thread.tgid))
        complain("process " + std::to_string(thread.tgid) + " has no name");
    }
  }

  PerfettoTrace trace_;
  std::map<std::uint32_t, Sequence> sequences_;
  std::vector<TrackEvent> events_;
};

}  // namespace

std::vector<const PerfettoTrack*> PerfettoTrace::named(std::string_view name) const {
  std::vector<const PerfettoTrack*> found;
  for (const auto& [uuid, track] : tracks) {
    if (track.name == name) found.push_back(&track);
  }
  return found;
}

const PerfettoTrack& PerfettoTrace::track(std::string_view name) const {
  static const PerfettoTrack none;
  const auto found = named(name);
  return found.empty() ? none : *found.front();
}

const PerfettoTrack& PerfettoTrace::thread(std::int32_t pid, std::int32_t tid) const {
  static const PerfettoTrack none;
  for (const auto& [uuid, track] : tracks) {
    if (track.pid == pid && track.tid == tid) return track;
  }
  return none;
}

std::string PerfettoTrace::all_errors() const {
  std::string all;
  for (const std::string& error : errors) all += error + '\n';
  return all;
}

PerfettoTrace read_perfetto(std::string_view file, Ending ending) {
  return Reader{file}.take(ending);
}

}  // namespace rtev::test
