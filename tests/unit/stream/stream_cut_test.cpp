// SPDX-License-Identifier: MIT
#include "stream/stream_cut.hpp"

#include <gtest/gtest.h>

#include <string>

#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

/// Notes what it gets: "b1" for a begin at 1, "a5" for an advance to 5.
class Notes final : public Sink {
 public:
  void header(const RunHeader&) override {}
  void consume(const Batch& batch, const Registry&) override {
    for (const Event& event : batch.events())
      text += (event.kind == EventKind::process ? " p" : " b") + std::to_string(event.time);
  }
  void advance(std::uint64_t time_ns, const Registry&) override { text += " a" + std::to_string(time_ns); }
  void flush() override {}
  void summary(const RunSummary&, const Registry&) override {}

  std::string text;
};

class StreamCutTest : public testing::Test {
 protected:
  void feed(std::initializer_list<Event> events) {
    const std::vector<Event> all(events);
    cut.consume(Batch(all, {}), world.registry);
  }
  static Event at(std::uint64_t time, std::uint8_t flags = 0, EventKind kind = EventKind::begin) {
    return {.time = time, .value = 0, .source = 0, .id = 0, .kind = kind, .flags = flags};
  }
  bool cut_at(std::uint64_t time, StreamCut::Rest rest, bool is_wanted = true) {
    return cut.cut_at(time, rest, [this, is_wanted](std::uint64_t, const Registry&) {
      notes.text += " |";
      return is_wanted;
    });
  }

  World world;
  Notes notes;
  StreamCut cut{notes};
};

TEST_F(StreamCutTest, TheRestIsDropped) {
  feed({at(1)});
  EXPECT_TRUE(cut_at(10, StreamCut::Rest::dropped));
  feed({at(9), at(10), at(11)});
  feed({at(8, flag_late), at(12)});
  cut.advance(13, world.registry);
  EXPECT_EQ(notes.text, " b1 b9 b10 a10 | b8 a10");
}

TEST_F(StreamCutTest, TheRestIsGiven) {
  EXPECT_TRUE(cut_at(10, StreamCut::Rest::given));
  feed({at(9), at(10), at(11), at(12)});
  // Counted by the tracer before.
  feed({at(8, flag_late), at(8, flag_late, EventKind::process), at(13)});
  EXPECT_EQ(notes.text, " b9 b10 a10 | b11 b12 p8 b13");
}

TEST_F(StreamCutTest, ItIsCutWithoutEventsToo) {
  EXPECT_TRUE(cut_at(10, StreamCut::Rest::given));
  cut.advance(9, world.registry);
  cut.advance(11, world.registry);
  feed({at(12)});
  EXPECT_EQ(notes.text, " a9 a10 | a11 b12");
}

TEST_F(StreamCutTest, LateEventsDoNotCutIt) {
  EXPECT_TRUE(cut_at(10, StreamCut::Rest::given));
  feed({at(99, flag_late), at(9)});
  EXPECT_EQ(notes.text, " b99 b9");
}

TEST_F(StreamCutTest, ATimeThatIsOverIsRefused) {
  feed({at(10)});
  EXPECT_FALSE(cut_at(10, StreamCut::Rest::dropped));
  cut.advance(20, world.registry);
  EXPECT_FALSE(cut_at(15, StreamCut::Rest::dropped));
  EXPECT_EQ(cut.reached_ns(), 20u);
  feed({at(21)});
  EXPECT_EQ(notes.text, " b10 a20 b21");
}

TEST_F(StreamCutTest, ItGoesOnIfNobodyTakesOver) {
  EXPECT_TRUE(cut_at(10, StreamCut::Rest::dropped, false));
  feed({at(9), at(11)});
  EXPECT_TRUE(cut_at(20, StreamCut::Rest::dropped));
  cut.cancel();
  feed({at(21)});
  EXPECT_EQ(notes.text, " b9 a10 | b11 b21");
}

TEST_F(StreamCutTest, ATracerThatTookOverIsReplacedInTurn) {
  EXPECT_TRUE(cut_at(10, StreamCut::Rest::given));
  feed({at(11)});
  EXPECT_TRUE(cut_at(20, StreamCut::Rest::dropped));
  feed({at(15), at(21)});
  EXPECT_EQ(notes.text, " a10 | b11 b15 a20 |");
}

}  // namespace
}  // namespace rtev::test
