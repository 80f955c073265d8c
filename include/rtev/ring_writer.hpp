// SPDX-License-Identifier: MIT
// Publishes runtime events from a C++23 program, in the file that OCaml's own readers and rtev-bpf understand.
//
//   auto writer = rtev::RingWriter::create({.directory = "/run/app", .domains = 4});
//   if (!writer) return report(writer.error());
//   const auto request = writer->register_event("request", rtev::UserType::span);
//   rtev::DomainWriter events = writer->domain(0);
//   events.begin(*request);
//   events.end(*request);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rtev/error.hpp"
#include "rtev/event.hpp"
#include "rtev/layout.hpp"
#include "rtev/names.hpp"

namespace rtev {

class WriterState;

/// What a user event carries. The file does not say it, only each message does.
enum class UserType : std::uint8_t {
  unit,     ///< nothing
  integer,  ///< a signed 32-bit number, which is what OCaml's runtime keeps of an int
  span,     ///< begin and end
  custom,   ///< up to max_custom_bytes bytes
};

/// A registered user event.
struct UserEvent {
  std::uint16_t id;
  UserType type;
};

/// Largest payload of a custom user event: the buffer that OCaml's runtime encodes into.
inline constexpr std::size_t max_custom_bytes = 1024;

/// What became of an event. None of it costs an allocation, so that the caller may ignore it where it does not matter.
enum class WriteStatus : std::uint8_t {
  written,
  off,         ///< not started, paused or stopped; also in a forked child that could not make a ring of its own
  too_large,   ///< the message does not fit into the ring, or the payload is larger than max_custom_bytes
  wrong_type,  ///< the event was registered with another UserType
  bad_id,      ///< no such user event, an id of more than 13 bits, or a lifecycle event of the ring itself
};

std::string_view to_string(WriteStatus status);

/// The events of one domain: what a program does one thing at a time in, a thread as a rule. Any number of domains may
/// write at the same time, but one domain is written to by one thread at a time. Never blocks, never fails for want of
/// a reader: the oldest events make room for new ones. Timestamps are taken by each call. A handle: copies are the same
/// domain, good for the life of the RingWriter.
class DomainWriter {
 public:
  WriteStatus begin(Phase phase);
  WriteStatus end(Phase phase);
  WriteStatus counter(Counter counter, std::uint64_t value);
  /// Ring starts and stops, pauses and resumes are written by RingWriter. Left to the program: fork_parent with the
  /// child's pid after a fork, domain_spawn and domain_terminate with the pid of the process.
  WriteStatus lifecycle(Lifecycle what, std::int64_t datum);
  /// Blocks allocated since the last call, by size: see alloc_bucket_count.
  WriteStatus alloc(std::span<const std::uint64_t, alloc_bucket_count> buckets);

  WriteStatus begin(UserEvent event);
  WriteStatus end(UserEvent event);
  WriteStatus write(UserEvent event);
  WriteStatus write(UserEvent event, std::int32_t value);
  WriteStatus write(UserEvent event, std::span<const std::byte> bytes);

 private:
  friend class RingWriter;
  DomainWriter(WriterState& state, std::uint32_t index) : state_(&state), index_(index) {}

  WriteStatus runtime(unsigned type, std::uint64_t id, std::span<const std::uint64_t> payload);
  WriteStatus user(UserEvent event, UserType type, unsigned message_type, std::span<const std::uint64_t> payload);
  WriteStatus append(std::uint64_t first_word, std::span<const std::uint64_t> payload);

  WriterState* state_;
  std::uint32_t index_;
};

/// The file of one process: `<pid>.events` with one ring for each domain, as OCaml 5's runtime makes it. It appears
/// complete or not at all; a file that an earlier process of the same pid left behind is replaced. Pages of a ring take
/// memory once they are written to. On a file system that is full, that write kills the process (SIGBUS), as it does
/// with OCaml's runtime.
///
/// After a fork (of the C library), the parent's ring is unmapped in the child, which gets its own with its first
/// event: fork and exec leaves nothing behind. Functions are safe to call from any thread at any time, but those that
/// write a lifecycle event for a domain count as a write to that domain.
class RingWriter {
 public:
  enum class Format : std::uint8_t {
    before_5_1,  ///< as OCaml 5.0: no user events, and no mark that tells the file from one of OCaml's
    since_5_1,
  };
  struct Options {
    /// Where the file goes; empty: the current directory, as it is when create() is called.
    std::string directory{};
    /// Rings in the file, 1 to max_rings. OCaml makes 128; they take no space until they are used.
    std::uint32_t domains = 128;
    /// Base-2 logarithm of the words in each ring, 6 to 24. A typical event takes 2 or 3 words.
    unsigned log2_words = 16;
    /// False: nothing is made or written before start().
    bool start = true;
    /// True: the file stays when the writer stops.
    bool preserve = false;
    Format format = Format::since_5_1;
    /// How the ids of phases and counters are to be read.
    Family family = Family::since_5_3;
    /// The time of an event, in ns; by default CLOCK_MONOTONIC, which rtev-bpf merges by. Must not go back within a
    /// domain. What another clock says puts events in the wrong place of a merged stream.
    std::uint64_t (*clock)() = nullptr;

    /// What the environment asks OCaml programs for: OCAML_RUNTIME_EVENTS_START, _DIR, _PRESERVE, and e= of
    /// OCAMLRUNPARAM (or CAMLRUNPARAM). Nothing is read in a program with privileges of its file (AT_SECURE).
    static Options from_environment();
  };

  /// Makes the writer, and its file if Options::start. Errors: options out of range, or what the file system said.
  static Result<RingWriter> create(const Options& options);

  RingWriter(RingWriter&&) noexcept;
  RingWriter& operator=(RingWriter&&) noexcept;
  /// Stops. No domain may be writing any more.
  ~RingWriter();

  /// Makes the file and begins; nothing to do if that was done. An image has one ring in its life: fails after stop().
  Result<void> start(std::uint32_t domain = 0);
  /// Nothing is written between pause() and resume(), but for the event that another domain is just writing. Unlike
  /// OCaml's runtime, whose pause event never reaches the ring, both leave their event.
  void pause(std::uint32_t domain = 0);
  void resume(std::uint32_t domain = 0);
  /// Ends it for good: removes the file unless it is to be preserved. Events that other threads write meanwhile go
  /// nowhere; the memory stays until the writer is gone.
  void stop(std::uint32_t domain = 0);

  /// Registers a user event, before or after start(). The same name and type give the same event. Errors: a name that
  /// is empty, longer than 127 bytes, holds a NUL or is taken with another type; all 8192 slots in use;
  /// Format::before_5_1.
  Result<UserEvent> register_event(std::string_view name, UserType type);

  /// Throws std::out_of_range if there is no such domain.
  DomainWriter domain(std::uint32_t index);
  std::uint32_t domains() const;
  /// The file; empty before start().
  std::string path() const;
  /// Words written to a domain's ring since its file was made, padding included: what a reader should account for.
  /// Exact while the domain does not write.
  std::uint64_t words_written(std::uint32_t domain) const;

 private:
  explicit RingWriter(std::unique_ptr<WriterState> state);
  std::uint32_t checked(std::uint32_t domain) const;
  std::unique_ptr<WriterState> state_;
};

}  // namespace rtev
