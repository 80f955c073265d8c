// SPDX-License-Identifier: MIT
// A canvas that notes what is drawn on it, a line each.
#pragma once

#include <string>
#include <vector>

#include "formats/viewer/trace_writer.hpp"

namespace rtev::test {

/// Lines like "10 begin minor @domain 0" with the track's name, times in ns.
class TraceLog final : public TraceWriter {
 public:
  bool with_ids = false;  ///< tells apart tracks of one name
  std::vector<std::string> lines;
  std::vector<std::string> names;  ///< of processes and tracks as they were given: "4242/4243 domain 1"

  void begin(const Track& track, const EventContext& context, const Flows& flows) override {
    std::string arrows;
    for (const std::uint64_t id : flows.out) arrows += " ->" + std::to_string(id);
    if (flows.in != 0) arrows += " <-" + std::to_string(flows.in);
    add("begin", track, context, arrows);
  }
  void end(const Track& track, const EventContext& context) override { add("end", track, context); }
  void stray_end(const Track& track, const EventContext& context) override { add("stray", track, context); }
  void counter(const Track& track, const EventContext& context) override { add("counter", track, context); }
  void point(const Track& track, const EventContext& context) override { add("point", track, context); }
  void lost(const Track& track, const EventContext& context, const Loss& loss) override {
    add("lost", track, context, " " + std::to_string(loss.words));
  }
  void dropped(const EventContext& context, const Loss& loss) override {
    lines.push_back(std::to_string(context.event.time) + " dropped " + std::to_string(loss.words));
  }
  void process(const Track& track, const EventContext& context, const ProcessRecord&) override {
    add("process", track, context);
  }
  void sched_switch(const EventContext& context, const SchedSwitch& change, const Track* prev,
                    const Track* next) override {
    lines.push_back(std::to_string(context.event.time) + " cpu " + std::to_string(change.cpu) + ": " + name(prev) +
                    " -> " + name(next));
  }
  void wakeup(const EventContext& context, const Wakeup&, const Track* woken, const Track* by) override {
    lines.push_back(std::to_string(context.event.time) + " " + name(by) + " wakes " + name(woken));
  }
  void sample(const EventContext& context, const Sample&, const Track* track) override {
    lines.push_back(std::to_string(context.event.time) + " sample of " + name(track));
  }
  void malformed(const EventContext& context) override {
    lines.push_back(std::to_string(context.event.time) + " malformed");
  }
  void open(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
            SpanMark mark) override {
    add_mark("open", track, time, begun, registry, mark);
  }
  void close(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
             SpanMark mark) override {
    add_mark("close", track, time, begun, registry, mark);
  }
  void left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) override {
    lines.push_back(std::to_string(time) + " left cpu " + std::to_string(cpu) + ": " + name(&track));
  }
  void task_span(const Track& track, const TaskSpan& span) override {
    std::string text = std::to_string(span.begin_ns) + "-" + std::to_string(span.end_ns) + " " +
                       std::string(span.name) + " @" + track.name;
    for (const std::uint64_t id : span.flows.out) text += " ->" + std::to_string(id - first_task_flow);
    if (span.flows.in != 0) text += " <-" + std::to_string(span.flows.in - first_task_flow);
    if (span.creator) text += " by " + std::to_string(*span.creator);
    if (!span.context.empty()) text += " in " + std::string(span.context);
    lines.push_back(std::move(text));
  }
  void task_point(const Track& track, std::uint64_t time, std::string_view what, std::string_view text) override {
    lines.push_back(std::to_string(time) + " " + std::string(what) + " @" + track.name +
                    (text.empty() ? "" : ": " + std::string(text)));
  }
  void name_process(std::int32_t pid, std::string_view process) override {
    names.push_back(std::to_string(pid) + " " + std::string(process));
  }
  void name_track(const Track& track) override {
    names.push_back(std::to_string(track.pid) + "/" +
                    (track.is_thread ? std::to_string(track.tid) : std::string("ring")) + " " + track.name);
  }
  void forget_track(const Track& track) override { forgotten.push_back(track.tid); }

  std::vector<std::int32_t> forgotten;

 private:
  std::string name(const Track* track) const {
    if (track == nullptr) return "idle";
    return with_ids ? std::to_string(track->id) : track->name;
  }
  void add(const std::string& what, const Track& track, const EventContext& context, const std::string& more = {}) {
    lines.push_back(std::to_string(context.event.time) + " " + what + " " +
                    std::string(known_name_of(context.event, context.registry)) + " @" + name(&track) + more);
  }
  void add_mark(const std::string& what, const Track& track, std::uint64_t time, const Event& begun,
                const Registry& registry, SpanMark mark) {
    lines.push_back(std::to_string(time) + " " + what + " " + std::string(known_name_of(begun, registry)) + " @" +
                    name(&track) + " (" + std::string(to_string(mark)) + ")");
  }
};

}  // namespace rtev::test
