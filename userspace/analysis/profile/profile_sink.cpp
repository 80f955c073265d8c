// SPDX-License-Identifier: MIT
#include "analysis/profile/profile_sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <tuple>

#include "analysis/gc_stacks.hpp"
#include "base/saturating_sum.hpp"
#include "stream/program_key.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t word_bytes = 8;

/// True for what the tracer finds out about a process that may sleep meanwhile.
bool is_of_search(const Event& event) {
  if (event.kind != EventKind::process) return false;
  switch (static_cast<ProcessAction>(event.id)) {
    case ProcessAction::found:
    case ProcessAction::ring:
    case ProcessAction::probe:
    case ProcessAction::unreadable:
      return true;
    default:
      return false;
  }
}

/// "outside of the GC" and so on: label 0.
std::string_view unlabelled(ProfileBy by) {
  if (by == ProfileBy::gc_phase) return "outside of the GC";
  return by == ProfileBy::user_span ? "outside of user spans" : "";
}

std::uint64_t scaled(std::uint64_t part, std::uint64_t of, std::uint64_t whole) {
  return of == 0 ? 0 : static_cast<std::uint64_t>(static_cast<__uint128_t>(part) * whole / of);
}

}  // namespace

Profile::Profile(ProfileOptions options)
    : options_(std::move(options)), fold_(options_.max_keys), on_cpu_(options_.max_keys) {
  labels_.emplace_back(unlabelled(options_.by));
  if (options_.in) slow_.emplace(fold_, options_.in->min_ns, options_.max_waiting);
}

Profile::~Profile() = default;

void Profile::header(const RunHeader& header) {
  header_ = header;
  activity_.header(header);
  last_ns_ = header.begin_ns();
}

void Profile::consume(const Batch& batch, const Registry& registry) {
  registry_ = &registry;
  for (const Event& event : batch.events()) {
    last_ns_ = std::max(last_ns_, event.time);
    may_have_run_ |= !is_of_search(event);
    switch (event.kind) {
      case EventKind::sample:
        sample(event, batch, registry);
        continue;
      case EventKind::counter:
        if (options_.kind == SampleKind::allocation) counter(event, registry);
        continue;
      case EventKind::lost:
        if (const auto kind = lost_samples(event)) {
          if (const auto loss = batch.payload_as<Loss>(event); loss && kind == options_.kind) dropped_ += loss->words;
          continue;
        }
        break;
      case EventKind::begin:
        has_pauses_ = true;
        break;
      case EventKind::sched_switch:
        count_cpu_time(event, batch);
        break;
      case EventKind::process:
        // The registry forgets processes that ended long ago.
        if (const auto record = batch.payload_as<ProcessRecord>(event)) {
          if (processes_.contains(record->process)) describe(record->process, registry);
          if (event.id == static_cast<std::uint16_t>(ProcessAction::exit))
            end_cpu_time(registry.process(record->process).pid, event.time);
        }
        break;
      default:
        break;
    }
    activity_.add(event, batch, registry);
  }
  registry_ = nullptr;
}

void Profile::summary(const RunSummary& summary, const Registry& registry) {
  last_ns_ = std::max(last_ns_, summary.end_ns);
  truncated_ = !summary.complete;
  header_.not_recorded.note(summary.events);
  registry_ = &registry;
  activity_.finish(last_ns_);
  registry_ = nullptr;
  for (auto& [index, known] : processes_) describe(index, registry);
}

void Profile::describe(ProcessIndex index, const Registry& registry) {
  const ProcessInfo& info = registry.process(index);
  if (info.pid == 0) return;
  Known& known = processes_[index];
  known.pid = info.pid;
  known.comm = info.name;
  known.program = program_key(info.exe, info.name);
}

