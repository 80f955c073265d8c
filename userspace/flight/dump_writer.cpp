// SPDX-License-Identifier: MIT
#include "flight/dump_writer.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/pauses/blame.hpp"
#include "analysis/pauses/pauses_sink.hpp"
#include "analysis/report_text.hpp"
#include "base/text_format.hpp"
#include "formats/fxt/fxt_sink.hpp"
#include "formats/output/gzip_output.hpp"
#include "formats/output/output.hpp"
#include "stream/tee_sink.hpp"

namespace rtev::flight {
namespace {

std::string verdict_of(Pauses& pauses) {
  const PausesReport report = pauses.report();
  if (report.worst.empty()) return {};
  const PauseDetails& worst = *report.worst.front();
  return fmt::format("{} pause of {}: {}", Duration{worst.duration_ns()}, ProcessName{worst.comm, worst.domain.pid},
                     blame_text(worst, blame_of(worst), report.counts.switches_seen(), *report.stacks));
}

}  // namespace

/// A file while it is written.
class DumpWriter::Dump {
 public:
  Dump(DumpDirectory& directory, Begin begin)
      : directory_(directory),
        name_(std::move(begin.name)),
        result_{.cause = std::move(begin.cause), .path = directory.path_of(name_)} {
    auto fd = directory.create(name_);
    if (!fd) {
      result_.error = std::move(fd.error());
      return;
    }
    file_ = std::make_unique<FdOutput>(std::move(*fd), result_.path);
    file_->keep_free(directory.min_free());
    builder_.header(begin.header);
    add(*begin.state);
  }

  void add(const Chunk& chunk) {
    if (failed()) return;
    for (const auto& [index, info] : chunk.processes) {
      seen_.insert(index);
      if (auto& known = processes_[index]; known != info) {
        known = info;
        check(builder_.process(index, *info), "processes");
      }
    }
    for (const Chunk::Ring& ring : chunk.rings) add(ring);
    for (const Chunk::Name& name : chunk.names) {
      check(builder_.user_event(name.slot, name.id, name.text), "names of user events");
      slots_[name.slot].names.insert(name.id);
    }
    for (const StackIndex stack : chunk.unknown_stacks)
      if (known_stacks_.insert(stack).second) check(builder_.reserved_stack(stack), "stacks");
    add_stacks(chunk);
    const Batch batch = chunk.batch();
    for (const Event& event : batch.events()) builder_.add(event, batch.payload(event));
    builder_.hand_out();
    if (chunk.is_state) {
      for (const Event& event : chunk.events) ++state_events_[static_cast<std::size_t>(event.kind)];
    } else {
      result_.events += chunk.events.size();
    }
    if (file_->is_disk_low() && !failed())
      result_.error = Error{.what = "cannot write a dump to",
                            .subject = result_.path,
                            .why = "less than --min-free is free on its disk",
                            .hint = "free some space, or lower --min-free"};
  }

  void add_stacks(const Chunk& chunk) {
    for (const Chunk::Frame& frame : chunk.frames) check(builder_.frame(frame.index, frame.frame), "frames of stacks");
    for (const Chunk::Stack& stack : chunk.stacks) {
      known_stacks_.insert(stack.index);
      check(builder_.stack(stack.index, stack.caller, stack.frame), "stacks");
    }
  }

  DumpResult end(End end) {
    if (!failed()) {
      std::erase_if(end.list.processes, [&](const auto& process) {
        const auto before = end.base.find(process.first);
        return before != end.base.end() && before->second.ended && !seen_.contains(process.first);
      });
      // A summary counts the events of its file.
      for (std::size_t kind = 0; kind < event_kind_count; ++kind) end.summary.events[kind] += state_events_[kind];
      builder_.finish(end.summary, std::move(end.list));
      result_.verdict = verdict_of(pauses_);
      if (!gzip_->finish() || !file_->finish()) result_.error = gzip_->error() ? gzip_->error() : file_->error();
    }
    if (!failed()) {
      if (auto completed = directory_.complete(name_, file_->fd()); !completed)
        result_.error = std::move(completed.error());
    }
    if (file_) {
      result_.bytes = file_->written();
      if (failed()) directory_.discard(name_);
    }
    if (!failed()) result_.removed = directory_.make_room(name_);
    return std::move(result_);
  }

