// SPDX-License-Identifier: MIT
#include "bench/recorded.hpp"

#include <fcntl.h>

#include <algorithm>
#include <stdexcept>

#include "base/unique_fd.hpp"
#include "recording/recording_file.hpp"
#include "stream/sink.hpp"

namespace rtev::bench {
namespace {

class Figures final : public Sink {
 public:
  void header(const RunHeader&) override {}
  void flush() override {}
  void summary(const RunSummary&, const Registry&) override {}

  void consume(const Batch& batch, const Registry&) override {
    for (const Event& event : batch.events()) {
      recorded.events += event.kind < EventKind::lost;
      recorded.scheduler += event.kind == EventKind::sched_switch || event.kind == EventKind::wakeup;
      recorded.first_ns = std::min(recorded.first_ns, event.time);
      recorded.last_ns = std::max(recorded.last_ns, event.time);
      if (event.kind != EventKind::lost || event.id == static_cast<std::uint16_t>(LossReason::dropped)) continue;
      const auto loss = batch.payload_as<Loss>(event);
      if (!loss) continue;
      recorded.lost_words += loss->words;
      recorded.gaps.push_back(loss->to_ns);
    }
  }

  Recorded recorded;
};

}  // namespace

Recorded recorded_in(const std::string& file) {
  Figures figures;
  auto recording = RecordingFile::open(UniqueFd(::open(file.c_str(), O_RDONLY | O_CLOEXEC)), file);
  if (!recording || !*recording || !(*recording)->replay(figures)) throw std::runtime_error("cannot read " + file);
  return figures.recorded;
}

}  // namespace rtev::bench