void Profile::sample(const Event& event, const Batch& batch, const Registry& registry) {
  const auto record = batch.payload_as<Sample>(event);
  if (!record || event.id >= samples_of_kind_.size()) return;
  ++samples_of_kind_[event.id];
  if (options_.kind == SampleKind::allocation && event.id == static_cast<std::uint16_t>(SampleKind::on_cpu))
    on_cpu_.add({.stack = record->stack}, {.samples = 1, .weight = record->weight});
  if (event.id != static_cast<std::uint16_t>(options_.kind) || record->weight < options_.min_weight) return;
  // Threads of the runtime that only wait for work.
  const bool is_helper = record->role == ThreadRole::backup || record->role == ThreadRole::tick;
  if (options_.kind == SampleKind::off_cpu && is_helper) return;
  SampleKey key{.stack = record->stack, .process = record->process, .domain = std::max(record->domain, -1)};
  if (key.process != 0 && !processes_.contains(key.process)) {
    if (processes_.size() < max_processes) describe(key.process, registry);
    if (!processes_.contains(key.process)) key.process = 0;
  }
  unknown_process_ += key.process == 0;
  const DomainActivity::Domain* const domain =
      acts_for_domain(*record, options_.kind) ? activity_.domain(record->process, record->domain) : nullptr;
  // While a thread sleeps without the lock, another one may collect for its domain.
  const bool acts = options_.kind == SampleKind::on_cpu || (options_.kind == SampleKind::off_cpu && record->holds_lock);
  key.in_gc = acts && domain && domain->in_gc();
  key.label = label_of(domain, *record, registry);
  const SampleValue value{.samples = 1, .weight = options_.kind == SampleKind::allocation ? 1 : record->weight};
  if (slow_) {
    compare(key, value, event, *record, domain, registry);
  } else {
    fold_.add(key, value);
  }
}

void Profile::compare(const SampleKey& key, const SampleValue& value, const Event& event, const Sample& sample,
                      const DomainActivity::Domain* domain, const Registry& registry) {
  SlowScope scope{.process = sample.process};
  if (is_about_pauses()) return slow_->add(scope, key, value, event.time, activity_.open_pauses(sample.process));
  if (!domain) return fold_.add(key, value);
  scope.domain = sample.domain;
  scope.fiber = activity_.current_fiber(sample.process, sample.domain);
  std::vector<std::uint64_t> begins = scope.fiber ? begins_in(scope, domain, registry) : std::vector<std::uint64_t>();
  if (begins.empty()) {
    scope.fiber.reset();
    begins = begins_in(scope, domain, registry);
  }
  slow_->add(scope, key, value, event.time, begins);
}

bool Profile::matches(const OpenSpan& span, const Registry& registry) {
  const std::string name = DomainActivity::name_of(span, registry);
  if (options_.in->matches(name)) return true;
  if (!name.empty() && other_names_.size() < max_other_names) other_names_.insert(name);
  return false;
}

std::vector<std::uint64_t> Profile::begins_in(const SlowScope& scope, const DomainActivity::Domain* domain,
                                              const Registry& registry) {
  std::vector<std::uint64_t> begins;
  if (!domain) return begins;
  for (const OpenSpan& span : domain->spans.all()) {
    if (span.fiber == scope.fiber && matches(span, registry)) begins.push_back(span.begin_ns);
  }
  return begins;
}

void Profile::on_span_end(ProcessIndex process, std::uint16_t domain, const OpenSpan& span, std::uint64_t time_ns,
                          bool is_known) {
  if (!slow_ || is_about_pauses() || !registry_) return;
  const SlowScope scope{.process = process, .domain = domain, .fiber = span.fiber};
  if (!slow_->waits(scope) || !matches(span, *registry_)) return;
  slow_->end(scope, span.begin_ns, time_ns, is_known, begins_in(scope, activity_.domain(process, domain), *registry_));
}

void Profile::on_pause_end(ProcessIndex process, std::uint64_t begin_ns, std::uint64_t end_ns, bool is_known) {
  if (slow_ && is_about_pauses())
    slow_->end({.process = process}, begin_ns, end_ns, is_known, activity_.open_pauses(process));
}

