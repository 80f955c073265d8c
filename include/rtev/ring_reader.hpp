// SPDX-License-Identifier: MIT
// Reads the runtime events of one OCaml process, alive or dead, from its ring file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rtev/error.hpp"
#include "rtev/event.hpp"
#include "rtev/layout.hpp"
#include "rtev/names.hpp"

namespace rtev {

/// Where every word of a ring went. Exact at any time between two polls:
/// written == delivered + lost + before_attach + corrupt + unread.
struct Accounting {
  std::uint64_t written = 0;        ///< words the program published, as far as seen
  std::uint64_t delivered = 0;      ///< words of events handed out, and of the padding between them
  std::uint64_t lost = 0;           ///< words overwritten before they were read
  std::uint64_t before_attach = 0;  ///< words that were history when the ring was opened, and not handed out
  std::uint64_t corrupt = 0;        ///< words skipped because they made no sense
  std::uint64_t unread = 0;         ///< words published and not read yet
  std::uint64_t events = 0;         ///< events handed out (no words: not part of the sum)

  bool balanced() const { return written == delivered + lost + before_attach + corrupt + unread; }
  Accounting& operator+=(const Accounting& other);
};

/// What one poll did.
struct Polled {
  std::uint64_t events = 0;
  std::uint64_t delivered_words = 0;
  std::uint64_t lost_words = 0;
  /// The largest share of a ring that was found filled, 0 to 1: how near the writer was to overtaking.
  double fullest = 0;
  /// False if words were left for the next poll (the budget was used up).
  bool complete = true;
};

/// Who writes a ring, where it is not OCaml's runtime: see ProducerMark.
struct Producer {
  std::string name;  ///< printable ASCII, e.g. "librtev"
  Family family;     ///< how the ids of phases and counters are to be read

  bool operator==(const Producer&) const = default;
};

/// Reader of one ring file. Maps it read-only; never writes to it, never stops its process. Everything read from it is
/// checked: a hostile file yields corrupt words, never a crash. A file that is truncated under the reader is survived
/// with a SIGBUS handler, which is installed when the first reader is opened and passes on any fault that is not
/// a reader's. One thread at a time may use a reader; different readers are independent.
class RingReader {
 public:
  /// What to do with events that were written before the ring was opened.
  enum class History {
    deliver,  ///< hand out all that the ring still holds
    skip,     ///< start now; they count as before_attach
  };
  struct Options {
    History history = History::deliver;
    /// With History::skip: a ring whose first event is not older than this (ns, CLOCK_MONOTONIC) is read from its
    /// beginning all the same, since its program began under the reader's eyes.
    std::uint64_t born_since_ns = UINT64_MAX;
    /// The ring was made at this time (ns, host clock), where that is known: while the file still holds events of an
    /// earlier program with the same pid, opening fails with EAGAIN.
    std::uint64_t made_ns = 0;
    /// The program that made the ring ended at this time (ns, host clock), where that is known: opening fails with
    /// EAGAIN unless the file holds its events, and none of a later program with the same pid.
    std::uint64_t ended_ns = UINT64_MAX;
    /// Only the program that made the ring is of interest: a file that the next program with the same pid makes anew is
    /// left alone from then on. Otherwise that program's events come next.
    bool one_program = false;
    /// With one_program: asked when the first words of a domain have been read, and false if another program may have
    /// made the file anew by then. Nothing of it is handed out in that case.
    std::function<bool()> is_latest{};
    /// Added to every timestamp: host clock minus the clock of the process's time namespace.
    std::int64_t clock_offset_ns = 0;
    /// Source::slot of the events handed out.
    std::uint32_t slot = 0;
  };

  /// Opens a ring file. Error::code is EAGAIN while the header is not (yet) valid: a ring that is being created passes
  /// moments later. Refuses what is not a regular file, and does not follow a symbolic link.
  static Result<RingReader> open(const std::filesystem::path& path, const Options& options);
  static Result<RingReader> open(const std::filesystem::path& path) { return open(path, Options{}); }
  /// The same for an open descriptor, which the reader takes over, also on failure. `name` is used in messages.
  static Result<RingReader> adopt(int fd, std::string name, const Options& options);

  RingReader(RingReader&&) noexcept;
  RingReader& operator=(RingReader&&) noexcept;
  ~RingReader();

