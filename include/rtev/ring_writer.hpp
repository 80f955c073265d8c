// SPDX-License-Identifier: MIT
// Publishes runtime events from a C++23 program, in a ring file that OCaml's readers, RingReader and rtev-bpf
// understand.
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
#include "rtev/names.hpp"

namespace rtev {

class WriterState;

/// The value of a user event.
enum class UserType : std::uint8_t {
  unit,     ///< nothing
  integer,  ///< a signed 32-bit number: the range of integer events in OCaml's runtime
  span,     ///< begin and end
  custom,   ///< up to max_custom_bytes bytes
};

/// A registered user event.
struct UserEvent {
  std::uint16_t id;
  UserType type;
};

/// Limits of user events, from OCaml's runtime/runtime_events.c: bytes of a custom payload, number of user events,
/// bytes of a name.
inline constexpr std::size_t max_custom_bytes = 1024, max_user_events = 8192, max_user_event_name_bytes = 127;

/// The result of writing an event. With all but `written` the ring is unchanged.
enum class WriteStatus : std::uint8_t {
  written,
  off,         ///< not started, paused or stopped; also in a forked child that could not create its ring
  too_large,   ///< the message does not fit into the ring, or the payload is larger than max_custom_bytes
  wrong_type,  ///< the event was registered with another UserType
  bad_id,      ///< no such user event, an id of more than 13 bits, or a lifecycle event that RingWriter writes
};

std::string_view to_string(WriteStatus status);  ///< for messages, e.g. "runtime events are off"

/// Writes the events of one domain, usually those of one thread. Different domains may be written to at the same time;
/// one domain only by one thread at a time. A call takes the timestamp, writes a message of 2 to 130 words and returns:
/// it neither blocks nor allocates nor makes system calls, except for the first event after a fork. The oldest events
/// are overwritten, even if they were not read. This is a handle: copies refer to the same domain. Do not use it
/// after the RingWriter is destroyed.
class DomainWriter {
 public:
  WriteStatus begin(Phase phase);
  WriteStatus end(Phase phase);
  WriteStatus counter(Counter counter, std::uint64_t value);
  /// RingWriter itself writes ring_start, ring_stop, ring_pause, ring_resume and a child's fork_child. The program may
  /// write fork_parent with the child's pid, and domain_spawn and domain_terminate with the pid of the process.
  WriteStatus lifecycle(Lifecycle what, std::int64_t value);
  /// The number of blocks allocated since the last call, by size: see alloc_bucket_count.
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

/// The ring file of this process: `<pid>.events` with one ring for each domain, as OCaml 5's runtime creates it. It
/// appears complete or not at all, and replaces a file that an earlier process of the same pid left. A page of a ring
/// takes memory once it is written to. If the file system is full, that write kills the process (SIGBUS), as with
/// OCaml's runtime.
///
/// After fork() the child does not write to its parent's ring: it unmaps it, and creates its own with its first event.
/// A child that calls exec at once creates no file. All functions are thread-safe; start(), pause(),
/// resume() and stop() write a lifecycle event and count as a write to their domain. Functions with a parameter
/// `domain` throw std::out_of_range if there is no such domain.
class RingWriter {
 public:
  enum class Format : std::uint8_t {
    before_5_1,  ///< of OCaml 5.0: without user events, and without the mark that RingReader::producer() reads
    since_5_1,   ///< of OCaml 5.1 and later
  };
  struct Options {
    /// Directory of the file, which must exist. Empty: the current directory at the time of create().
    std::string directory{};
    /// Rings in the file, 1 to max_domains. OCaml creates 128; they take no space until they are used.
    std::uint32_t domains = 128;
    /// Base-2 logarithm of the words in each ring, 6 to 24. A typical event takes 2 or 3 words.
    unsigned log2_words = 16;
    /// False: no file is created and nothing is written before start().
    bool start = true;
    /// True: the file stays when the writer stops.
    bool preserve = false;
    Format format = Format::since_5_1;
    /// The family of the ids of phases and counters that the program writes.
    Family family = Family::since_5_3;
    /// Returns the time in ns; nullptr: CLOCK_MONOTONIC. Times of a domain must not decrease. rtev-bpf merges processes
    /// by CLOCK_MONOTONIC: events with times of another clock appear at wrong places there.
    std::uint64_t (*clock)() = nullptr;

    /// The options that the environment sets for OCaml programs: OCAML_RUNTIME_EVENTS_START, _DIR, _PRESERVE, and e= of
    /// OCAMLRUNPARAM (or CAMLRUNPARAM). A set-user-id program (AT_SECURE) gets the defaults.
    static Options from_environment();
  };

  /// Creates the writer, and the file if Options::start. Errors: options out of range, another writer or OCaml runtime
  /// of this process has the same file, or the file system's.
  static Result<RingWriter> create(const Options& options);

  RingWriter(RingWriter&&) noexcept;
  RingWriter& operator=(RingWriter&&) noexcept;
  /// Stops. No thread may be writing any more.
  ~RingWriter();

  /// Creates the file and begins; does nothing if that was done before. Fails after stop(): a program has one ring.
  Result<void> start(std::uint32_t domain = 0);
  /// Nothing is written between pause() and resume(), except an event that another thread is just writing. Both write
  /// their lifecycle event; OCaml's runtime does not write ring_pause.
  void pause(std::uint32_t domain = 0);
  void resume(std::uint32_t domain = 0);
  /// Stops for good and removes the file, unless Options::preserve. Events that other threads write meanwhile get lost;
  /// the ring stays mapped until the writer is destroyed.
  void stop(std::uint32_t domain = 0);

  /// Registers a user event, before or after start(). The same name and type give the same event. Errors: the name is
  /// empty, longer than max_user_event_name_bytes, has a NUL byte or is registered with another type; there are
  /// max_user_events already; Format::before_5_1.
  Result<UserEvent> register_event(std::string_view name, UserType type);

  DomainWriter domain(std::uint32_t index);
  std::uint32_t domains() const;
  /// The file; empty before start().
  std::string path() const;
  /// Words (of 8 bytes) written to a domain's ring since the file was created, padding included: Accounting::written of
  /// a reader. Exact while the domain does not write.
  std::uint64_t words_written(std::uint32_t domain) const;

 private:
  explicit RingWriter(std::unique_ptr<WriterState> state);
  std::uint32_t checked(std::uint32_t domain) const;
  std::unique_ptr<WriterState> state_;
};

}  // namespace rtev