std::uint32_t Profile::label_of(const DomainActivity::Domain* domain, const Sample& sample, const Registry& registry) {
  if (!domain) return 0;
  if (options_.by == ProfileBy::gc_phase && domain->in_gc()) {
    const auto& [family, phase] = domain->phases.back();
    const std::string_view name = phase_name(family, phase);
    return label(name.empty() ? fmt::format("#{}", phase) : std::string(name));
  }
  if (options_.by != ProfileBy::user_span || domain->spans.all().empty()) return 0;
  // Fibers take turns: spans of the others are not what the domain does.
  const auto fiber = activity_.current_fiber(sample.process, sample.domain);
  const auto& spans = domain->spans.all();
  const auto found = std::ranges::find_if(spans.rbegin(), spans.rend(),
                                          [&](const OpenSpan& span) { return !span.fiber || span.fiber == fiber; });
  if (found == spans.rend()) return 0;
  std::string name = DomainActivity::name_of(*found, registry);
  return label(name.empty() ? fmt::format("user event {}", found->event) : std::move(name));
}

std::uint32_t Profile::label(std::string name) {
  const auto known = label_indices_.find(name);
  if (known != label_indices_.end()) return known->second;
  if (labels_.size() >= max_labels) name = "further names";
  const auto [added, is_new] = label_indices_.try_emplace(name, static_cast<std::uint32_t>(labels_.size()));
  if (is_new) labels_.push_back(std::move(name));
  return added->second;
}

/// Only to say why there are no samples.
void Profile::count_cpu_time(const Event& event, const Batch& batch) {
  switches_seen_ = true;
  if (samples_of_kind_[static_cast<std::size_t>(options_.kind)] > 0) return;
  const auto change = batch.payload_as<SchedSwitch>(event);
  if (!change) return;
  if (const auto running = running_.find(change->cpu); running != running_.end()) {
    if (change->prev.tracked) cpu_ns_ += event.time - std::min(event.time, running->second.since_ns);
    running_.erase(running);
  }
  if (change->next.tracked && running_.size() < max_cpus)
    running_.emplace(change->cpu, OnCpu{.since_ns = event.time, .pid = change->next.pid});
}

/// The switch to the next thread is not seen after the exit of a process.
void Profile::end_cpu_time(std::int32_t pid, std::uint64_t time_ns) {
  std::erase_if(running_, [&](const auto& each) {
    const OnCpu& thread = each.second;
    if (thread.pid != pid) return false;
    cpu_ns_ += time_ns - std::min(time_ns, thread.since_ns);
    return true;
  });
}

void Profile::counter(const Event& event, const Registry& registry) {
  const Source source = Source::unpack(event.source);
  const RingInfo* const ring = registry.ring(source.slot);
  const auto family = registry.family_of(event);
  if (!ring || !family) return;
  const std::string_view name = counter_name(*family, event.id);
  const bool is_minor = name == "minor_allocated", is_promoted = name == "minor_promoted";
  if (!is_minor && !is_promoted && name != "major_allocated_words") return;
  const DomainKey key{ring->process, source.domain};
  if (allocated_.size() >= max_counted_domains && !allocated_.contains(key)) return;
  Allocated& allocated = allocated_[key];
  std::uint64_t& sum = is_minor      ? allocated.minor_bytes
                       : is_promoted ? allocated.promoted_bytes
                                     : allocated.major_bytes;
  if (!is_promoted) (is_minor ? allocated.has_minor : allocated.has_major) = true;
  std::uint64_t bytes = event.value;
  const bool is_words = !is_minor && !is_promoted;
  if (is_words && __builtin_mul_overflow(bytes, word_bytes, &bytes)) bytes = UINT64_MAX;
  if (__builtin_add_overflow(sum, bytes, &sum)) sum = UINT64_MAX;
}

