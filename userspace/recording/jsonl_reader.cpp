// SPDX-License-Identifier: MIT
#include "recording/jsonl_reader.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "recording/jsonl_fields.hpp"

namespace rtev {

using namespace jsonl;

Result<void> JsonlReader::feed(std::string_view text) {
  while (!failed_ && !text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      rest_ += text;
      offset_ += text.size();
      if (rest_.size() <= most_line_bytes) return {};
      failed_ = true;
      return std::unexpected(Error{.what = "bad JSON lines", .why = "a line has no end"});
    }
    Result<void> read;
    if (rest_.empty()) {
      read = line(text.substr(0, end));
    } else {
      rest_ += text.substr(0, end);
      read = line(rest_);
      rest_.clear();
    }
    text.remove_prefix(end + 1);
    offset_ += end + 1;
    if (read) continue;
    failed_ = true;
    return read;
  }
  return {};
}

Result<Replay::End> JsonlReader::finish() {
  if (!has_header_) {
    return std::unexpected(Error{.what = "no JSON lines of rtev-bpf",
                                 .why = "there is no header",
                                 .hint = "rtev-bpf -f jsonl writes such files"});
  }
  if (!has_summary_) builder_.finish(builder_.counted());
  return Replay::End{.offset = offset_ - rest_.size(),
                     .complete = has_summary_,
                     .note = has_summary_ ? "" : "its summary is missing: its writer was killed, or the file was cut"};
}

Result<void> JsonlReader::line(std::string_view text) {
  ++lines_;
  const auto bad = [&](std::string_view why) {
    return std::unexpected(
        Error{.what = "bad JSON lines", .why = "line " + std::to_string(lines_) + ": " + std::string(why)});
  };
  const Json parsed = Json::parse(text, nullptr, false);
  if (!parsed.is_object()) return bad("not an object");
  if (has_summary_) return bad("something behind the summary");
  const std::string type = string(parsed, "type");
  if (!has_header_) {
    if (type != "header" || number<int>(parsed, "schema") != 1) return bad("not the header of schema 1");
    has_header_ = header(parsed);
    return {};
  }
  if (type == "summary") {
    if (!summarise(parsed)) return bad("bad summary");
    return {};
  }
  const Event event{.time = number<std::uint64_t>(parsed, "ts"),
                    .value = 0,
                    .source = 0,
                    .id = 0,
                    .kind = {},
                    .flags = member(parsed, "late").is_boolean() ? std::uint8_t{flag_late} : std::uint8_t{0}};
  const bool good = type == "user"      ? user_event(parsed, event)
                    : type == "process" ? process(parsed, event)
                    : type == "switch"  ? sched_switch(parsed, event)
                    : type == "wakeup"  ? wakeup(parsed, event)
                                        : ring_event(parsed, type, event);
  if (!good) return bad("not an event of schema 1");
  return {};
}

bool JsonlReader::header(const Json& line) {
  RunHeader header{.version = string(line, "version"),
                   .host = string(line, "host"),
                   .kernel = string(line, "kernel"),
                   .start_ns = number<std::uint64_t>(line, "start"),
                   .start_realtime_ns = number<std::uint64_t>(line, "start_realtime")};
  for (const Json& argument : list(line, "command_line"))
    header.command_line.push_back(argument.is_string() ? argument.get<std::string>() : std::string{});
  builder_.header(header);
  return true;
}

/// The newest image of a pid, made up where no line announced it.
JsonlReader::Image& JsonlReader::image_of(std::int32_t pid) {
  Image& image = images_[pid];
  if (image.index == 0) {
    image.index = next_index_++;
    image.facts.pid = pid;
  }
  return image;
}

bool JsonlReader::tell(const Image& image) {
  return builder_.process(image.index, image.facts);
}

void JsonlReader::forget(std::int32_t pid) {
  builder_.forget_ring(images_[pid].slot);
  builder_.forget_process(images_[pid].index);
  images_.erase(pid);
}

/// The process and ring of an event, which may say something new of them.
bool JsonlReader::place(const Json& line, Event& event) {
  Image& image = image_of(number<std::int32_t>(line, "pid"));
  std::string comm = string(line, "comm");
  if (image.slot == 0 || comm != image.facts.comm) {
    image.facts.comm = std::move(comm);
    if (!tell(image)) return false;
  }
  if (image.slot == 0 && !add_ring(image, 1u << Source::domain_bits)) return false;
  const auto domain = number<std::uint32_t>(line, "domain");
  if (domain >= 1u << Source::domain_bits) return false;
  event.source = Source{image.slot, static_cast<std::uint16_t>(domain)}.pack();
  return true;
}

