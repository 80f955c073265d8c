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

/// No OCaml program writes faster into one ring: measured at 18 M events/s of 2.3 words.
constexpr std::uint64_t max_words_per_second = 42'000'000;

/// Share of a ring that may fill up between two polls.
constexpr double fill_goal = 0.25;

constexpr std::uint64_t min_interval_ns = 200'000;
constexpr std::uint64_t max_interval_ns = 10'000'000;

/// A process that writes without ever being seen running is read this late, and so is a domain whose
/// number is far beyond the others'.
constexpr std::uint64_t full_poll_interval_ns = 1'000'000'000;

/// A thread that has been running since before its ring was watched is noticed with its next switch: after this time at
/// the latest, on any cpu.
constexpr std::uint64_t unwatched_ns = 2'000'000'000;

/// Words and time of a turn. Words of many domains with few each take much longer than those of one.
constexpr std::uint64_t min_turn_words = 1 << 10, max_turn_words = 1 << 17, turn_ns = 1'000'000;

/// Words and time of one poll() of all rings; it ends with the turn of the last user. The time gets shorter with each
/// backlog: what takes a moment to read can take ten times as long to sort and to write.
constexpr std::uint64_t poll_words = 1 << 23, min_poll_ns = 1'000'000, max_poll_ns = 10'000'000;

/// Words that are read of a program after its end: those of 128 rings of OCaml's default size.
constexpr std::uint64_t last_words = 1 << 23;

/// How long the ends of a user's programs may be read: a share of all time, and so much at once. To sort and to write
/// what was read takes ten times as long. Beyond that, few words of each end are read.
constexpr CpuShare last_reads(50, 40'000'000);
constexpr std::uint64_t last_words_at_least = 1 << 12, last_turn_words = 1 << 16;
constexpr std::uint32_t usual_domains = 128;  // of OCaml's runtime, without the option d of OCAMLRUNPARAM

/// A file that must not be read at the end of its program is tried again, for two milliseconds in all.
constexpr unsigned max_last_tries = 40;
constexpr std::chrono::microseconds last_try_interval{50};

/// A ring with fewer words does not shorten the interval between polls below this one: it would set the pace for the
/// rings of the whole host.
constexpr std::uint64_t small_ring_words = 4096, small_ring_interval_ns = 2'000'000;

/// How long a ring is left alone that has invalid words, or whose pages are not ready: twice as long each time.
constexpr std::uint64_t min_pause_ns = 1'000'000, max_pause_ns = 1'000'000'000;

/// A turn that waited so long for the kernel, although the pages were looked at. For a while, the rings of the user are
/// read for a small share of all time (not only CPU time). If the reader waits again, the share is used up for a
/// hundred times as long, and the while is four times as long. That is remembered for a minute.
constexpr std::uint64_t long_wait_ns = 20'000'000;
constexpr std::uint64_t min_wary_ns = 1'000'000'000, max_wary_ns = 60'000'000'000;
constexpr CpuShare wary_share(100, 1'000'000);

}  // namespace

void RingPoller::add(std::uint32_t slot, ProcessIndex process, uid_t user, std::shared_ptr<RingReader> ring,
                     std::uint64_t now_ns) {
  rings_.insert_or_assign(slot, Ring{.process = process,
                                     .user = user,
                                     .reader = std::move(ring),
                                     .unwatched_until_ns = now_ns + unwatched_ns,
                                     .turn_words = max_turn_words,
                                     .read_ns = now_ns});
}

