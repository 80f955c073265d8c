// SPDX-License-Identifier: MIT
#include "formats/fxt/fxt_sink.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/escape.hpp"
#include "stream/recording_layout.hpp"

namespace rtev {
namespace {

using namespace record;

/// Viewers draw a graph for each id: each incarnation of a domain has its own.
std::uint64_t counter_id(const Track& track, const Event& event) {
  return std::uint64_t{track.incarnation - 1} << Source::domain_bits | Source::unpack(event.source).domain;
}

constexpr std::size_t buffer_words = (std::size_t{256} << 10) / fxt::word_bytes;

/// Payloads of user events up to this size are written as text if they are printable.
constexpr std::size_t max_text_bytes = 1024;

constexpr std::array<std::string_view, 5> units = {"value", "bytes", "words", "blocks", "work"};

/// For events that belong to no track.
const Track& nowhere() {
  static const Track track{.id = UINT32_MAX, .tid = first_ring_tid - 1, .is_thread = false};
  return track;
}

/// For records that a kernel buffer dropped.
const Track& kernel_buffers() {
  static const Track track{.id = UINT32_MAX - 1, .tid = first_ring_tid - 2, .is_thread = false, .name = "scheduler"};
  return track;
}

const Track& all_samples() {
  static const Track track{.id = UINT32_MAX - 2, .tid = first_ring_tid - 3, .is_thread = false, .name = "samples"};
  return track;
}

bool is_user(const Event& event) {
  return group_of(event.kind) == EventKind::user_unit;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

fxt::Blob blob(std::span<const std::byte> bytes) {
  return {bytes.first(std::min(bytes.size(), max_payload_bytes))};
}

/// Strings that the writer interns itself: names of arguments, categories, units.
constexpr std::uint16_t temporary_strings = 16;
static_assert(StringTable::slots + temporary_strings + 512 < fxt::max_string_slot);

}  // namespace

FxtSink::FxtSink(Output& output, const Options& options)
    : destination_(
          [&output](std::span<const std::byte> records) -> Result<void> {
            if (output.write(as_text(records))) return {};
            return std::unexpected(output.error().value_or(Error{.what = "cannot write"}));
          },
          buffer_words),
      writer_(destination_, {.fixed_strings = StringTable::slots,
                             .fixed_threads = fxt::max_thread_slot,
                             .temporary_strings = temporary_strings}),
      options_(options),
      strings_(writer_),
      threads_(writer_),
      metadata_(writer_),
      sched_(writer_),
      stacks_(writer_),
      builder_(*this) {
  using enum fxt::ArgumentType;
  const auto name = [this](std::string_view text) { return writer_.intern(text); };
  for (const bool user : {false, true}) {
    const std::string_view category = user ? user_category : runtime_category;
    spans_[user] = {.begin = compose(fxt::duration_begin, category),
                    .end = compose(fxt::duration_end, category),
                    .stray_end = compose(fxt::instant, category, {{boolean, name("stray")}})};
  }
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    counters_[unit] = compose(fxt::counter, runtime_category, {{uint64, name(units[unit])}});
  alloc_ =
      compose(fxt::instant, runtime_category, {{uint64, name("total")}, {fxt::ArgumentType::blob, name("buckets")}});
  lifecycle_ = compose(fxt::instant, runtime_category, {{int64, name("value")}});
  user_unit_ = compose(fxt::instant, user_category);
  user_int_ = compose(fxt::instant, user_category, {{int64, name("value")}});
  user_text_ = compose(fxt::instant, user_category, {{string, name("text")}});
  user_bytes_ = compose(fxt::instant, user_category, {{fxt::ArgumentType::blob, name("bytes")}});
  lost_ = compose(fxt::instant, runtime_category,
                  {{uint64, name("words")}, {uint64, name("from")}, {uint64, name("to")}, {string, name("reason")}});
  process_ = compose(fxt::instant, process_category,
                     {{uint32, name("index")}, {int32, name("peer")}, {int64, name("detail")}});
  sample_ = compose(fxt::instant, sample_category,
                    {{uint32, name("process")},
                     {int32, name("pid")},
                     {int32, name("tid")},
                     {int32, name("domain")},
                     {uint32, name("cpu")},
                     {uint32, name("stack")},
                     {uint64, name("weight")},
                     {uint32, name("role")},
                     {boolean, name("lock")}});
  raw_bytes_ = compose(fxt::instant, raw_category, {{fxt::ArgumentType::blob, name("bytes")}});
  raw_value_ = compose(fxt::instant, raw_category, {{uint64, name("value")}});
  open_ = compose(fxt::duration_begin, drawn, {{string, name("mark")}}).plain;
  close_ = compose(fxt::duration_end, drawn, {{string, name("mark")}}).plain;
  const auto drawn_shape = [&](fxt::EventType type, std::string_view event) {
    return writer_.compose(type, fxt::ThreadRef{1}, name(drawn), name(event));
  };
  flow_begin_ = drawn_shape(fxt::flow_begin, "stop the world");
  flow_end_ = drawn_shape(fxt::flow_end, "stop the world");
  task_begin_ = drawn_shape(fxt::duration_begin, "task");
  task_end_ = drawn_shape(fxt::duration_end, "task");
  task_flow_begin_ = drawn_shape(fxt::flow_begin, "creates");
  task_flow_end_ = drawn_shape(fxt::flow_end, "creates");
  task_point_ = compose(fxt::instant, drawn, {{string, name("text")}}).plain;
  for (std::size_t family = 1; family < families; ++family) {
    for (std::size_t id = 0; id < counter_ids; ++id) {
      const auto unit =
          std::ranges::find(units, counter_unit(static_cast<Family>(family - 1), static_cast<std::uint16_t>(id)));
      if (unit != units.end()) units_[family][id] = static_cast<std::uint8_t>(unit - units.begin());
    }
  }
}

/// The thread and the name are set by put().
FxtSink::Shape FxtSink::compose(fxt::EventType type, std::string_view category,
                                std::initializer_list<fxt::Parameter> parameters) {
  std::vector<fxt::Parameter> flagged(parameters);
  flagged.push_back({fxt::ArgumentType::uint32, writer_.intern("flags")});
  const fxt::StringRef category_ref = writer_.intern(category);
  return {.plain = writer_.compose(type, fxt::ThreadRef{1}, category_ref, fxt::StringRef{1}, parameters),
          .flagged = writer_.compose(type, fxt::ThreadRef{1}, category_ref, fxt::StringRef{1}, flagged)};
}

void FxtSink::header(const RunHeader& header) {
  metadata_.header(header);
}

void FxtSink::consume(const Batch& batch, const Registry& registry) {
  if (writer_.failed()) return;
  metadata_.begin_batch();
  builder_.consume(batch, registry);
}

void FxtSink::flush() {
  const std::uint64_t now = monotonic_ns();
  if (now - last_written_ns_ < options_.max_held_ns) return;
  last_written_ns_ = now;
  writer_.flush();
}

void FxtSink::summary(const RunSummary& summary, const Registry& registry) {
  builder_.finish(summary.end_ns, registry);
  stacks_.finish(registry.stacks());
  metadata_.summary(summary, registry);
  writer_.flush();
}

/// The string slot of the name of an event. A raw id stands for all events of a kind and id.
inline fxt::StringRef FxtSink::string_of(const Event& event, const Registry& registry, bool raw) {
  const unsigned family = metadata_.ring_of(event, registry);
  const StringId id{.kind = raw ? event.kind : group_of(event.kind),
                    .raw = raw,
                    .id = event.id,
                    .scope = is_user(event) ? Source::unpack(event.source).slot : family};
  const fxt::StringRef known = strings_.find(id.pack(), metadata_.batch());
  return known.is_empty() ? define(id, event, registry) : known;
}

[[gnu::noinline]] fxt::StringRef FxtSink::define(record::StringId id, const Event& event, const Registry& registry) {
  const bool user = is_user(event);
  id.known = user && !known_name_of(event, registry).empty();
  std::string scratch;
  return strings_.define(id, name_of(event, registry, scratch), metadata_.batch(), user);
}

template <typename... Values>
void FxtSink::put(const Shape& shape, const Track& track, const EventContext& context, Values... values) {
  const fxt::StringRef name = string_of(context.event, context.registry);
  const fxt::ThreadRef thread = threads_.of(context.event.source, track);
  if (context.event.flags == 0) [[likely]] {
    writer_.write(shape.plain.with_thread(thread).with_name(name), context.event.time, values...);
  } else {
    writer_.write(shape.flagged.with_thread(thread).with_name(name), context.event.time, values...,
                  std::uint32_t{context.event.flags});
  }
}

void FxtSink::begin(const Track& track, const EventContext& context, const Flows& flows) {
  put(spans_[is_user(context.event)].begin, track, context);
  for (const std::uint64_t id : flows.out) flow(flow_begin_, track, context.event, id);
  if (flows.in != 0) flow(flow_end_, track, context.event, flows.in);
}

void FxtSink::end(const Track& track, const EventContext& context) {
  put(spans_[is_user(context.event)].end, track, context);
}

void FxtSink::stray_end(const Track& track, const EventContext& context) {
  put(spans_[is_user(context.event)].stray_end, track, context, true);
}

void FxtSink::counter(const Track& track, const EventContext& context) {
  const std::size_t family = metadata_.ring_of(context.event, context.registry);
  const std::size_t unit = context.event.id < counter_ids ? units_[family][context.event.id] : 0;
  put(counters_[unit], track, context, fxt::CounterId{counter_id(track, context.event)}, context.event.value);
}

void FxtSink::point(const Track& track, const EventContext& context) {
  const Event& event = context.event;
  switch (event.kind) {
    case EventKind::alloc: {
      const auto buckets = context.batch.payload_as<std::array<std::uint64_t, alloc_bucket_count>>(event);
      if (!buckets) return raw(track, context);
      return put(alloc_, track, context, std::accumulate(buckets->begin(), buckets->end(), std::uint64_t{0}),
                 blob(context.batch.payload(event)));
    }
    case EventKind::lifecycle:
      return put(lifecycle_, track, context, event.signed_value());
    case EventKind::user_unit:
      return put(user_unit_, track, context);
    case EventKind::user_int:
      return put(user_int_, track, context, event.signed_value());
    case EventKind::user_custom:
      return custom(track, context);
    default:
      return raw(track, context);
  }
}

/// Viewers show text; they do not show the content of blobs.
void FxtSink::custom(const Track& track, const EventContext& context) {
  const auto bytes = context.batch.payload(context.event);
  if (bytes.size() <= max_text_bytes && is_printable(as_text(bytes))) {
    put(user_text_, track, context, as_text(bytes));
  } else {
    put(user_bytes_, track, context, blob(bytes));
  }
}

void FxtSink::lost(const Track& track, const EventContext& context, const Loss& loss) {
  writer_.buffer_full();
  put(lost_, track, context, loss.words, loss.from_ns, loss.to_ns,
      to_string(static_cast<LossReason>(context.event.id)));
}

void FxtSink::dropped(const EventContext& context, const Loss& loss) {
  if (!std::exchange(kernel_buffers_named_, true)) name_track(kernel_buffers());
  lost(kernel_buffers(), context, loss);
}

void FxtSink::process(const Track& track, const EventContext& context, const ProcessRecord& record) {
  if (record.process != 0) metadata_.process(record.process, context.registry);
  put(process_, track, context, record.process, record.peer, record.detail);
}

void FxtSink::sched_switch(const EventContext& context, const SchedSwitch& change, const Track*, const Track*) {
  if (!sched_.write(context.event, change)) malformed(context);
}

void FxtSink::wakeup(const EventContext& context, const Wakeup& wakeup, const Track*, const Track*) {
  if (!sched_.write(context.event, wakeup)) malformed(context);
}

/// All on one track: viewers show the tracks of threads without them.
void FxtSink::sample(const EventContext& context, const Sample& sample, const Track* /*track*/) {
  if (!std::exchange(samples_named_, true)) name_track(all_samples());
  if (sample.process != 0) metadata_.process(sample.process, context.registry);
  stacks_.write(sample.stack, context.registry.stacks());
  put(sample_, all_samples(), context, sample.process, sample.pid, sample.tid, sample.domain, sample.cpu, sample.stack,
      sample.weight, static_cast<std::uint32_t>(sample.role), sample.holds_lock);
}

void FxtSink::malformed(const EventContext& context) {
  raw(nowhere(), context);
}

/// Any event, without interpretation.
void FxtSink::raw(const Track& track, const EventContext& context) {
  const Event& event = context.event;
  const fxt::StringRef name = string_of(event, context.registry, true);
  const fxt::ThreadRef thread = threads_.of(event.source, track);
  const std::uint32_t flags = event.flags;
  if (has_payload(event.kind)) {
    writer_.write(raw_bytes_.flagged.with_thread(thread).with_name(name), event.time,
                  blob(context.batch.payload(event)), flags);
  } else {
    writer_.write(raw_value_.flagged.with_thread(thread).with_name(name), event.time, event.value, flags);
  }
}

void FxtSink::flow(const fxt::ComposedEvent& shape, const Track& track, const Event& event, std::uint64_t id) {
  writer_.write(shape.with_thread(threads_.of(event.source, track)), event.time, fxt::FlowId{id});
}

void FxtSink::open(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
                   SpanMark mark) {
  const fxt::StringRef name = string_of(begun, registry);
  writer_.write(open_.with_thread(threads_.of(begun.source, track)).with_name(name), time, to_string(mark));
}

void FxtSink::close(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
                    SpanMark mark) {
  const fxt::StringRef name = string_of(begun, registry);
  writer_.write(close_.with_thread(threads_.of(begun.source, track)).with_name(name), time, to_string(mark));
}

/// Few names are frequent: the operations of a program, domains. A hostile program has more.
fxt::StringRef FxtSink::task_name(std::string_view name) {
  if (const auto known = task_names_.find(name); known != task_names_.end()) return known->second;
  if (task_names_.size() >= max_task_names) return writer_.temporary(name);
  return task_names_.emplace(name, writer_.intern(name)).first->second;
}

void FxtSink::task_span(const Track& track, const TaskSpan& span) {
  const fxt::StringRef name = task_name(span.name);
  const fxt::ThreadRef thread = threads_.of(0, track);
  writer_.write(task_begin_.with_thread(thread).with_name(name), span.begin_ns);
  for (const std::uint64_t id : span.flows.out)
    writer_.write(task_flow_begin_.with_thread(thread), span.begin_ns, fxt::FlowId{id});
  if (span.flows.in != 0) writer_.write(task_flow_end_.with_thread(thread), span.begin_ns, fxt::FlowId{span.flows.in});
  writer_.write(task_end_.with_thread(thread).with_name(name), span.end_ns);
}

void FxtSink::task_point(const Track& track, std::uint64_t time, std::string_view name, std::string_view text) {
  writer_.write(task_point_.with_thread(threads_.of(0, track)).with_name(task_name(name)), time, text);
}

void FxtSink::left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) {
  sched_.left_cpu(time, cpu, track.tid);
}

void FxtSink::name_process(std::int32_t pid, std::string_view name) {
  writer_.name_process(static_cast<std::uint32_t>(pid), name.substr(0, max_metadata_bytes));
}

void FxtSink::name_track(const Track& track) {
  writer_.name_thread(static_cast<std::uint32_t>(track.pid), static_cast<std::uint32_t>(track.tid),
                      std::string_view(track.name).substr(0, max_metadata_bytes));
}

}  // namespace rtev