bool JsonlReader::add_ring(Image& image, std::uint32_t domains) {
  image.slot = next_slot_;
  // Slots are used again long after their rings are gone.
  next_slot_ = next_slot_ + 1 < ring_slots ? next_slot_ + 1 : 1;
  builder_.forget_ring(image.slot);
  return builder_.ring(image.slot, image.index, domains, std::nullopt);
}

std::uint16_t JsonlReader::id_of(const Json& line, const Image& image, EventKind kind) const {
  const std::string name = string(line, "name");
  if (name.empty()) return number<std::uint16_t>(line, "id");
  if (kind == EventKind::lifecycle) {
    for (std::uint16_t id = 0; id < 64; ++id) {
      if (lifecycle_name(id) == name) return id;
    }
    return std::numeric_limits<std::uint16_t>::max();
  }
  if (kind == EventKind::counter) {
    const auto counter = find_counter(image.facts.family, name);
    return counter ? static_cast<std::uint16_t>(*counter) : std::numeric_limits<std::uint16_t>::max();
  }
  const auto phase = find_phase(image.facts.family, name);
  return phase ? static_cast<std::uint16_t>(*phase) : std::numeric_limits<std::uint16_t>::max();
}

bool JsonlReader::ring_event(const Json& line, std::string_view type, Event event) {
  const auto kind = kind_of(type);
  if (!kind) return false;
  event.kind = *kind;
  if (event.kind == EventKind::lost) return lost(line, event);
  if (!place(line, event)) return false;
  Image& image = images_[number<std::int32_t>(line, "pid")];
  if (event.kind == EventKind::alloc) {
    std::array<std::uint64_t, alloc_bucket_count> buckets{};
    const Json& counts = list(line, "buckets");
    if (counts.size() != buckets.size()) return false;
    std::ranges::transform(counts, buckets.begin(), [](const Json& count) { return as_number<std::uint64_t>(count); });
    builder_.add(event, std::as_bytes(std::span(buckets)));
    return true;
  }
  event.id = id_of(line, image, event.kind);
  // The version that a made-up process decodes with shows in the names it uses.
  if (event.id == std::numeric_limits<std::uint16_t>::max() && member(line, "name").is_string()) {
    image.facts.family = image.facts.family == Family::since_5_3 ? Family::before_5_3 : Family::since_5_3;
    event.id = id_of(line, image, event.kind);
    if (event.id == std::numeric_limits<std::uint16_t>::max() || !tell(image)) return false;
  }
  event.value = event.kind == EventKind::lifecycle ? static_cast<std::uint64_t>(number<std::int64_t>(line, "value"))
                                                   : number<std::uint64_t>(line, "value");
  builder_.add(event);
  return true;
}

bool JsonlReader::lost(const Json& line, Event event) {
  const LossReason reason = loss_reason_of(string(line, "reason")).value_or(LossReason::overwritten);
  event.id = static_cast<std::uint16_t>(reason);
  const bool dropped = reason == LossReason::dropped;
  if (dropped) {
    event.source = sched_source(number<std::uint32_t>(line, "buffer"));
  } else if (!place(line, event)) {
    return false;
  }
  const Loss loss{.words = number<std::uint64_t>(line, dropped ? "records" : "words"),
                  .from_ns = number<std::uint64_t>(line, "from"),
                  .to_ns = number<std::uint64_t>(line, "to")};
  builder_.add(event, std::as_bytes(std::span(&loss, 1)));
  return true;
}

bool JsonlReader::user_event(const Json& line, Event event) {
  static const std::map<std::string_view, EventKind> kinds{{"unit", EventKind::user_unit},
                                                           {"int", EventKind::user_int},
                                                           {"begin", EventKind::user_begin},
                                                           {"end", EventKind::user_end},
                                                           {"custom", EventKind::user_custom}};
  const auto kind = kinds.find(string(line, "kind"));
  if (kind == kinds.end() || !place(line, event)) return false;
  event.kind = kind->second;
  event.id = number<std::uint16_t>(line, "id");
  if (!builder_.user_event(Source::unpack(event.source).slot, event.id, string(line, "name"))) return false;
  if (event.kind == EventKind::user_int) event.value = static_cast<std::uint64_t>(number<std::int64_t>(line, "value"));
  if (event.kind != EventKind::user_custom) {
    builder_.add(event);
    return true;
  }
  const auto bytes = from_hex(string(line, "bytes"));
  if (bytes) builder_.add(event, *bytes);
  return bytes.has_value();
}

