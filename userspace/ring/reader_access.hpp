// SPDX-License-Identifier: MIT
// Interface of RingReader for rtev-bpf. The tracer knows the program image of a ring file, when the image began and
// ended, and has saved copies of rings whose file was removed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/page_check.hpp"
#include "base/unique_fd.hpp"
#include "ring/layout.hpp"
#include "rtev/ring_reader.hpp"

namespace rtev {

/// The program image whose ring is read. A later image with the same pid reuses the file in place: a reader with an
/// owner stops reading the file then. Times in ns of the host's CLOCK_MONOTONIC.
struct RingOwner {
  /// With History::skip: a ring whose first event has this time or a later one is still read from its beginning,
  /// because its program started after the tracer.
  std::uint64_t deliver_since_ns = UINT64_MAX;
  /// The program began while the tracer ran: what it overwrote before the ring was opened is lost, not from before.
  bool began_traced = false;
  /// When the ring was created, 0 if unknown: opening fails with EAGAIN while the file still holds events of an earlier
  /// program with the same pid.
  std::uint64_t created_ns = 0;
  /// When the image ended, UINT64_MAX if unknown: opening fails with EAGAIN unless the file holds events, and none of
  /// a later program with the same pid.
  std::uint64_t ended_ns = UINT64_MAX;
  /// Called after the first words of a domain were read; false if another image may have reused the file before. Then
  /// nothing of the domain is delivered.
  std::function<bool()> is_latest_ring{};
  /// While the file is being changed, opening fails with EAGAIN. Of words, indices and names, what is not ready is read
  /// by a later poll: polls are not complete then, and opening fails with EAGAIN. Absent pages are requested.
  FileChecks file{};
  /// Asked before names of user events take more memory. False: the name is not kept, and the event has its number.
  std::function<bool(std::size_t bytes)> may_use_memory{};
};

struct RingReaderAccess {
  /// RingReader::adopt() for the ring of a known image.
  static Result<RingReader> adopt(UniqueFd fd, std::string name, const RingReader::Options& options, RingOwner owner);

  /// RingReader::poll(), but only of domains up to the highest that has written so far, and the next 8: OCaml's runtime
  /// numbers domains from 0. Much cheaper for a file of 128 rings and two domains; poll() finds the domains beyond.
  template <typename Consumer>
  static Polled poll_used(RingReader& reader, Consumer&& consumer,
                          std::uint64_t budget_words = RingReader::default_budget_words) {
    return reader.poll_rings(false, RingReader::Call([&](const Batch& batch) { consumer(batch); }), budget_words);
  }

  /// See RingMap::unload_pages().
  static void unload_pages(const RingReader& reader);
  /// Events carry this Source::slot from now on.
  static void set_slot(RingReader& reader, std::uint32_t slot);
  /// The image has ended (at `ended_ns` if known): stops reading when the file is reused.
  static void seal(RingReader& reader, std::uint64_t ended_ns = UINT64_MAX);
  /// The image published at least `written` words of a domain in all: those that are not in the file are counted as
  /// lost by finish().
  static void expect_words(RingReader& reader, std::uint16_t domain, std::uint64_t written);
  /// Continues in a copy that was saved of the ring before its file was truncated or reused, with the words that were
  /// not read yet. Call it before finish(). Fails if it is no ring file, or
  /// one of another size.
  static Result<void> continue_in_copy(RingReader& reader, UniqueFd fd);
  /// True after another image reused the file. The words that the owner wrote after the last poll are lost; their
  /// number is unknown.
  static bool taken_over(const RingReader& reader);
  /// Counts the words as lost that were not read, because they would take too long. Call it before finish().
  static void give_up(RingReader& reader);
  /// True if destroying the reader may wait. See FileChecks.
  static bool is_being_changed(const RingReader& reader);
  /// Number of the last domain that is known to have written, plus one.
  static std::uint32_t used_domains(const RingReader& reader);
  /// Where the parts of the file are.
  static const Layout& layout(const RingReader& reader);
  /// Time of the last event delivered of the domain that is furthest behind; nothing if no domain has unread words.
  static std::optional<std::uint64_t> behind_since_ns(const RingReader& reader);
};

}  // namespace rtev
