// SPDX-License-Identifier: MIT
#include "formats/report/timeline_json.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/report_text.hpp"
#include "stream/stack_text.hpp"

namespace rtev {
namespace {

class TimelineJson {
 public:
  TimelineJson(JsonWriter& json, const PauseTimeline& timeline, const StackTable& stacks)
      : json_(json), timeline_(timeline), stacks_(stacks) {}

  /// Times are since the begin. Lists of numbers are flat: see report_timeline.cpp, which reads them.
  void write() {
    json_.object([&] {
      json_.member("pid", timeline_.pid);
      json_.member("begin_ns", timeline_.begin_ns);
      json_.member("end_ns", timeline_.end_ns);
      json_.member("is_cut", timeline_.is_cut);
      phases();
      threads();
      samples();
    });
  }

 private:
  std::uint64_t since_begin(std::uint64_t time_ns) const { return clamped(time_ns) - timeline_.begin_ns; }
  std::uint64_t clamped(std::uint64_t time_ns) const {
    return std::clamp(time_ns, timeline_.begin_ns, timeline_.end_ns);
  }
  void add_time(std::uint64_t begin_ns, std::uint64_t end_ns) {
    json_.value(since_begin(begin_ns));
    json_.value(clamped(std::max(begin_ns, end_ns)) - clamped(begin_ns));
  }

  void phases() {
    std::map<std::uint16_t, std::vector<const PauseTimeline::Phase*>> by_domain;
    std::vector<std::uint16_t> names;
    for (const PauseTimeline::Phase& phase : timeline_.phases) {
      by_domain[phase.domain].push_back(&phase);
      if (std::ranges::find(names, phase.phase) == names.end()) names.push_back(phase.phase);
    }
    json_.key("phases").array([&] {
      for (const std::uint16_t phase : names) {
        TextBuffer name;
        append(name, PhaseName{timeline_.family, phase});
        json_.value(name.text());
      }
    });
    json_.key("domains").array([&] {
      for (const auto& [domain, phases] : by_domain) {
        json_.object([&] {
          json_.member("domain", domain);
          json_.key("phases").array([&] {
            for (const PauseTimeline::Phase* const phase : phases) {
              json_.value(phase->depth);
              json_.value(std::ranges::find(names, phase->phase) - names.begin());
              add_time(phase->begin_ns, phase->end_ns);
            }
          });
        });
      }
    });
  }

  void threads() {
    struct Lane {
      std::int32_t domain = -1;
      std::vector<const PauseTimeline::State*> states{};
    };
    std::map<std::int32_t, Lane> by_tid;
    std::vector<Thread> others;
    const auto same = [](const Thread& other) {
      return [&other](const Thread& thread) { return thread.tid == other.tid && thread.comm() == other.comm(); };
    };
    for (const PauseTimeline::State& state : timeline_.states) {
      Lane& lane = by_tid[state.tid];
      lane.states.push_back(&state);
      if (state.domain >= 0) lane.domain = state.domain;
      if (state.by && std::ranges::none_of(others, same(*state.by))) others.push_back(*state.by);
    }
    json_.key("others").array([&] {
      for (const Thread& other : others) {
        json_.array([&] {
          json_.value(other.pid);
          json_.value(other.tid);
          json_.value(other.comm());
        });
      }
    });
    json_.key("threads").array([&] {
      for (auto& [tid, lane] : by_tid) {
        std::ranges::stable_sort(lane.states, {}, &PauseTimeline::State::begin_ns);
        json_.object([&] {
          json_.member("tid", tid);
          json_.member("domain", lane.domain);
          json_.key("states").array([&] {
            for (const PauseTimeline::State* const state : lane.states) {
              json_.value(static_cast<int>(state->state));
              add_time(state->begin_ns, state->end_ns);
              json_.value(state->cpu);
              json_.value(state->by ? std::ranges::find_if(others, same(*state->by)) - others.begin() : -1);
              json_.value(state->is_woken ? 1 : 0);
            }
          });
        });
      }
    });
  }

  void samples() {
    std::map<StackIndex, std::size_t> indices;
    std::vector<std::string> texts;
    json_.key("samples").array([&] {
      for (const PauseTimeline::StackSample& sample : timeline_.samples) {
        const auto [at, is_new] = indices.try_emplace(sample.stack, texts.size());
        if (is_new) {
          TextBuffer text;
          add_stack_summary(text, stacks_, sample.stack);
          texts.emplace_back(text.text());
        }
        json_.value(sample.tid);
        json_.value(since_begin(sample.end_ns));
        json_.value(at->second);
        json_.value(static_cast<int>(sample.kind));
      }
    });
    json_.values("stacks", texts);
  }

  JsonWriter& json_;
  const PauseTimeline& timeline_;
  const StackTable& stacks_;
};

}  // namespace

void add_timeline(JsonWriter& json, const PauseTimeline& timeline, const StackTable& stacks) {
  TimelineJson(json, timeline, stacks).write();
}

}  // namespace rtev