bool JsonlReader::process(const Json& line, Event event) {
  const auto action = action_of(string(line, "action"));
  if (!action) return false;
  const auto pid = number<std::int32_t>(line, "pid");
  const bool announces =
      *action == ProcessAction::found || *action == ProcessAction::exec || *action == ProcessAction::fork;
  if (announces && image_of(pid).is_announced) forget(pid);
  Image& image = image_of(pid);
  image.facts.comm = string(line, "comm");
  ProcessRecord record{.process = image.index, .peer = 0, .detail = 0};
  switch (*action) {
    case ProcessAction::fork:
      record.peer = number<std::int32_t>(line, "parent");
      [[fallthrough]];
    case ProcessAction::found:
    case ProcessAction::exec:
      image.is_announced = true;
      read_image(line, image.facts);
      break;
    case ProcessAction::ring:
      record.detail = number<std::int64_t>(line, "max_domains");
      image.facts.ring = RingState::active;
      image.facts.ring_path = string(line, "path");
      image.facts.runtime = string(line, "runtime");
      if (line.contains("version")) read_family(line, image.facts);
      if (!tell(image)) return false;
      if ((image.slot == 0 || image.ring_is_announced) &&
          !add_ring(image, static_cast<std::uint32_t>(std::clamp<std::int64_t>(record.detail, 0, 4096))))
        return false;
      image.ring_is_announced = true;
      break;
    case ProcessAction::exit:
      image.facts.ended = true;
      image.facts.ring = after_end(image.facts.ring);
      image.facts.max_rss_bytes = number<std::uint64_t>(line, "max_rss_bytes");
      record.detail = exit_detail(line);
      break;
    case ProcessAction::pause:
    case ProcessAction::resume:
    case ProcessAction::stop:
      break;
    case ProcessAction::probe:
      image.facts.ring = RingState::probed;
      break;
  }
  if (!tell(image)) return false;
  if (*action == ProcessAction::exit) ended_.emplace_back(pid, image.index);
  for (; ended_.size() > Registry::remembered; ended_.pop_front()) {
    const auto oldest = images_.find(ended_.front().first);
    if (oldest != images_.end() && oldest->second.index == ended_.front().second && oldest->first != pid)
      forget(oldest->first);
  }
  event.kind = EventKind::process;
  event.id = static_cast<std::uint16_t>(*action);
  event.source = Source{0, lifecycle_stream}.pack();
  builder_.add(event, std::as_bytes(std::span(&record, 1)));
  return true;
}

bool JsonlReader::sched_switch(const Json& line, Event event) {
  const SchedSwitch change{.cpu = number<std::uint32_t>(line, "cpu"),
                           .state = state_of(string(member(line, "prev"), "state")),
                           .prev = read_thread(member(line, "prev")),
                           .next = read_thread(member(line, "next"))};
  event.kind = EventKind::sched_switch;
  event.source = sched_source(change.cpu);
  builder_.add(event, std::as_bytes(std::span(&change, 1)));
  return true;
}

bool JsonlReader::wakeup(const Json& line, Event event) {
  const Wakeup wakeup{
      .cpu = number<std::uint32_t>(line, "cpu"), .woken = read_thread(line), .by = read_thread(member(line, "by"))};
  event.kind = EventKind::wakeup;
  event.source = sched_source(wakeup.cpu);
  builder_.add(event, std::as_bytes(std::span(&wakeup, 1)));
  return true;
}

bool JsonlReader::summarise(const Json& line) {
  RunSummary summary = read_summary(line);
  summary.start_ns = builder_.counted().start_ns;
  StreamBuilder::List known;
  ProcessIndex index = 1;
  for (const Json& process : list(line, "processes")) {
    const auto image = images_.find(number<std::int32_t>(process, "pid"));
    ProcessInfo facts = image != images_.end() ? image->second.facts : ProcessInfo{};
    read_figures(process, facts);
    known.processes.emplace(index++, std::move(facts));
  }
  const Json& others = member(line, "others");
  known.others.count = number<std::uint64_t>(others, "processes");
  known.others.words = read_words(others);
  builder_.finish(summary, std::move(known));
  has_summary_ = true;
  return true;
}

}  // namespace rtev
