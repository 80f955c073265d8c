// SPDX-License-Identifier: MIT
// What every output format implements: it takes the ordered stream, batch by batch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rtev/error.hpp"
#include "rtev/event.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// Facts about this run, known before the first event.
struct RunHeader {
  std::string version{};  ///< of rtev-bpf
  std::string host{};
  std::string kernel{};
  std::string machine{};  ///< hardware of the host, as uname(2) says: "x86_64"
  std::vector<std::string> command_line{};
  std::uint64_t start_ns = 0;           ///< CLOCK_MONOTONIC when tracing began
  std::uint64_t start_realtime_ns = 0;  ///< CLOCK_REALTIME of the same moment
};

/// Figures of this run, known after the last event. Per-process figures are in the Registry.
struct RunSummary {
  std::uint64_t start_ns = 0;  ///< as in RunHeader
  std::uint64_t end_ns = 0;
  std::array<std::uint64_t, event_kind_count> events{};  ///< by EventKind
  std::uint64_t late = 0;
  std::uint64_t forced = 0;  ///< times the bound on staging memory forced events out early
  struct Drop {
    std::string kind{};  ///< "switch", "wakeup", "exec", ...
    std::uint64_t count = 0;
  };
  /// A kind that counts no records, but times that probes were taken off to spare a program.
  static constexpr std::string_view limited{"limited"};
  /// Likewise processes without a ring whose programs cannot be probed.
  static constexpr std::string_view unprobed{"unprobed"};
  std::vector<Drop> drops{};       ///< of kernel buffers, every kind, zeros included
  std::uint64_t rings_missed = 0;  ///< announced by processes and never readable, or not to their end
  std::uint64_t own_cpu_ns = 0;
  std::uint64_t own_max_rss_bytes = 0;
  bool complete = true;  ///< false: of a recording that lacks its end; only what is in its events is known
};

/// Where finished text or bytes go. write() may block: a slow reader slows the tracer down, never fills its memory.
class Output {
 public:
  virtual ~Output() = default;
  /// False once the other side is gone or the disk is full; error() says why then.
  virtual bool write(std::string_view bytes) = 0;
  /// Several pieces, one behind the other; `ends` says where each ends. What a failure leaves of them is whole pieces.
  virtual bool write_pieces(std::string_view bytes, std::span<const std::size_t> ends) {
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      if (!write(bytes.substr(begin, end - begin))) return false;
      begin = end;
    }
    return true;
  }
  /// What was written is to be good up to here if the tracer is killed.
  virtual bool sync() { return !error(); }
  /// Nothing will be written after this; all that was is to be where others see it.
  virtual bool finish() { return !error(); }
  virtual const std::optional<Error>& error() const = 0;
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void header(const RunHeader& header) = 0;
  /// Events in order of time (but for those flagged late). Payloads are valid during the call.
  virtual void consume(const Batch& batch, const Registry& registry) = 0;
  /// Of what happened before `time_ns` all has been consumed, but for late events. Said while tracing, also when
  /// nothing happens, for sinks that wait for a time.
  virtual void advance(std::uint64_t /*time_ns*/, const Registry& /*registry*/) {}
  /// Hands everything to the Output; called at least once a second and when the stream pauses.
  virtual void flush() = 0;
  virtual void summary(const RunSummary& summary, const Registry& registry) = 0;
};

/// Forwards everything to another sink, which must outlive it: the base of sinks that add to a stream on its way.
class ForwardingSink : public Sink {
 public:
  explicit ForwardingSink(Sink& sink) : sink_(sink) {}

  void header(const RunHeader& header) override { sink_.header(header); }
  void consume(const Batch& batch, const Registry& registry) override { sink_.consume(batch, registry); }
  void advance(std::uint64_t time_ns, const Registry& registry) override { sink_.advance(time_ns, registry); }
  void flush() override { sink_.flush(); }
  void summary(const RunSummary& summary, const Registry& registry) override { sink_.summary(summary, registry); }

 protected:
  Sink& sink_;
};

}  // namespace rtev