  /// Words read by one poll at the most, over all rings together; up to a chunk of 2048 words more.
  static constexpr std::uint64_t default_budget_words = 1 << 20;

  /// Reads what the program published since the last poll and calls `consumer` with batches, each from one domain and
  /// in that domain's order. Takes turns over the domains: what the budget left over comes first the next time.
  /// The consumer must not poll, neither this reader nor another one. What it throws ends the poll; the batch counts as
  /// delivered.
  template <typename Consumer>
  Polled poll(Consumer&& consumer, std::uint64_t budget_words = default_budget_words) {
    auto call = [&](const Batch& batch) { consumer(batch); };
    return poll_rings(true, call_back<decltype(call)>, &call, budget_words);
  }
  /// The same, but looks only at domains up to the highest that has written so far, and the next few: OCaml's runtime
  /// counts domains from 0 on. What is beyond, poll() finds. Cheaper by far for a file of 128 rings and two domains.
  template <typename Consumer>
  Polled poll_used(Consumer&& consumer, std::uint64_t budget_words = default_budget_words) {
    auto call = [&](const Batch& batch) { consumer(batch); };
    return poll_rings(false, call_back<decltype(call)>, &call, budget_words);
  }
  /// The same for one domain only.
  template <typename Consumer>
  Polled poll_domain(std::uint16_t domain, Consumer&& consumer, std::uint64_t budget_words = default_budget_words) {
    auto call = [&](const Batch& batch) { consumer(batch); };
    return poll_ring(domain, call_back<decltype(call)>, &call, budget_words);
  }
  /// From here on the events carry this slot.
  void assign_slot(std::uint32_t slot);
  /// The program has ended, at `ended_ns` (host clock) where that is known: a file that is made anew from then on
  /// belongs to another one and is left alone.
  void seal(std::uint64_t ended_ns = UINT64_MAX);

  /// The program is known to have published this many words of a domain in all, and not all of them are in the file:
  /// the last ones are counted as lost by finish().
  void expect(std::uint16_t domain, std::uint64_t written);

  /// The file was truncated, or taken over by another program; `fd` is of a copy that was made before, of all or some
  /// of what it held. Goes on there with what was not read, and takes over the descriptor, also on failure. Before
  /// finish().
  Result<void> go_on_in(int fd);

  /// For a ring that will not be written any more: hands out the losses that were still waiting for the event which
  /// ends them, dated `now_ns`.
  template <typename Consumer>
  void finish(Consumer&& consumer, std::uint64_t now_ns) {
    auto call = [&](const Batch& batch) { consumer(batch); };
    finish_rings(call_back<decltype(call)>, &call, now_ns);
  }

  const Layout& layout() const;
  /// What the file says of its producer; nothing for OCaml's own files.
  std::optional<Producer> producer() const;
  /// Rings that hold or held events.
  std::uint32_t active_domains() const;
  /// Of one domain; of all when none is named.
  Accounting accounting(std::uint16_t domain) const;
  Accounting accounting() const;
  /// Name the program registered for a user event; empty while it has none. Valid until the next poll.
  std::string_view user_event_name(std::uint16_t id) const;
  /// True once the file was found cut short by its owner, or taken over: what was read before stands, the rest is gone.
  /// False again should the next program make the file anew.
  bool truncated() const;
  /// True once a file that was to be left alone then was found made anew. What its program wrote after the last poll is
  /// gone, and nobody knows how much that was.
  bool taken_over() const;
  /// How often the file was made anew (by the next program with the same pid) under this reader.
  std::uint32_t incarnation() const;
  /// Time of the last event of the domain that is furthest behind; nothing while all that was seen is read.
  std::optional<std::uint64_t> behind_since_ns() const;

 private:
  using Call = void (*)(void*, const Batch&);
  template <typename Function>
  static void call_back(void* function, const Batch& batch) {
    (*static_cast<Function*>(function))(batch);
  }
  Polled poll_rings(bool all, Call call, void* consumer, std::uint64_t budget_words);
  Polled poll_ring(std::uint16_t domain, Call call, void* consumer, std::uint64_t budget_words);
  void finish_rings(Call call, void* consumer, std::uint64_t now_ns);

  struct State;
  explicit RingReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rtev
