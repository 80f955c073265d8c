// SPDX-License-Identifier: MIT
#include "formats/viewer/track_table.hpp"

namespace rtev {
namespace {

/// Threads of other programs that are kept at a time.
constexpr std::size_t max_strangers = std::size_t{1} << 16;

/// Linux gives out tids upwards from the pid, and then starts again with the smallest.
bool is_older(std::int32_t pid, std::int32_t tid, std::int32_t other) {
  return std::pair(tid < pid, tid) < std::pair(other < pid, other);
}

}  // namespace

const Track* TrackTable::thread(const Thread& thread) {
  if (thread.tid == 0) return nullptr;
  bool is_new = false;
  Track& track = find_or_add(thread.pid, thread.tid, is_new);
  if (track.process == 0) name_after_thread(thread);  // OCaml programs are named by name_process()
  const bool learned = (thread.domain >= 0 && thread.domain != track.domain) ||
                       (thread.role != ThreadRole::unknown && thread.role != track.role);
  if (thread.domain >= 0) track.domain = thread.domain;
  if (thread.role != ThreadRole::unknown) track.role = thread.role;
  if (is_new || learned || track.domain < 0) describe(track, thread.comm(), is_new);
  return &track;
}

const Track& TrackTable::writer(ProcessIndex process, std::int32_t pid, std::int32_t tid, std::uint16_t domain,
                                std::uint32_t incarnation) {
  bool is_new = false;
  Track& track = find_or_add(pid, tid, is_new);
  adopt(track, process);
  track.incarnation = incarnation;
  if (track.domain < 0) {
    track.domain = domain;
    describe(track, processes_[pid].name, is_new);
  }
  return track;
}

const Track* TrackTable::find(std::int32_t pid, std::int32_t tid) {
  return tid != 0 ? recent_.find(tracks_, key_of(pid, tid)) : nullptr;
}

const Track& TrackTable::main_thread(ProcessIndex process, std::int32_t pid) {
  bool is_new = false;
  Track& track = find_or_add(pid, pid, is_new);
  adopt(track, process);
  if (is_new) describe(track, processes_[pid].name, is_new);
  return track;
}

const Track& TrackTable::ring(ProcessIndex process, std::int32_t pid, std::uint16_t domain, std::uint32_t incarnation) {
  bool is_new = false;
  Track& track = find_or_add(pid, next_ring_tid_, is_new);
  next_ring_tid_ = next_ring_tid_ == INT32_MAX ? first_ring_tid : next_ring_tid_ + 1;
  adopt(track, process);
  track.domain = domain;
  track.incarnation = incarnation;
  track.is_thread = false;
  track.name = "domain " + std::to_string(domain);
  if (incarnation > 1) track.name += " #" + std::to_string(incarnation);
  writer_.name_track(track);
  return track;
}

void TrackTable::name_process(std::int32_t pid, std::string_view name) {
  const auto [found, is_new] = processes_.try_emplace(pid);
  Process& process = found->second;
  process.is_named = true;
  if (process.name == name && !is_new) return;
  process.name = name;
  writer_.name_process(pid, name);
}

void TrackTable::forget(const Track& track) {
  forgetting_(track);
  remove(track);
}

void TrackTable::remove(const Track& track) {
  writer_.forget_track(track);
  if (const auto process = processes_.find(track.pid); process != processes_.end()) {
    const auto own = process->second.domain_threads.find(track.domain);
    if (own != process->second.domain_threads.end() && own->second == track.tid)
      process->second.domain_threads.erase(own);
  }
  if (track.process == 0) --strangers_;
  const Key key = key_of(track.pid, track.tid);
  recent_.forget(key);
  tracks_.erase(key);
}

void TrackTable::forget_process(std::int32_t pid) {
  for (auto track = tracks_.lower_bound(key_of(pid, 0)); track != tracks_.end() && track->second.pid == pid;)
    forget((track++)->second);
  processes_.erase(pid);
}

void TrackTable::forget_domain(std::int32_t pid, std::int32_t domain) {
  if (const auto process = processes_.find(pid); process != processes_.end())
    process->second.domain_threads.erase(domain);
}

Track& TrackTable::find_or_add(std::int32_t pid, std::int32_t tid, bool& is_new) {
  Track* const known = recent_.find(tracks_, key_of(pid, tid));
  is_new = known == nullptr;
  if (!is_new) return *known;
  ++strangers_;
  return tracks_.emplace(key_of(pid, tid), Track{.id = next_id_++, .pid = pid, .tid = tid}).first->second;
}

/// Names a track by what is known now.
void TrackTable::describe(Track& track, std::string_view own_name, bool is_new) {
  std::string name = name_of(track, own_name);
  if (!is_new && name == track.name) return;
  track.name = std::move(name);
  writer_.name_track(track);
}

std::string TrackTable::name_of(const Track& track, std::string_view own_name) {
  if (track.domain < 0) return std::string(own_name);
  std::string name = "domain " + std::to_string(track.domain);
  if (track.role == ThreadRole::backup) return name + " backup";
  if (track.role == ThreadRole::tick) return name + " tick";
  // The oldest thread is the main thread of the domain; it need not be seen first.
  std::int32_t& own = processes_[track.pid].domain_threads.try_emplace(track.domain, track.tid).first->second;
  if (is_older(track.pid, track.tid, own)) {
    const auto other = tracks_.find(key_of(track.pid, std::exchange(own, track.tid)));
    if (other != tracks_.end()) describe(other->second, own_name, false);
  }
  return own == track.tid ? name : name + " systhread";
}

/// Other programs than OCaml ones are named after one of their threads, preferably the main thread.
void TrackTable::name_after_thread(const Thread& thread) {
  const auto [found, is_new] = processes_.try_emplace(thread.pid);
  Process& process = found->second;
  if (process.is_named || (!process.name.empty() && thread.tid != thread.pid)) return;
  if (process.name == thread.comm() && !is_new) return;
  process.name = thread.comm();
  writer_.name_process(thread.pid, process.name);
}

void TrackTable::adopt(Track& track, ProcessIndex process) {
  if (track.process == 0 && process != 0) --strangers_;
  if (process != 0) track.process = process;
}

void TrackTable::make_room() {
  if (strangers_ <= max_strangers) return;
  for (auto track = tracks_.begin(); track != tracks_.end();) {
    const Track& candidate = (track++)->second;
    if (candidate.process == 0) forget(candidate);
  }
  std::erase_if(processes_, [&](const auto& process) {
    const auto any = tracks_.lower_bound(key_of(process.first, 0));
    return any == tracks_.end() || any->second.pid != process.first;
  });
}

}  // namespace rtev
