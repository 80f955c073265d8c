// SPDX-License-Identifier: MIT
// Replay of recordings that are whole, cut or damaged, and of other files.
#include "recording/replay.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "formats/text/run_summary.hpp"
#include "rtev/fxt_writer.hpp"
#include "stream/recording_layout.hpp"
#include "unit/recording/recording.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr;

/// A stream with a bit of everything, made from a seed: processes come, exec, change and go.
class RandomStream {
 public:
  explicit RandomStream(std::uint32_t seed) : random_(seed) {}

  Recording& run(int batches, int events) {
    recording_.header(make_header());
    for (int i = 0; i < batches; ++i) {
      change_info();
      make_batch(below(events) + 1);
      if (below(3) == 0) recording_.flush();
    }
    recording_.end(registry_);
    return recording_;
  }

 private:
  struct Ring {
    std::uint32_t slot;
    ProcessIndex process;
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  std::string text() { return hostile_strings()[below(hostile_strings().size())].substr(0, below(12)); }

  void change_info() {
    if (rings_.size() < 2 || below(4) == 0) {
      ProcessInfo info = World::default_info();
      info.pid = static_cast<std::int32_t>(1 + below(1000));
      info.family = below(2) == 0 ? Family::since_5_3 : Family::before_5_3;
      info.comm = text();
      const ProcessIndex process = registry_.add_process(info);
      const std::uint32_t slot =
          registry_.add_ring({.process = process, .domains = 4, .user_event_name = [this](std::uint16_t id) {
                                return id < names_.size() ? std::string_view(names_[id]) : std::string_view{};
                              }});
      rings_.push_back({slot, process});
    }
    if (below(3) == 0) names_[below(names_.size())] = text();
    ProcessInfo& info = registry_.process(rings_[below(rings_.size())].process);
    if (below(4) == 0) info.ring_path = text();
    if (below(4) == 0) info.ring = RingState::paused;
    info.words.events += below(10);
    if (rings_.size() > 6) {
      const Ring gone = rings_.front();
      rings_.erase(rings_.begin());
      registry_.process(gone.process).ended = true;
      registry_.remove_ring(gone.slot);
      registry_.retire_process(gone.process);
    }
  }

  Thread thread() {
    if (below(4) == 0) return make_thread(0, 0, "swapper/" + std::to_string(below(3)), false);
    Thread thread = make_thread(static_cast<std::int32_t>(1 + below(20)), static_cast<std::int32_t>(1 + below(40)),
                                text(), below(2) == 0);
    thread.domain = static_cast<std::int32_t>(below(4)) - 1;
    thread.role = static_cast<ThreadRole>(below(4));
    thread.holds_lock = below(2) == 0;
    return thread;
  }

  StackIndex stack() {
    StackTable& stacks = registry_.stacks();
    StackIndex stack = 0;
    for (std::uint64_t depth = below(5); depth > 0; --depth) {
      const std::string function = text(), file = text();
      const FrameIndex frame = stacks.add_frame({.kind = static_cast<FrameKind>(below(6)),
                                                 .inlined = below(3) == 0,
                                                 .line = static_cast<std::uint32_t>(below(3)),
                                                 .address = below(4),
                                                 .function = function,
                                                 .file = file});
      stack = stacks.add_stack(stack, frame);
    }
    return stack;
  }