bool RingPoller::poll(std::uint64_t now_ns, const std::function<bool(std::uint32_t)>& ran) {
  const bool all = now_ns - last_full_poll_ns_ >= full_poll_interval_ns;
  if (all) last_full_poll_ns_ = now_ns;
  interval_ns_ = max_interval_ns;
  behind_since_ns_.reset();
  blocked_.take();
  bool any_ran = false;
  std::map<uid_t, Queue> waiting;
  std::optional<uid_t> previous_user;
  has_several_users_ = false;
  for (auto& [slot, ring] : rings_) {
    const uid_t user = ring.user;
    has_several_users_ |= previous_user.value_or(user) != user;
    previous_user = user;
    const bool seen = ran(slot);
    const bool active = seen || ring.unfinished || now_ns < ring.unwatched_until_ns;
    any_ran |= active;
    ring.unfinished = active;
    if ((active || all) && now_ns >= ring.paused_until_ns && may_read(user, now_ns)) waiting[user].push_back(&ring);
  }
  std::erase_if(wary_, [now_ns](const auto& user) { return user.second.until_ns + max_wary_ns <= now_ns; });
  read_in_turns(std::move(waiting), now_ns, all);
  return any_ran;
}

/// Gives each user a turn, and within a user the ring that has waited longest. What the budget does not reach is left
/// for the next poll().
void RingPoller::read_in_turns(std::map<uid_t, Queue> waiting, std::uint64_t now_ns, bool all_domains) {
  for (auto& [user, rings] : waiting)
    std::ranges::stable_sort(rings, {}, [](const Ring* ring) { return ring->read_ns; });
  Queue left;
  const bool once = std::ranges::any_of(waiting, [this](const auto& entry) { return room_(entry.first).one_turn; });
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
      words += read(ring, now_ns, all_domains, std::min(ring.turn_words, room.words));
      if (!may_read(user->first, now_ns))
        rings.clear();
      else if (ring.unfinished && now_ns >= ring.paused_until_ns)
        (once ? left : rings).push_back(&ring);
      user = rings.empty() ? waiting.erase(user) : std::next(user);
    }
  }
  for (const auto& [user, rings] : waiting) left.insert(left.end(), rings.begin(), rings.end());
  for (const Ring* ring : left) note_behind(*ring);
  if (!left.empty()) interval_ns_ = min_interval_ns;
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

