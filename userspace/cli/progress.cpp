// SPDX-License-Identifier: MIT
#include "cli/progress.hpp"

#include <poll.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace rtev::cli {
namespace {

constexpr std::uint64_t interval_ns = 500'000'000;
constexpr std::string_view clear_line = "\r\x1b[K";

/// Skips the output if the terminal is stopped (Ctrl-S): the recording must not wait for it.
void put(int fd, std::string_view text) {
  pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, text.data(), text.size());
}

}  // namespace

void Progress::header(const RunHeader& header) {
  start_ns_ = shown_ns_ = monotonic_ns();
  sink_.header(header);
}

void Progress::consume(const Batch& batch, const Registry& registry) {
  events_ += batch.events().size();
  for (const Event& event : batch.events()) {
    if (event.kind != EventKind::lost) continue;
    const bool dropped = static_cast<LossReason>(event.id) == LossReason::dropped;
    if (const auto loss = batch.payload_as<Loss>(event)) (dropped ? dropped_records_ : lost_words_) += loss->words;
  }
  sink_.consume(batch, registry);
}

void Progress::flush() {
  sink_.flush();
  const std::uint64_t now = monotonic_ns();
  if (now - shown_ns_ >= interval_ns) show(now);
}

void Progress::show(std::uint64_t now) {
  const double seconds = static_cast<double>(now - shown_ns_) / 1e9;
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(events_ - shown_events_) / seconds);
  TextBuffer line;
  line.add(clear_line, "recording: ", (now - start_ns_) / 1'000'000'000, "s  ");
  line.add_grouped(events_);
  line.add(" events  ");
  line.add_grouped(rate);
  line.add("/s  ");
  add_size(line, size_());
  line.add("  ");
  line.add_grouped(lost_words_);
  line.add(" words lost");
  if (dropped_records_ > 0) {
    line.add("  ");
    line.add_grouped(dropped_records_);
    line.add(" scheduler events dropped");
  }
  put(fd_, line.text());
  shown_ns_ = now;
  shown_events_ = events_;
}

void Progress::summary(const RunSummary& summary, const Registry& registry) {
  put(fd_, clear_line);
  sink_.summary(summary, registry);
}

}  // namespace rtev::cli