  void make_batch(std::uint64_t count) {
    std::vector<Event> events;
    std::vector<std::byte> payloads;
    const auto payload = [&](Event& event, const auto& bytes) {
      const auto span = std::as_bytes(std::span(bytes));
      event.value = Batch::payload_ref(payloads.size(), span.size());
      payloads.insert(payloads.end(), span.begin(), span.end());
    };
    const auto record = [&](Event& event, const auto& value) { payload(event, std::span(&value, 1)); };
    for (std::uint64_t i = 0; i < count; ++i) {
      const Ring& ring = rings_[below(rings_.size())];
      time_ += below(3);
      Event event{.time = time_ - (below(50) == 0 ? 5 : 0),
                  .value = 0,
                  .source = Source{ring.slot, static_cast<std::uint16_t>(below(4))}.pack(),
                  .id = static_cast<std::uint16_t>(below(50)),
                  .kind = static_cast<EventKind>(below(event_kind_count)),
                  .flags = static_cast<std::uint8_t>(below(20) == 0 ? flag_late : 0)};
      switch (event.kind) {
        case EventKind::counter:
        case EventKind::lifecycle:
        case EventKind::user_int:
          event.value = random_();
          break;
        case EventKind::alloc:
          record(event, std::array<std::uint64_t, alloc_bucket_count>{random_()});
          break;
        case EventKind::user_custom:
          payload(event, text());
          break;
        case EventKind::lost:
          event.id = static_cast<std::uint16_t>(below(2));
          record(event, Loss{.words = below(100), .from_ns = time_ - below(100), .to_ns = time_});
          break;
        case EventKind::process:
          event.source = 0;
          event.id = static_cast<std::uint16_t>(below(8));
          record(event, ProcessRecord{.process = ring.process, .peer = 5, .detail = static_cast<int>(below(5)) - 2});
          break;
        case EventKind::sched_switch:
          event.source = 1;
          event.id = 0;
          record(event, SchedSwitch{.cpu = static_cast<std::uint32_t>(below(4)),
                                    .state = static_cast<LeftState>(below(8)),
                                    .syscall = static_cast<Syscall>(below(static_cast<int>(last_syscall) + 1)),
                                    .prev = thread(),
                                    .next = thread()});
          break;
        case EventKind::wakeup:
          event.source = 1;
          event.id = 0;
          record(event, Wakeup{.cpu = static_cast<std::uint32_t>(below(4)), .woken = thread(), .by = thread()});
          break;
        case EventKind::sample:
          event.source = Source{0, sample_stream}.pack();
          event.id = static_cast<std::uint16_t>(below(static_cast<int>(last_sample_kind) + 1));
          record(event, Sample{.process = ring.process,
                               .pid = 5,
                               .tid = static_cast<std::int32_t>(below(100)),
                               .domain = static_cast<std::int32_t>(below(5)) - 1,
                               .cpu = static_cast<std::uint32_t>(below(4)),
                               .stack = stack(),
                               .weight = random_(),
                               .role = static_cast<ThreadRole>(below(4)),
                               .holds_lock = below(2) == 0,
                               .zero = {}});
          break;
        case EventKind::usage:
          event.source = 1;
          event.id = 0;
          record(event, ThreadUsage{.pid = 5, .role = ThreadRole::mutator, .delay_count = 1, .cpu_ns = random_()});
          break;
        default:
          break;
      }
      if (has_payload(event.kind) && below(60) == 0) event.value = Batch::payload_ref(payloads.size() - 1, 1);
      events.push_back(event);
    }
    recording_.consume(Batch(events, payloads), registry_);
  }

  std::mt19937_64 random_;
  Registry registry_;
  std::vector<Ring> rings_;
  std::array<std::string, 30> names_;
  std::uint64_t time_ = 5000;
  Recording recording_;
};

TEST(Replay, RandomStreamsComeBack) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream stream(seed);
    expect_same(stream.run(40, 60));
    if (HasFatalFailure()) return;
  }
}

/// Shows the summary as text.
class TextOfSummary final : public Sink {
 public:
  void header(const RunHeader& /*header*/) override {}
  void consume(const Batch& /*batch*/, const Registry& /*registry*/) override {}
  void flush() override {}
  void summary(const RunSummary& summary, const Registry& registry) override {
    text = summary_text(summary, registry, true);
  }

  std::string text;
};

TEST(Replay, TheSummaryNamesTheSameCulprits) {
  World world;
  world.registry.process(world.process).missed = {
      .file_system = 1, .no_answer = 2, .memory = 3, .too_large = 5, .gone = 4};
  world.registry.process(world.process).words = {.written = 1, .corrupt = 1};
  world.registry.process(world.process).left_alone = {.times = 2, .ns = 3'000'000};
  RunSummary summary;
  summary.drops = {
      {"ring_file_system", 5}, {"ring_no_answer", 6}, {"ring_memory", 7}, {"ring_too_large", 9}, {"ring", 8}};
  summary.announcers = {{.pid = 7, .comm = "flood", .dropped = 6}, {.pid = 8, .comm = "other", .dropped = 2}};
  summary.rings_missed = 35;
  StringOutput file;
  FxtSink fxt(file);
  fxt.header(make_header());
  fxt.summary(summary, world.registry);
  TextOfSummary back;
  Replay replay(back);
  ASSERT_TRUE(replay.feed(bytes_of(file.text())));
  ASSERT_TRUE(replay.finish());
  EXPECT_THAT(back.text, HasSubstr("4 of them of pid 4242 (server)"));
  EXPECT_THAT(back.text, HasSubstr("left alone 2 times"));
  EXPECT_THAT(back.text, HasSubstr("6 of them of pid 7 (flood)"));
  EXPECT_EQ(back.text, summary_text(summary, world.registry, true));
}

