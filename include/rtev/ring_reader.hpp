// SPDX-License-Identifier: MIT
// Reads the runtime events of one OCaml 5 process, running or ended, from its ring file.
//
//   auto ring = rtev::RingReader::open("/run/app/1234.events");
//   if (!ring) return report(ring.error());
//   ring->poll([&](const rtev::Batch& batch) {  // one call a batch
//     for (const rtev::Event& event : batch.events()) histogram.add(event);
//   });
//   // ring->accounting(): every word is delivered, lost or unread
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rtev/error.hpp"
#include "rtev/event.hpp"
#include "rtev/names.hpp"

namespace rtev {

/// Accounting of the words (of 8 bytes) of a ring. Exact between any two polls:
/// written == delivered + lost + before_attach + corrupt + unread.
struct Accounting {
  /// Words published by the program, as far as the reader has seen. If the ring claims more than a program can write,
  /// the rest is not counted.
  std::uint64_t written = 0;
  std::uint64_t delivered = 0;      ///< words of delivered events, and of the padding between them
  std::uint64_t lost = 0;           ///< words overwritten before they were read
  std::uint64_t before_attach = 0;  ///< words published before the ring was opened, and not delivered
  std::uint64_t corrupt = 0;        ///< words skipped because they are no valid messages
  std::uint64_t unread = 0;         ///< words published and not read yet
  std::uint64_t events = 0;         ///< events delivered (a number of events: not part of the sum)

  bool balanced() const { return written == delivered + lost + before_attach + corrupt + unread; }
  /// Adds up; a sum beyond 2^64 stays at 2^64 - 1.
  Accounting& operator+=(const Accounting& other);
  bool operator==(const Accounting&) const = default;
};

/// The result of a poll.
struct Polled {
  std::uint64_t events = 0;
  std::uint64_t delivered_words = 0;
  std::uint64_t lost_words = 0;
  std::uint64_t corrupt_words = 0;
  /// Largest share of a ring that was filled with unread words, 0 to 1. Near 1, the next poll may come too late.
  double fullest = 0;
  /// False if words were left for the next poll because the budget was used up.
  bool complete = true;
};

/// The writer of a ring file, from the file's mark.
struct Producer {
  std::string name;  ///< printable ASCII, e.g. "librtev"; 1 to 47 bytes
  Family family;     ///< table of its ids

  bool operator==(const Producer&) const = default;
};

/// Reads every domain's ring of one file. Any content of the file is safe. The owner may truncate the file meanwhile: a
/// SIGBUS handler, installed with the first reader of the process, handles this, and passes on faults outside of
/// readers. One thread at a time may use a reader; different readers are independent.
class RingReader {
 public:
  /// Events that were written before the ring was opened.
  enum class History {
    deliver,  ///< deliver those that are still in the ring
    skip,     ///< begin with the next event; older words count as before_attach
  };
  struct Options {
    History history = History::deliver;
    /// Added to every timestamp, in ns: the host's CLOCK_MONOTONIC minus that of the process's time namespace.
    std::int64_t clock_offset_ns = 0;
    /// Source::slot of the events, 0 to Source::max_slot: distinguishes the events of several readers.
    std::uint32_t slot = 0;
  };

  /// Opens a ring file. Error::code is EAGAIN if the header is not (yet) valid: a ring that is just being created can
  /// be opened moments later. Refuses everything but a regular file, and does not follow a symbolic link at `path`.
  static Result<RingReader> open(const std::filesystem::path& path, const Options& options);
  static Result<RingReader> open(const std::filesystem::path& path) { return open(path, Options{}); }
  /// The same for an open descriptor, which the reader takes over and closes, also on failure. `name` is for messages.
  static Result<RingReader> adopt(int fd, std::string name, const Options& options);

  RingReader(RingReader&&) noexcept;
  RingReader& operator=(RingReader&&) noexcept;
  ~RingReader();

  /// Most words that one poll reads, over all rings together; it may exceed the budget by up to 2048 words.
  static constexpr std::uint64_t default_budget_words = 1 << 20;

  /// Reads what the program published since the last poll and calls `consumer(const Batch&)` with each batch. A batch
  /// is of one domain, and the batches of a domain come in order; domains are not merged by time. Domains that the
  /// budget did not reach come first in the next poll. The consumer must not call poll() of any reader. An exception of
  /// the consumer ends the poll; its batch counts as delivered.
  template <typename Consumer>
  Polled poll(Consumer&& consumer, std::uint64_t budget_words = default_budget_words) {
    return poll_rings(true, Call([&](const Batch& batch) { consumer(batch); }), budget_words);
  }
  /// The same for one domain.
  template <typename Consumer>
  Polled poll_domain(std::uint16_t domain, Consumer&& consumer, std::uint64_t budget_words = default_budget_words) {
    return poll_ring(domain, Call([&](const Batch& batch) { consumer(batch); }), budget_words);
  }
  /// A loss is delivered with the next event of its domain. This delivers losses that no event followed, with the time
  /// `now_ns` (ns of CLOCK_MONOTONIC). For a ring that is not written any more.
  template <typename Consumer>
  void finish(Consumer&& consumer, std::uint64_t now_ns) {
    finish_rings(Call([&](const Batch& batch) { consumer(batch); }), now_ns);
  }

  struct Layout {
    std::uint32_t rings;       ///< rings in the file, 1 to max_domains: the most domains the program can have
    std::uint64_t ring_words;  ///< capacity of each ring in words of 8 bytes, a power of two
    bool has_names;            ///< the file has names of user events; false for OCaml 5.0
  };
  Layout layout() const;
  /// The writer of the file; nothing for files of OCaml's runtime.
  std::optional<Producer> producer() const;
  /// Number of rings that hold or held events.
  std::uint32_t active_domains() const;
  /// Of one domain, or the sum over all.
  Accounting accounting(std::uint16_t domain) const;
  Accounting accounting() const;
  /// Name of a user event; empty if it has none (yet). Valid until the next poll.
  std::string_view user_event_name(std::uint16_t id) const;
  /// True after the owner truncated the file: words that were not read before count as lost. False again if a later
  /// program with the same pid creates the file anew.
  bool truncated() const;
  /// How often a later program with the same pid created the file anew while this reader had it open. Its events follow
  /// those of the program before.
  std::uint32_t incarnation() const;

 private:
  friend struct RingReaderAccess;

  /// A reference to a function object of any type.
  class Call {
   public:
    template <typename Function>
    explicit Call(const Function& function)
        : function_(&function),
          call_([](const void* object, const Batch& batch) { (*static_cast<const Function*>(object))(batch); }) {}
    void operator()(const Batch& batch) const { call_(function_, batch); }

   private:
    const void* function_;
    void (*call_)(const void*, const Batch&);
  };
  Polled poll_rings(bool all, Call call, std::uint64_t budget_words);
  Polled poll_ring(std::uint16_t domain, Call call, std::uint64_t budget_words);
  void finish_rings(Call call, std::uint64_t now_ns);

  struct State;
  explicit RingReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rtev
