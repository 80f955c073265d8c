// SPDX-License-Identifier: MIT
#include "session/live/ring_poller.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "ring/reader_access.hpp"

namespace rtev {
namespace {

/// A domain whose number is far beyond the others' is read this late, and so is a process that writes without ever
/// being seen running.
constexpr std::uint64_t all_domains_interval_ns = 1'000'000'000, all_rings_interval_ns = 30'000'000'000;

/// A thread that has been running since before its ring was watched is noticed with its next switch: after this time at
/// the latest, on any cpu.
constexpr std::uint64_t unwatched_ns = 2'000'000'000;

/// Words and time of one read of a ring (its quantum). Words of many domains with few each take much longer than those
/// of one.
constexpr std::uint64_t min_quantum_words = 1 << 10, max_quantum_words = 1 << 17, quantum_ns = 1'000'000;

/// Words and time of one poll() of all rings; it ends with a read for the last user. The time gets shorter with each
/// backlog: what takes a moment to read can take ten times as long to sort and to write.
constexpr std::uint64_t poll_words = 1 << 23, min_poll_ns = 1'000'000, max_poll_ns = 10'000'000;

/// Words that are read of a program after its end: those of 128 rings of OCaml's default size.
constexpr std::uint64_t last_words = 1 << 23;

/// How long the ends of a user's programs may be read: a share of all time, and so much at once. To sort and to write
/// what was read takes ten times as long. Beyond that, few words of each end are read.
constexpr CpuShare last_reads(50, 40'000'000);
constexpr std::uint64_t last_words_at_least = 1 << 12, last_quantum_words = 1 << 16;
constexpr std::uint32_t usual_domains = 128;  // of OCaml's runtime, without the option d of OCAMLRUNPARAM

/// A file that must not be read at the end of its program is tried again, for two milliseconds in all.
constexpr unsigned max_last_tries = 40;
constexpr std::chrono::microseconds last_try_interval{50};

/// When a ring is read again that has unread words, because time or room ran out; and when the rings of a user are
/// tried again for whom the reader had to wait.
constexpr std::uint64_t retry_interval_ns = 200'000, wary_interval_ns = 10'000'000;

/// How long a ring is left alone that has invalid words, or whose pages are not ready: twice as long each time.
constexpr std::uint64_t min_pause_ns = 1'000'000, max_pause_ns = 1'000'000'000;

/// A read that waited so long for the kernel, although the pages were looked at. For a while, the rings of the user are
/// read for a small share of all time (not only CPU time). If the reader waits again, the share is used up for a
/// hundred times as long, and the while is four times as long. That is remembered for a minute.
constexpr std::uint64_t long_wait_ns = 20'000'000;
constexpr std::uint64_t min_wary_ns = 1'000'000'000, max_wary_ns = 60'000'000'000;
constexpr CpuShare wary_share(100, 1'000'000);

}  // namespace

void RingPoller::add(std::uint32_t slot, ProcessIndex process, uid_t user, std::shared_ptr<RingReader> ring,
                     std::uint64_t now_ns) {
  RingPace pace(ring->layout().ring_words, max_delay_ns_);
  const std::uint32_t used_domains = RingReaderAccess::used_domains(*ring);
  pace.postpone(0);  // at once: until now the stream waited for its events
  Ring added{.slot = slot,
             .process = process,
             .user = user,
             .reader = std::move(ring),
             .pace = pace,
             .used_domains = used_domains,
             .unwatched_until_ns = now_ns + unwatched_ns,
             .quantum_words = max_quantum_words,
             .read_ns = now_ns,
             .behind_since_ns = now_ns,
             .known_until_ns = now_ns,
             .read_whole_ns = now_ns};
  const auto place = std::ranges::lower_bound(rings_, slot, {}, &Ring::slot);
  if (place != rings_.end() && place->slot == slot)
    *place = std::move(added);
  else
    rings_.insert(place, std::move(added));
}

RingPoller::Ring* RingPoller::find(std::uint32_t slot) {
  const auto found = std::ranges::lower_bound(rings_, slot, {}, &Ring::slot);
  return found != rings_.end() && found->slot == slot ? &*found : nullptr;
}

void RingPoller::poll(std::uint64_t now_ns, Which which, const Activity& activity_of) {
  behind_since_ns_.reset();
  std::map<uid_t, Queue> waiting;
  std::optional<uid_t> previous_user;
  has_several_users_ = false;
  read_until_ns_ = now_ns;
  next_poll_ns_.reset();
  bool any_fills_up = false;
  for (Ring& ring : rings_) {
    has_several_users_ |= previous_user.value_or(ring.user) != ring.user;
    previous_user = ring.user;
    kernel::RingActivity activity = activity_of.take(ring.slot);
    if (!activity.watched) ring.unwatched_until_ns = now_ns + unwatched_ns;
    activity.ran |= now_ns < ring.unwatched_until_ns;
    if (activity.checked_first) activity.checked |= ring.used_domains <= RTEV_FIRST_DOMAINS;
    ring.unfinished |= activity.ran;
    if (!ring.unfinished) ring.known_until_ns = now_ns;
    ring.pace.note(now_ns, activity);
    any_fills_up |= activity.fills_up;
  }
  for (Ring& ring : rings_) {
    // Rings that fill up at one pace would wake the reader one by one.
    if (any_fills_up && ring.pace.is_nearly_due(now_ns)) ring.pace.postpone(now_ns);
    if (is_to_be_read(ring, which, now_ns)) {
      activity_of.begin_read(ring.slot);
      waiting[ring.user].push_back(&ring);
    } else if (ring.unfinished && !is_left_alone(ring, now_ns)) {
      read_until_ns_ = std::min(read_until_ns_, ring.known_until_ns);
    }
  }
  std::erase_if(wary_, [now_ns](const auto& user) { return user.second.until_ns + max_wary_ns <= now_ns; });
  read_round_robin(std::move(waiting), now_ns);
  running_ = 0;
  for (const Ring& ring : rings_) {
    const auto due = ring.pace.due_ns();
    if (!due) continue;
    ++running_;
    next_poll_ns_ = std::min(next_poll_ns_.value_or(*due), *due);
  }
}

bool RingPoller::is_left_alone(const Ring& ring, std::uint64_t now_ns) const {
  return now_ns < ring.paused_until_ns || !may_read(ring.user, now_ns);
}

/// If not, decides when to look at the ring again.
bool RingPoller::is_to_be_read(Ring& ring, Which which, std::uint64_t now_ns) {
  const bool is_due = ring.pace.is_due(now_ns);
  const bool is_wanted = is_due || (which == Which::active && ring.unfinished);
  if (!is_wanted && now_ns - ring.read_whole_ns < all_rings_interval_ns) return false;
  if (is_left_alone(ring, now_ns)) {
    ring.pace.postpone(std::max(ring.paused_until_ns, now_ns + wary_interval_ns));
    return false;
  }
  if (is_due && !ring.unfinished) ring.pace.rest();
  return ring.unfinished || !is_due;
}

/// Reads a ring of each user, one after the other: of a user the ring that has waited longest. What the budget does not
/// reach is left for the next poll().
void RingPoller::read_round_robin(std::map<uid_t, Queue> waiting, std::uint64_t now_ns) {
  if (waiting.empty()) return;
  blocked_.take();
  for (auto& [user, rings] : waiting)
    std::ranges::stable_sort(rings, {}, [](const Ring* ring) { return ring->read_ns; });
  Queue left;
  const bool once = std::ranges::any_of(waiting, [this](const auto& entry) { return room_(entry.first).one_quantum; });
  poll_ns_ = once ? std::max(poll_ns_ / 2, min_poll_ns) : std::min(poll_ns_ + poll_ns_ / 64, max_poll_ns);
  const std::uint64_t deadline_ns = clock_() + poll_ns_;
  for (std::uint64_t words = 0; !waiting.empty() && words < poll_words && clock_() < deadline_ns;) {
    for (auto user = waiting.begin(); user != waiting.end();) {
      Queue& rings = user->second;
      const Room room = room_(user->first);
      if (room.words == 0) {
        left.insert(left.end(), rings.begin(), rings.end());
        user = waiting.erase(user);
        continue;
      }
      Ring& ring = *rings.front();
      rings.pop_front();
      const bool all_domains = now_ns - ring.read_whole_ns >= all_domains_interval_ns;
      words += read(ring, now_ns, all_domains, std::min(ring.quantum_words, room.words));
      if (!may_read(user->first, now_ns))
        rings.clear();
      else if (ring.unfinished && now_ns >= ring.paused_until_ns)
        (once ? left : rings).push_back(&ring);
      user = rings.empty() ? waiting.erase(user) : std::next(user);
    }
  }
  for (const auto& [user, rings] : waiting) left.insert(left.end(), rings.begin(), rings.end());
  for (Ring* const ring : left) {
    note_behind(*ring);
    ring->pace.postpone(now_ns + retry_interval_ns);
  }
}

void RingPoller::be_wary(uid_t user, std::uint64_t now_ns) {
  Wary& wary = wary_.try_emplace(user, wary_share).first->second;
  wary.duration_ns = std::clamp(4 * wary.duration_ns, min_wary_ns, max_wary_ns);
  wary.until_ns = now_ns + wary.duration_ns;
}

bool RingPoller::may_read(uid_t user, std::uint64_t now_ns) const {
  const auto wary = wary_.find(user);
  return wary == wary_.end() || wary->second.until_ns <= now_ns || wary->second.share.has_left(now_ns);
}

/// One read of a ring. Returns how many words it took.
std::uint64_t RingPoller::read(Ring& ring, std::uint64_t now_ns, bool all_domains, std::uint64_t max_words) {
  RingReader& reader = *ring.reader;
  const std::uint64_t begin_ns = clock_();
  const Polled polled =
      all_domains ? reader.poll(consumer_, max_words) : RingReaderAccess::poll_used(reader, consumer_, max_words);
  const std::uint64_t words = polled.delivered_words + polled.lost_words;
  const std::uint64_t taken_ns = clock_() - begin_ns;
  if (taken_ns > quantum_ns)
    ring.quantum_words = std::max(ring.quantum_words / 2, min_quantum_words);
  else if (words >= ring.quantum_words)
    ring.quantum_words = std::min(ring.quantum_words * 2, max_quantum_words);
  end_pause(ring, now_ns);
  if (now_ns > ring.read_ns) ring.pace.was_read(now_ns, now_ns - ring.read_ns, polled.fullest);
  ring.read_ns = now_ns;
  if (all_domains) ring.read_whole_ns = now_ns;
  // The kernel maps the pages around those that are read, too. Of many idle programs they would be much memory.
  if (all_domains && polled.complete && polled.events == 0) RingReaderAccess::unload_pages(reader);
  ring.unfinished = !polled.complete;
  ring.behind_since_ns = polled.complete ? now_ns : RingReaderAccess::behind_since_ns(reader).value_or(now_ns);
  ring.used_domains = RingReaderAccess::used_domains(reader);
  ring.known_until_ns = now_ns;
  const bool is_not_ready = !polled.complete && words + polled.corrupt_words == 0;
  if (is_not_ready || polled.corrupt_words > 0) {
    ring.pause_ns = std::clamp(2 * ring.pause_ns, min_pause_ns, max_pause_ns);
    ring.paused_until_ns = now_ns + ring.pause_ns;
    ring.pace.postpone(ring.paused_until_ns);
  } else if (polled.events > 0) {
    ring.pause_ns /= 2;  // not 0: the read may have come between two changes of the file
  }
  if (taken_ns >= long_wait_ns && blocked_.take() >= long_wait_ns) be_wary(ring.user, now_ns);
  if (const auto wary = wary_.find(ring.user); wary != wary_.end()) wary->second.share.use(taken_ns, now_ns);
  return words;
}

/// Counts the pause that began with the last read of the ring, if there was one.
void RingPoller::end_pause(Ring& ring, std::uint64_t now_ns) {
  const std::uint64_t end_ns = std::min(ring.paused_until_ns, now_ns);
  if (end_ns <= ring.read_ns) return;
  ++ring.left_alone.times;
  ring.left_alone.ns += end_ns - ring.read_ns;
}

/// The ring has unread words, or may have some since its last poll.
void RingPoller::note_behind(const Ring& ring) {
  behind_since_ns_ = std::min(behind_since_ns_.value_or(ring.behind_since_ns), ring.behind_since_ns);
}

void RingPoller::finish_all(std::uint64_t now_ns, std::uint64_t deadline_ns) {
  Queue unfinished;
  for (Ring& ring : rings_) unfinished.push_back(&ring);
  // One that is written as fast as it is read must not take the time of the others.
  while (!unfinished.empty() && clock_() < deadline_ns) {
    Ring& ring = *unfinished.front();
    unfinished.pop_front();
    if (room_(ring.user).words == 0) continue;
    read(ring, now_ns, true, max_quantum_words);
    // Who writes only what is invalid may do so forever.
    if (ring.unfinished && ring.pause_ns < max_pause_ns) unfinished.push_back(&ring);
  }
  for (Ring& ring : rings_) ring.reader->finish(consumer_, now_ns);
}

void RingPoller::seal(std::uint32_t slot, std::uint64_t ended_ns) {
  Ring* const ring = find(slot);
  if (ring == nullptr) return;
  RingReaderAccess::seal(*ring->reader, ended_ns);
  ring->unfinished = true;
  ring->pace.postpone(0);
}

bool RingPoller::read_last(std::uint32_t slot, std::uint64_t now_ns) {
  Ring* const ring = find(slot);
  if (ring == nullptr) return true;
  const LastRead last = read_out(*ring->reader, ring->user, now_ns);
  ring->unfinished = last != LastRead::complete;
  ring->behind_since_ns = RingReaderAccess::behind_since_ns(*ring->reader).value_or(ring->read_ns);
  return last != LastRead::no_room;
}

void RingPoller::finish(std::uint32_t slot, std::uint64_t now_ns, ProcessInfo& info, const Saved& saved) {
  Ring* const ring = find(slot);
  if (ring == nullptr) return;
  RingReader& reader = *ring->reader;
  const uid_t user = ring->user;
  // Not after a complete read: the next program may have taken the file over since.
  if (ring->unfinished) RingReaderAccess::give_up(reader);
  const bool taken_over = RingReaderAccess::taken_over(reader);
  const bool whole = !reader.truncated() || read_saved(reader, user, now_ns, saved);
  reader.finish(consumer_, now_ns);
  end_pause(*ring, now_ns);
  add_figures(*ring, info);
  if (taken_over && !whole) {
    ++taken_over_;
    ++info.missed.gone;
  }
  rings_.erase(rings_.begin() + (ring - rings_.data()));
}

/// Reads what a ring holds that is not written any more.
RingPoller::LastRead RingPoller::read_out(RingReader& reader, uid_t user, std::uint64_t now_ns) {
  CpuShare& share = last_reads_.try_emplace(user, last_reads).first->second;
  std::erase_if(last_reads_,
                [&](const auto& entry) { return &entry.second != &share && entry.second.is_unused(now_ns); });
  std::uint64_t words = 0;
  for (unsigned tries = 0; words < last_words;) {
    const std::uint64_t room = room_(user).words;
    if (room == 0) return LastRead::no_room;
    const bool has_left = share.has_left(now_ns);
    // Words of thousands of domains take as long as those of a large ring.
    if (!has_left && (words >= last_words_at_least || reader.layout().rings > usual_domains)) break;
    const std::uint64_t begin_ns = clock_();
    const Polled polled = reader.poll(consumer_, std::min(room, has_left ? last_quantum_words : last_words_at_least));
    const std::uint64_t taken = polled.delivered_words + polled.lost_words;
    const bool tries_again =
        !polled.complete && taken + polled.corrupt_words == 0 && has_left && tries++ < max_last_tries;
    if (tries_again) std::this_thread::sleep_for(last_try_interval);
    share.use(clock_() - begin_ns, now_ns);
    if (polled.complete) return LastRead::complete;
    if (!tries_again) words += std::max(taken, min_quantum_words);
  }
  return LastRead::stopped;
}

/// True if the saved copy is known to be complete.
bool RingPoller::read_saved(RingReader& reader, uid_t user, std::uint64_t now_ns, const Saved& saved) {
  auto rest = saved();
  if (!rest || !RingReaderAccess::continue_in_copy(reader, std::move(rest->fd))) return false;
  for (const CutDomain& cut : rest->cut) RingReaderAccess::expect_words(reader, cut.domain, cut.written);
  if (read_out(reader, user, now_ns) != LastRead::complete) RingReaderAccess::give_up(reader);
  return rest->last;
}

void RingPoller::update(Registry& registry) {
  for (const Ring& ring : rings_) {
    registry.process(ring.process).words = {};
    registry.process(ring.process).domains = 0;
  }
  for (Ring& ring : rings_) add_figures(ring, registry.process(ring.process));
}

void RingPoller::add_figures(Ring& ring, ProcessInfo& info) {
  const RingReader& reader = *ring.reader;
  const LeftAlone left_alone = std::exchange(ring.left_alone, {});
  info.left_alone.times += left_alone.times;
  info.left_alone.ns += left_alone.ns;
  info.words += reader.accounting();
  info.domains += reader.active_domains();
  if (reader.truncated() && !RingReaderAccess::taken_over(reader)) info.ring = RingState::truncated;
}

}  // namespace rtev