TEST(Replay, TheSummaryCountsProgramsThatAreNotListed) {
  World world;
  for (std::int32_t pid = 1; pid <= static_cast<std::int32_t>(Registry::remembered); ++pid) {
    for (const std::uint32_t generation : {0U, 1U}) {
      ProcessInfo info = World::default_info();
      info.pid = pid;
      info.exec_generation = generation;
      world.registry.retire_process(world.registry.add_process(info));
    }
  }
  StringOutput file;
  FxtSink fxt(file);
  fxt.header(make_header());
  fxt.summary({}, world.registry);
  TextOfSummary back;
  Replay replay(back);
  ASSERT_TRUE(replay.feed(bytes_of(file.text())));
  ASSERT_TRUE(replay.finish());
  EXPECT_THAT(back.text, HasSubstr("of 4,097 OCaml processes"));
  EXPECT_THAT(back.text, HasSubstr("and 8,173 more")) << "8,193 programs, of which 20 have rows";
  EXPECT_EQ(back.text, summary_text({}, world.registry, true));
}

/// A record has no room for all that may be known of a process.
TEST(Replay, KeepsAllThatIsKnownOfABytecodeProgram) {
  World world;
  ProcessInfo& info = world.registry.process(world.process);
  info.comm = "ocamlrun";
  info.exe = "/usr/bin/ocamlrun";
  info.script = "/srv/batch.byte";
  info.max_rss_bytes = 4096;
  info.service.name = "batches";
  StringOutput file;
  FxtSink fxt(file);
  fxt.header(make_header());
  Events events(world.slot);
  fxt.consume(events.add(1, EventKind::begin, phase_minor).batch(), world.registry);
  fxt.summary({}, world.registry);
  struct : Sink {
    void header(const RunHeader&) override {}
    void flush() override {}
    void consume(const Batch&, const Registry& registry) override { seen = *registry.processes().begin(); }
    void summary(const RunSummary&, const Registry& registry) override { last = *registry.processes().begin(); }
    ProcessInfo seen, last;
  } back;
  Replay replay(back);
  ASSERT_TRUE(replay.feed(bytes_of(file.text())));
  ASSERT_TRUE(replay.finish());
  for (const ProcessInfo& process : {back.seen, back.last}) {
    EXPECT_EQ(process.script, "/srv/batch.byte");
    EXPECT_EQ(process.name, "batch.byte");
    EXPECT_EQ(process.max_rss_bytes, 4096u);
    EXPECT_EQ(process.service.name, "batches");
  }
}

TEST(Replay, TakesPiecesOfAnySize) {
  RandomStream stream(7);
  const Recording& recording = stream.run(5, 30);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{4096}}) {
    const Replayed back = replayed(recording.recorded(), piece);
    ASSERT_TRUE(back.fed);
    EXPECT_EQ(back.lines, recording.shown()) << piece;
  }
}

TEST(Replay, ReadsACutRecordingUpToTheCut) {
  RandomStream stream(8);
  const Recording& recording = stream.run(5, 30);
  const std::string& file = recording.recorded();
  const auto shown = lines_of(recording.shown());
  const auto offsets = record_offsets(file);
  std::size_t most = 0;
  for (std::size_t cut = 0; cut < file.size(); cut += 1 + cut % 16) {
    const bool at_record = std::ranges::binary_search(offsets, cut);
    const Replayed back = replayed(std::string_view(file).substr(0, cut));
    ASSERT_TRUE(back.fed) << "cut at " << cut << ": " << back.fed.error().message();
    if (!back.end) {
      EXPECT_EQ(back.lines, "") << cut;  // cut in or before the header
      continue;
    }
    EXPECT_FALSE(back.end->complete);
    EXPECT_EQ(back.end->cut, !at_record);
    EXPECT_NE(back.end->note, "");
    EXPECT_LE(back.end->offset, cut);
    const auto lines = lines_of(back.lines);
    ASSERT_GE(lines.size(), 2u);
    // The header may lack a part of the command line; each event is one that was shown, in its place.
    for (std::size_t i = 1; i + 1 < lines.size(); ++i) ASSERT_EQ(lines[i], shown[i]) << cut;
    const auto summary = nlohmann::json::parse(lines.back());
    EXPECT_EQ(summary["type"], "summary");
    EXPECT_EQ(summary["truncated"], true);
    most = std::max(most, lines.size());
  }
  EXPECT_EQ(most, shown.size());
}