ProfileReport Profile::report(const Registry& registry) const {
  ProfileReport report{.version = header_.version,
                       .host = header_.host,
                       .command_line = header_.command_line,
                       .run_ns = header_.start_ns,
                       .run_realtime_ns = header_.start_realtime_ns,
                       .start_ns = header_.begin_ns(),
                       .end_ns = last_ns_,
                       .truncated = truncated_,
                       .not_recorded = header_.not_recorded,
                       .kind = options_.kind,
                       .by = options_.by,
                       .in = options_.in,
                       .of_recording = options_.of_recording,
                       .input = options_.input,
                       .full = options_.full,
                       .unknown_process = unknown_process_,
                       .dropped = dropped_,
                       .undecided = slow_ ? slow_->undecided() : 0,
                       .without_room = fold_.without_room(),
                       .samples_of_kind = samples_of_kind_,
                       .has_pauses = has_pauses_,
                       .tree = CallTree(registry.stacks()),
                       .labels = labels_,
                       .other_names = {other_names_.begin(), other_names_.end()}};
  report.process_count = registry.process_count();
  report.cpu_ns = cpu_ns_;
  report.switches_seen = switches_seen_;
  report.all_slept = options_.traces_switches && !may_have_run_;
  for (const OnCpu& thread : running_ | std::views::values)
    report.cpu_ns += last_ns_ - std::min(last_ns_, thread.since_ns);
  add_entries(report, registry);
  const LargeBlockNodes blocks = large_blocks(report.tree, registry.stacks());
  for (const ProfileEntry& entry : report.entries) {
    report.tree.count(entry.node, entry.side, entry.value);
    report.all[static_cast<std::size_t>(entry.side)] += entry.value;
    if (entry.in_gc) report.gc += entry.value;
    report.processes[entry.process].value += entry.value;
  }
  report.tree.sum_up();
  add_rows(report, blocks);
  return report;
}

/// Their allocation is found on a CPU: the function of the runtime for them is below OCaml code.
LargeBlockNodes Profile::large_blocks(CallTree& tree, const StackTable& stacks) const {
  LargeBlockNodes nodes;
  for (const auto& [key, value] : on_cpu_.values()) {
    bool is_inside = true, allocates = false;
    stacks.for_each_frame(key.stack, [&](FrameIndex, const StackFrame& frame) {
      is_inside &= frame.kind != FrameKind::ocaml;
      allocates |= is_inside && frame.function.starts_with("caml_alloc_shr");
    });
    if (allocates && !is_inside) nodes.emplace_back(tree.add(key.stack, CallTree::Inner::ocaml_only), value);
  }
  return nodes;
}