/// One turn of a ring. Returns how many words it took.
std::uint64_t RingPoller::read(Ring& ring, std::uint64_t now_ns, bool all_domains, std::uint64_t max_words) {
  RingReader& reader = *ring.reader;
  const std::uint64_t begin_ns = clock_();
  const Polled polled =
      all_domains ? reader.poll(consumer_, max_words) : RingReaderAccess::poll_used(reader, consumer_, max_words);
  const std::uint64_t words = polled.delivered_words + polled.lost_words;
  const std::uint64_t taken_ns = clock_() - begin_ns;
  if (taken_ns > turn_ns)
    ring.turn_words = std::max(ring.turn_words / 2, min_turn_words);
  else if (words >= ring.turn_words)
    ring.turn_words = std::min(ring.turn_words * 2, max_turn_words);
  end_pause(ring, now_ns);
  if (now_ns > ring.read_ns) set_pace(ring, polled.fullest, now_ns - ring.read_ns);
  ring.read_ns = now_ns;
  ring.unfinished = !polled.complete;
  const bool is_not_ready = !polled.complete && words + polled.corrupt_words == 0;
  if (is_not_ready || polled.corrupt_words > 0) {
    ring.pause_ns = std::clamp(2 * ring.pause_ns, min_pause_ns, max_pause_ns);
    ring.paused_until_ns = now_ns + ring.pause_ns;
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

void RingPoller::set_pace(const Ring& ring, double fullest, std::uint64_t elapsed_ns) {
  const std::uint64_t ring_words = ring.reader->layout().ring_words;
  // What the fastest writer needs to fill the ring, and what this one needs to fill a part if it goes on as it did.
  const double fastest_ns = static_cast<double>(ring_words) * 1e9 / max_words_per_second;
  const double observed_ns = static_cast<double>(elapsed_ns) * fill_goal / std::max(fullest, 1e-9);
  const auto interval = static_cast<std::uint64_t>(std::clamp(std::min(fastest_ns, observed_ns), 1.0, 1e9));
  const std::uint64_t least = ring_words < small_ring_words ? small_ring_interval_ns : min_interval_ns;
  interval_ns_ = std::min(interval_ns_, std::clamp(interval, least, max_interval_ns));
}

/// The ring has unread words, or may have some since its last poll.
void RingPoller::note_behind(const Ring& ring) {
  const std::uint64_t since = RingReaderAccess::behind_since_ns(*ring.reader).value_or(ring.read_ns);
  behind_since_ns_ = std::min(behind_since_ns_.value_or(since), since);
}

void RingPoller::finish_all(std::uint64_t now_ns, std::uint64_t deadline_ns) {
  Queue unfinished;
  for (auto& [slot, ring] : rings_) unfinished.push_back(&ring);
  // One that is written as fast as it is read must not take the time of the others.
  while (!unfinished.empty() && clock_() < deadline_ns) {
    Ring& ring = *unfinished.front();
    unfinished.pop_front();
    if (room_(ring.user).words == 0) continue;
    read(ring, now_ns, true, max_turn_words);
    // Who writes only what is invalid may do so forever.
    if (ring.unfinished && ring.pause_ns < max_pause_ns) unfinished.push_back(&ring);
  }
  for (auto& [slot, ring] : rings_) ring.reader->finish(consumer_, now_ns);
}

void RingPoller::finish(std::uint32_t slot, std::uint64_t ended_ns, std::uint64_t now_ns, ProcessInfo& info,
                        const Saved& saved) {
  const auto found = rings_.find(slot);
  if (found == rings_.end()) return;
  RingReader& reader = *found->second.reader;
  RingReaderAccess::seal(reader, ended_ns);
  const uid_t user = found->second.user;
  read_out(reader, user, now_ns);
  const bool taken_over = RingReaderAccess::taken_over(reader);
  const bool whole = !reader.truncated() || read_saved(reader, user, now_ns, saved);
  reader.finish(consumer_, now_ns);
  end_pause(found->second, now_ns);
  add_figures(found->second, info);
  if (taken_over && !whole) {
    ++taken_over_;
    ++info.missed.gone;
  }
  rings_.erase(found);
}

/// Reads what a ring holds that is not written any more, as far as there is room.
void RingPoller::read_out(RingReader& reader, uid_t user, std::uint64_t now_ns) {
  CpuShare& share = last_reads_.try_emplace(user, last_reads).first->second;
  std::erase_if(last_reads_,
                [&](const auto& entry) { return &entry.second != &share && entry.second.is_unused(now_ns); });
  std::uint64_t words = 0;
  for (unsigned tries = 0; words < last_words;) {
    const std::uint64_t room = room_(user).words;
    if (room == 0) break;
    const bool has_left = share.has_left(now_ns);
    // Words of thousands of domains take as long as those of a large ring.
    if (!has_left && (words >= last_words_at_least || reader.layout().rings > usual_domains)) break;
    const std::uint64_t begin_ns = clock_();
    const Polled polled = reader.poll(consumer_, std::min(room, has_left ? last_turn_words : last_words_at_least));
    const std::uint64_t taken = polled.delivered_words + polled.lost_words;
    const bool tries_again =
        !polled.complete && taken + polled.corrupt_words == 0 && has_left && tries++ < max_last_tries;
    if (tries_again) std::this_thread::sleep_for(last_try_interval);
    share.use(clock_() - begin_ns, now_ns);
    if (polled.complete) return;
    if (!tries_again) words += std::max(taken, min_turn_words);
  }
  RingReaderAccess::give_up(reader);
}

/// True if the saved copy is known to be complete.
bool RingPoller::read_saved(RingReader& reader, uid_t user, std::uint64_t now_ns, const Saved& saved) {
  auto rest = saved();
  if (!rest || !RingReaderAccess::continue_in_copy(reader, std::move(rest->fd))) return false;
  for (const CutDomain& cut : rest->cut) RingReaderAccess::expect_words(reader, cut.domain, cut.written);
  read_out(reader, user, now_ns);
  return rest->last;
}

void RingPoller::update(Registry& registry) {
  for (const auto& [slot, ring] : rings_) {
    registry.process(ring.process).words = {};
    registry.process(ring.process).domains = 0;
  }
  for (auto& [slot, ring] : rings_) add_figures(ring, registry.process(ring.process));
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