TEST(Replay, CountsTheEventsOfACutRecording) {
  World world;
  Recording recording;
  recording.header(make_header());
  Events events(world.slot);
  events.add(2000, EventKind::begin, phase_minor)
      .add(2010, EventKind::end, phase_minor)
      .late()
      .add_record(2020, EventKind::lost, Loss{.words = 12, .from_ns = 2010, .to_ns = 2020});
  recording.consume(events.batch(), world.registry);
  recording.flush();
  const Replayed back = replayed(recording.recorded());
  ASSERT_TRUE(back.end);
  const auto summary = nlohmann::json::parse(lines_of(back.lines).back());
  EXPECT_EQ(summary["events"]["begin"], 1);
  EXPECT_EQ(summary["events"]["lost"], 1);
  EXPECT_EQ(summary["late"], 1);
  EXPECT_EQ(summary["end"], 2020);
  ASSERT_EQ(summary["processes"].size(), 1u);
  EXPECT_EQ(summary["processes"][0]["pid"], 4242);
  EXPECT_EQ(summary["processes"][0]["events"], 2);
  EXPECT_EQ(summary["processes"][0]["words"]["lost"], 12);
}

TEST(Replay, SurvivesDamage) {
  RandomStream stream(9);
  std::string file = stream.run(5, 30).recorded();
  std::mt19937_64 random(1);
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = file;
    for (int i = 0; i < 1 + round % 3; ++i) damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    const Replayed back = replayed(damaged);
    if (!back.fed) {
      EXPECT_NE(back.fed.error().why, "");
    }
    // The output is valid JSON in any case.
    for (const std::string& line : lines_of(back.lines)) EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
}

TEST(Replay, AnErrorHasItsOffset) {
  RandomStream stream(10);
  std::string file = stream.run(3, 30).recorded();
  const auto offsets = record_offsets(file);
  const std::size_t at = offsets[offsets.size() / 2];
  file[at + 1] = 0;  // the size of a record
  file[at] = static_cast<char>(file[at] & 15);
  const Replayed back = replayed(file);
  ASSERT_FALSE(back.fed);
  EXPECT_NE(back.fed.error().message().find(std::to_string(at)), std::string::npos) << back.fed.error().message();
  ASSERT_TRUE(back.end);
  EXPECT_EQ(back.end->offset, at);
  EXPECT_FALSE(back.end->complete);
}

TEST(Replay, RefusesTracesOfOtherPrograms) {
  FxtMemory memory;
  FxtWriter writer(memory);
  const auto event = writer.compose(fxt::instant, writer.thread(1, 2), writer.intern("cat"), writer.intern("name"));
  writer.write(event, 5);
  writer.flush();
  const std::string file(reinterpret_cast<const char*>(memory.bytes().data()), memory.bytes().size());
  const Replayed back = replayed(file);
  ASSERT_FALSE(back.fed);
  EXPECT_NE(back.fed.error().hint, "");
  EXPECT_EQ(back.lines, "");
}

TEST(Replay, RefusesFilesThatAreNoTraces) {
  const Replayed text = replayed("{\"this\": \"is something else\"}");
  EXPECT_FALSE(text.fed);
  const Replayed empty = replayed("");
  EXPECT_FALSE(empty.end);
}

TEST(Replay, RefusesOtherVersions) {
  for (const std::uint32_t version : {record::format_version - 1, record::format_version + 1}) {
    FxtMemory memory;
    FxtWriter writer(memory);
    fxt::Arguments arguments;
    arguments.add(record::metadata_header, version);
    writer.write(fxt::UserspaceObject{}, arguments);
    writer.flush();
    const std::string file(reinterpret_cast<const char*>(memory.bytes().data()), memory.bytes().size());
    const Replayed back = replayed(file);
    ASSERT_FALSE(back.fed);
    EXPECT_THAT(back.fed.error().why, testing::HasSubstr("version"));
  }
}

TEST(Replay, RefusesDataAfterTheEnd) {
  RandomStream stream(11);
  const std::string file = stream.run(2, 10).recorded();
  const auto offsets = record_offsets(file);
  const Replayed back = replayed(file + file.substr(offsets[offsets.size() - 2]));
  EXPECT_FALSE(back.fed);
}

}  // namespace
}  // namespace rtev::test