void Profile::add_entries(ProfileReport& report, const Registry& registry) const {
  std::unordered_map<ProcessIndex, std::uint32_t> indices{{0, 0}};
  std::vector<ProcessIndex> by_index{0};
  report.processes.emplace_back();
  report.entries.reserve(fold_.values().size());
  std::unordered_map<StackIndex, FrameKind> outermosts;
  std::unordered_map<StackIndex, bool> below_entry;
  std::uint32_t unphased = 0;  ///< label of what is in the GC, and in no phase
  std::uint64_t weight = 0;
  // The order of a hash table is none that a report should have.
  std::vector<std::pair<SampleKey, SampleValue>> ordered(fold_.values().begin(), fold_.values().end());
  std::ranges::sort(ordered, [](const auto& a, const auto& b) {
    const auto rank = [](const SampleKey& key) {
      return std::tuple(key.stack, key.process, key.domain, key.label, key.side, key.in_gc);
    };
    return rank(a.first) < rank(b.first);
  });
  for (const auto& [key, value] : ordered) {
    const auto [process, is_new] = indices.try_emplace(key.process, static_cast<std::uint32_t>(by_index.size()));
    if (is_new) {
      const auto known = processes_.find(key.process);
      by_index.push_back(key.process);
      ProfileProcess& added = report.processes.emplace_back();
      if (known != processes_.end()) {
        added.pid = known->second.pid;
        added.comm = known->second.comm;
        added.program = known->second.program;
      }
    }
    const bool is_allocation = options_.kind == SampleKind::allocation;
    bool in_gc = key.in_gc;
    std::uint32_t label = key.label;
    if (!in_gc && !is_allocation) {
      const auto [below, is_unknown] = below_entry.try_emplace(key.stack, false);
      if (is_unknown) below->second = is_below_gc_entry(key.stack, registry.stacks());
      in_gc = below->second;
      if (in_gc && options_.by == ProfileBy::gc_phase) {
        if (unphased == 0) {
          unphased = static_cast<std::uint32_t>(report.labels.size());
          report.labels.emplace_back("between phases");
        }
        label = unphased;
      }
    }
    const auto inner = is_allocation ? CallTree::Inner::ocaml_only : in_gc ? CallTree::Inner::gc : CallTree::Inner::all;
    report.entries.push_back({.node = report.tree.add(key.stack, inner),
                              .process = process->second,
                              .domain = key.domain,
                              .label = label,
                              .side = key.side,
                              .in_gc = in_gc,
                              .value = value});
    const auto [outermost, is_unseen] = outermosts.try_emplace(key.stack);
    if (is_unseen) outermost->second = registry.stacks().outermost(key.stack);
    if (outermost->second == FrameKind::cut) report.cut += value.samples;
    if (outermost->second == FrameKind::cut || outermost->second == FrameKind::unknown)
      report.incomplete += value.samples;
    weight |= value.weight;
  }
  if (options_.kind == SampleKind::allocation) {
    scale_allocations(report, by_index);
  } else if (weight == 0) {
    report.unit = WeightUnit::samples;
    for (ProfileEntry& entry : report.entries) entry.value.weight = entry.value.samples;
  }
}

/// A sample stands for as much as any other of its domain. Domains without a counter get the mean of the others.
void Profile::scale_allocations(ProfileReport& report, const std::vector<ProcessIndex>& indices) const {
  std::map<DomainKey, std::uint64_t> samples;
  for (const ProfileEntry& entry : report.entries)
    samples[{indices[entry.process], entry.domain}] += entry.value.samples;
  AllocatedMemory& memory = report.memory;
  std::uint64_t counted_samples = 0, counted_bytes = 0;
  for (const auto& [domain, allocated] : allocated_) {
    if (allocated.has_minor) memory.minor_bytes = saturating_sum(memory.minor_bytes.value_or(0), allocated.minor_bytes);
    if (!allocated.has_major) continue;
    std::uint64_t bytes = memory.major_bytes.value_or(0);
    const std::uint64_t promoted = std::min(allocated.promoted_bytes, allocated.major_bytes);
    if (__builtin_add_overflow(bytes, allocated.major_bytes - promoted, &bytes)) bytes = UINT64_MAX;
    memory.major_bytes = bytes;
  }
  const auto counted = [&](const DomainKey& domain) {
    const auto found = allocated_.find(domain);
    return found != allocated_.end() && found->second.minor_bytes > 0 ? &found->second : nullptr;
  };
  for (const auto& [domain, count] : samples) {
    ++memory.domains;
    if (const Allocated* const allocated = counted(domain)) {
      counted_samples += count;
      if (__builtin_add_overflow(counted_bytes, allocated->minor_bytes, &counted_bytes)) counted_bytes = UINT64_MAX;
    } else {
      ++memory.domains_without_counter;
    }
  }
  report.unit = counted_bytes > 0 ? WeightUnit::bytes : WeightUnit::samples;
  for (ProfileEntry& entry : report.entries) {
    const DomainKey domain{indices[entry.process], entry.domain};
    if (report.unit == WeightUnit::samples) {
      entry.value.weight = entry.value.samples;
    } else if (const Allocated* const allocated = counted(domain)) {
      entry.value.weight = scaled(entry.value.samples, samples[domain], allocated->minor_bytes);
    } else {
      entry.value.weight = scaled(entry.value.samples, counted_samples, counted_bytes);
    }
  }
}

}  // namespace rtev