 private:
  struct Slot {
    ProcessIndex process = 0;
    std::unordered_set<std::uint16_t> names{};
  };

  bool failed() const { return result_.error.has_value(); }
  void check(bool is_good, std::string_view what) {
    if (is_good || failed()) return;
    result_.error = Error{.what = "cannot write a dump to",
                          .subject = result_.path,
                          .why = fmt::format("it has too many {}", what),
                          .hint = "a shorter --keep holds fewer"};
  }
  void add(const Chunk::Ring& ring) {
    Slot& slot = slots_[ring.slot];
    if (slot.process != ring.process) {
      // The names of a slot stay until they are changed.
      for (const std::uint16_t id : slot.names) check(builder_.user_event(ring.slot, id, {}), "names of user events");
      slot = {.process = ring.process};
    }
    check(builder_.ring(ring.slot, ring.process, ring.domains, ring.producer), "rings");
  }

  /// Output of the sink: the file, if it could be made.
  class Compressed final : public Output {
   public:
    explicit Compressed(Dump& dump) : dump_(dump) {}
    bool write(std::string_view bytes) override {
      if (dump_.failed()) return false;
      if (!dump_.gzip_) dump_.gzip_ = std::make_unique<GzipOutput>(*dump_.file_);
      if (dump_.gzip_->write(bytes)) return true;
      dump_.result_.error = dump_.gzip_->error();
      return false;
    }
    const std::optional<Error>& error() const override { return dump_.result_.error; }

   private:
    Dump& dump_;
  };

  DumpDirectory& directory_;
  std::string name_;
  DumpResult result_;
  std::unique_ptr<FdOutput> file_;
  std::unique_ptr<GzipOutput> gzip_;
  Compressed output_{*this};
  FxtSink fxt_{output_, {.max_held_ns = 0}};
  Pauses pauses_{{.top = 1}};
  TeeSink tee_{fxt_, pauses_};
  StreamBuilder builder_{tee_};
  std::unordered_map<ProcessIndex, std::shared_ptr<const ProcessInfo>> processes_;
  std::unordered_set<ProcessIndex> seen_;
  std::unordered_map<std::uint32_t, Slot> slots_;
  std::unordered_set<StackIndex> known_stacks_;
  decltype(RunSummary::events) state_events_{};  ///< of before its time, by kind
};

DumpWriter::DumpWriter(DumpDirectory directory, Done done) : directory_(std::move(directory)), done_(std::move(done)) {}

DumpWriter::~DumpWriter() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::uint64_t DumpWriter::begin(Begin begin) {
  put(std::move(begin));
  return ++begun_;
}

void DumpWriter::add(std::shared_ptr<const Chunk> chunk) {
  waiting_bytes_ += chunk->bytes();
  put(std::move(chunk));
}

void DumpWriter::end(End end) {
  put(std::move(end));
}

void DumpWriter::wait() {
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

void DumpWriter::put(Request request) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(request));
  }
  work_.notify_one();
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void DumpWriter::run() {
  // The traced programs, and the thread that reads rings, come first.
  constexpr int nice = 10;
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_OTHER, &none);
  ::setpriority(PRIO_PROCESS, 0, nice);
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return !queue_.empty() || ends_; });
    if (queue_.empty()) return;
    Request request = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    carry_out(std::move(request));
    lock.lock();
    busy_ = false;
    progress_.notify_all();
  }
}

void DumpWriter::carry_out(Request request) {
  if (auto* const begin = std::get_if<Begin>(&request)) {
    dump_ = std::make_unique<Dump>(directory_, std::move(*begin));
  } else if (const auto* const chunk = std::get_if<std::shared_ptr<const Chunk>>(&request)) {
    if (dump_) dump_->add(**chunk);
    waiting_bytes_ -= (*chunk)->bytes();
  } else if (dump_) {
    DumpResult result = dump_->end(std::move(std::get<End>(request)));
    dump_.reset();
    result.number = ++finished_;
    done_(result);
  }
}

}  // namespace rtev::flight
