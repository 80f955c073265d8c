// SPDX-License-Identifier: MIT
#include "analysis/tasks/task_tracker.hpp"

#include <algorithm>

#include "base/escape.hpp"
#include "base/program_names.hpp"

namespace rtev {
namespace {

using TaskWhat = TaskEvent::What;

/// Characters of a name in a table.
constexpr std::size_t shown_name_bytes = 24;

/// Not within a character.
std::string_view cut_bytes(std::string_view text, std::size_t most) {
  std::size_t size = std::min(text.size(), most);
  while (size < text.size() && size > 0 && (text[size] & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

std::string kept_text(std::string_view text) {
  return std::string(cut_bytes(text, TaskTracker::max_text_bytes));
}

/// What Miou.suspend waits for. Where the program gives no name, it is a number, another one each time.
std::string operation_name(std::string_view text) {
  const bool is_number = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? "suspend" : kept_text(text);
}

/// The path of a file of OCaml's standard library has no directory; of a program that is built by dune each has one.
bool is_standard_library(std::string_view path) {
  static constexpr std::array<std::string_view, 12> files{"array.ml",  "domain.ml", "fun.ml",    "hashtbl.ml",
                                                          "list.ml",   "map.ml",    "option.ml", "queue.ml",
                                                          "result.ml", "seq.ml",    "set.ml",    "stack.ml"};
  return std::ranges::find(files, path) != files.end();
}

/// The outermost function of a task that is neither Miou's nor the standard library's: on the stack that Miou runs it
/// on. Empty if that is not there.
std::string_view function_of_task(const StackTable& stacks, StackIndex stack) {
  std::string_view outermost, found;
  bool is_below_stack = false;
  stacks.for_each_frame(stack, [&](FrameIndex, const StackFrame& frame) {
    if (frame.function == "caml_runstack") {
      is_below_stack = true;
    } else if (frame.kind == FrameKind::ocaml) {
      const bool is_miou = frame.function.starts_with("Miou");
      if (is_below_stack && is_miou && found.empty()) found = outermost;
      if (!is_miou && !frame.function.starts_with("Stdlib.") && !is_glue(frame.function)) outermost = frame.function;
      is_below_stack = false;
    }
  });
  return found;
}

/// Errors by which programs end fibers that are no longer needed: Fiber.first has one result, a switch of daemons ends.
bool is_stop_request(std::string_view error) {
  return error.ends_with("Not_first") || error == "Stdlib.Exit" || error.starts_with("Cancelled");
}

}  // namespace

std::string_view to_string(TaskState state) {
  constexpr std::array<std::string_view, task_state_count> names{"runnable", "running", "suspended"};
  return names.at(static_cast<std::size_t>(state));
}

std::string_view to_string(TaskEnd how) {
  constexpr std::array<std::string_view, 3> names{"finished", "failed", "cancelled"};
  return names.at(static_cast<std::size_t>(how));
}

void append(TextBuffer& out, const TaskName& name) {
  const Task& task = name.task;
  out.add(task.library == TaskLibrary::eio ? "fiber " : "task ", task.id);
  const std::string_view given = task.name.empty() ? task.context_name : task.name;
  if (given.empty()) return;
  const std::string_view shown = name.whole ? given : cut_bytes(given, shown_name_bytes);
  out.add(task.name.empty() ? " of " : " ");
  add_quoted(out, shown);
  if (shown.size() < given.size()) out.add("...");
}

void TaskTracker::use(const Event& event, const Batch& batch, const Registry& registry) {
  if (event.kind == EventKind::process) {
    if (event.id != static_cast<std::uint16_t>(ProcessAction::exit)) return;
    if (const auto record = batch.payload_as<ProcessRecord>(event)) end_process(record->process, event.time);
    return;
  }
  const bool ends_domain =
      event.kind == EventKind::lifecycle && event.id == static_cast<std::uint16_t>(Lifecycle::domain_terminate);
  if (event.kind == EventKind::lost || ends_domain) {
    if (processes_.empty()) return;
    const Source source = Source::unpack(event.source);
    if (const RingInfo* const ring = registry.ring(source.slot)) lose(ring->process, source.domain);
    return;
  }
  const auto read = events_.read(event, batch, registry);
  if (!read) return;
  const Source source = Source::unpack(event.source);
  const ProcessIndex index = registry.ring(source.slot)->process;
  auto of = processes_.find(index);
  if (of == processes_.end() || !of->second.domains.contains(source.domain)) {
    if (domains_ >= limits_.domains) return;
    ++domains_;
    of = processes_.try_emplace(index).first;
    of->second.domains.try_emplace(source.domain);
  }
  Process& process = of->second;
  apply(*read, {.index = index,
                .process = process,
                .number = source.domain,
                .domain = process.domains.at(source.domain),
                .time_ns = event.time});
}

void TaskTracker::apply(const TaskEvent& event, const Place& place) {
  const TaskKey key{event.library, event.id};
  switch (event.what) {
    case TaskWhat::create:
      return create(event, place);
    case TaskWhat::run:
      return run(key, place);
    case TaskWhat::suspend:
      if (Entry* const entry = current(place)) suspend(*entry, event.text, place);
      return;
    case TaskWhat::operation:
      if (Entry* const entry = find(place.process, key)) entry->next_operation = operation_name(event.text);
      return;
    case TaskWhat::suspend_task:
      if (Entry* const entry = find(place.process, key))
        suspend(*entry, entry->next_operation.empty() ? "await" : std::string(entry->next_operation), place);
      return;
    case TaskWhat::stop:
      if (Entry* const entry = find(place.process, key)) stop(*entry, place);
      return;
    case TaskWhat::ready:
      if (Entry* const entry = find(place.process, key); entry != nullptr && entry->task.state == TaskState::suspended)
        set_state(*entry, TaskState::runnable, {}, place);
      return;
    case TaskWhat::end:
      return end(key, place);
    case TaskWhat::cancel:
      if (Entry* const entry = find(place.process, key)) entry->cancelled = true;
      return;
    case TaskWhat::fail:
      return fail(event, place);
    case TaskWhat::name:
      return name(event, place);
    case TaskWhat::created_at:
      return name_by_place(event, place);
    case TaskWhat::enter_context:
      return enter_context(event, place);
    case TaskWhat::leave_context:
      return leave_context(place);
    case TaskWhat::wait_for:
      return wait_for(event.id, place);
    case TaskWhat::pass:
      return pass(event.id, place);
    case TaskWhat::poll_begin:
      place.domain.poll_begin_ns = place.time_ns;
      return;
    case TaskWhat::poll_end:
      if (place.domain.poll_begin_ns != 0 && observer_ != nullptr)
        observer_->on_poll(place.index, place.number, std::exchange(place.domain.poll_begin_ns, 0), place.time_ns);
      return;
  }
}

TaskTracker::Entry* TaskTracker::find(Process& process, const TaskKey& key) {
  const auto found = process.tasks.find(key);
  return found != process.tasks.end() ? &found->second : nullptr;
}

const Task* TaskTracker::find(ProcessIndex process, TaskLibrary library, std::int64_t id) const {
  const auto of = processes_.find(process);
  if (of == processes_.end()) return nullptr;
  const auto found = of->second.tasks.find({library, id});
  return found != of->second.tasks.end() ? &found->second.task : nullptr;
}

/// Null if there is no room. A task that is added was created before the stream began, or in a gap.
TaskTracker::Entry* TaskTracker::find_or_add(const TaskKey& key, const Place& place) {
  if (Entry* const known = find(place.process, key)) return known;
  if (tasks_ >= limits_.tasks) make_room(place.index);
  if (tasks_ >= limits_.tasks) {
    ++not_followed_;
    return nullptr;
  }
  ++tasks_;
  Entry& entry = place.process.tasks[key];
  entry.task.library = key.first;
  entry.task.id = key.second;
  entry.task.domain = place.number;
  entry.task.since_ns = place.time_ns;
  ++place.process.count(entry.task);
  return &entry;
}

/// The task that runs on the domain, or ran last: until another one runs, events are of it.
TaskTracker::Entry* TaskTracker::current(const Place& place) {
  return place.domain.current ? find(place.process, *place.domain.current) : nullptr;
}

void TaskTracker::create(const TaskEvent& event, const Place& place) {
  const TaskKey key{event.library, event.id};
  Entry* const creator = current(place);
  const std::optional<std::int64_t> creator_id = creator != nullptr ? std::optional(creator->task.id) : std::nullopt;
  if (find(place.process, key) != nullptr) end(key, place);  // its end was not seen, and its id is used again
  Entry* const entry = find_or_add(key, place);
  if (entry == nullptr) return;
  Task& task = entry->task;
  task.created_ns = place.time_ns;
  if (event.library == TaskLibrary::eio) {
    task.creator = creator_id;
    task.context = event.other;
    if (const auto context = place.process.contexts.find(event.other); context != place.process.contexts.end())
      task.context_name = context->second.name;
  } else if (event.other >= 0) {
    task.creator = event.other;
  }
  entry->gaps = place.domain.gaps;
  if (observer_ != nullptr) observer_->on_task_created(place.index, task);
}

void TaskTracker::run(const TaskKey& key, const Place& place) {
  Domain& domain = place.domain;
  if (domain.runs && domain.current && *domain.current != key) {
    // It gave way to one that it created.
    if (Entry* const before = current(place)) set_state(*before, TaskState::runnable, {}, place);
  }
  domain.current = key;
  domain.runs = true;
  Entry* const entry = find_or_add(key, place);
  if (entry == nullptr) return;
  stop_waiting(place.process, *entry);
  entry->error.clear();
  entry->next_operation.clear();
  set_state(*entry, TaskState::running, {}, place);
  if (observer_ != nullptr) observer_->on_task_runs(place.index, entry->task);
}

void TaskTracker::suspend(Entry& entry, std::string_view operation, const Place& place) {
  entry.error.clear();
  if (place.domain.current == TaskKey{entry.task.library, entry.task.id}) place.domain.runs = false;
  set_state(entry, operation.empty() ? TaskState::runnable : TaskState::suspended, operation, place);
}

void TaskTracker::stop(Entry& entry, const Place& place) {
  if (entry.task.state == TaskState::running) suspend(entry, {}, place);
}

void TaskTracker::end(const TaskKey& key, const Place& place) {
  if (place.domain.current == key) {
    place.domain.current.reset();
    place.domain.runs = false;
  }
  const auto found = place.process.tasks.find(key);
  if (found == place.process.tasks.end()) return;
  Entry& entry = found->second;
  report_interval(place, entry, false);
  const auto in_failed_context = [&] {
    const auto context =
        entry.task.context ? place.process.contexts.find(*entry.task.context) : place.process.contexts.end();
    return context != place.process.contexts.end() && context->second.failed;
  };
  if (observer_ != nullptr) {
    const TaskEnd how = !entry.error.empty()                     ? TaskEnd::failed
                        : entry.cancelled || in_failed_context() ? TaskEnd::cancelled
                                                                 : TaskEnd::finished;
    observer_->on_task_end(place.index, entry.task, how, entry.error, place.time_ns);
  }
  stop_waiting(place.process, entry);
  set_nameless(entry, false);
  --place.process.count(entry.task);
  place.process.tasks.erase(found);
  --tasks_;
}

/// A context is cancelled with an error. A task that raises the error of the context it was created in, and ends then,
/// has failed.
void TaskTracker::fail(const TaskEvent& event, const Place& place) {
  if (const auto context = place.process.contexts.find(event.id); context != place.process.contexts.end()) {
    context->second.failed = true;
    Entry* const entry = current(place);
    if (entry != nullptr && entry->task.context == event.id && !is_stop_request(event.text))
      entry->error = kept_text(event.text);
  } else if (Entry* const task = find(place.process, {event.library, event.id})) {
    task->error = kept_text(event.text);
  }
}

void TaskTracker::name(const TaskEvent& event, const Place& place) {
  if (Entry* const entry = find(place.process, {event.library, event.id})) {
    entry->task.name = kept_text(event.text);
  } else if (const auto context = place.process.contexts.find(event.id); context != place.process.contexts.end()) {
    context->second.name = kept_text(event.text);
  }
}

void TaskTracker::name_by_place(const TaskEvent& event, const Place& place) {
  constexpr std::size_t max_line_bytes = 21;  // a colon, and 64 bits in decimal
  Entry* const entry = find(place.process, {event.library, event.id});
  if (entry == nullptr) return;
  const std::string_view file = file_name_of(event.text);
  set_nameless(*entry, is_standard_library(event.text));
  entry->task.name = std::string(cut_bytes(file, max_text_bytes - max_line_bytes)) + ':' + std::to_string(event.other);
}

void TaskTracker::set_nameless(Entry& entry, bool is_nameless) {
  nameless_ += (is_nameless ? 1 : 0) - (entry.is_nameless ? 1 : 0);
  entry.is_nameless = is_nameless;
}

/// Names the task that runs by the function that it was created for, if its own name says nothing.
void TaskTracker::use_sample(const Event& event, const Batch& batch, const Registry& registry) {
  const auto sample = batch.payload_as<Sample>(event);
  // The thread of a sleep may have run several tasks meanwhile.
  const bool is_at_sleep = event.id == static_cast<std::uint16_t>(SampleKind::off_cpu);
  if (!sample || is_at_sleep || !sample->holds_lock || sample->domain < 0) return;
  const auto of = processes_.find(sample->process);
  if (of == processes_.end()) return;
  const auto domain = of->second.domains.find(static_cast<std::uint16_t>(sample->domain));
  if (domain == of->second.domains.end() || !domain->second.runs || !domain->second.current) return;
  Entry* const entry = find(of->second, *domain->second.current);
  if (entry == nullptr || !entry->is_nameless) return;
  const std::string_view function = function_of_task(registry.stacks(), sample->stack);
  if (function.empty()) return;
  entry->task.name = kept_text(function);
  set_nameless(*entry, false);
}

void TaskTracker::enter_context(const TaskEvent& event, const Place& place) {
  auto& contexts = place.process.contexts;
  if (!contexts.contains(event.id)) {
    if (contexts_ >= limits_.contexts) {
      // Ends of contexts were lost. The names of others go with them.
      contexts_ -= contexts.size();
      contexts.clear();
    }
    if (contexts_ >= limits_.contexts) return;
    ++contexts_;
  }
  TaskContext& context = contexts[event.id] = {.type = kept_text(event.text)};
  Entry* const entry = current(place);
  // The root context is that of a task which is created next.
  if (entry == nullptr || event.text == "root") return;
  context.parent = entry->contexts.empty() ? entry->task.context : std::optional(entry->contexts.back());
  if (entry->contexts.size() < max_nested_contexts) entry->contexts.push_back(event.id);
}

void TaskTracker::leave_context(const Place& place) {
  Entry* const entry = current(place);
  if (entry == nullptr || entry->contexts.empty()) return;
  contexts_ -= place.process.contexts.erase(entry->contexts.back());
  entry->contexts.pop_back();
}

void TaskTracker::wait_for(std::int64_t object, const Place& place) {
  Entry* const entry = current(place);
  if (entry == nullptr) return;
  stop_waiting(place.process, *entry);
  entry->waits_for = place.process.waiters.emplace(object, TaskKey{entry->task.library, entry->task.id});
}

/// A promise resumes all tasks that wait for it, any other object the one that came first.
void TaskTracker::pass(std::int64_t object, const Place& place) {
  auto& waiters = place.process.waiters;
  for (auto waiter = waiters.lower_bound(object); waiter != waiters.end() && waiter->first == object;) {
    Entry* const entry = find(place.process, waiter->second);
    waiter = waiters.erase(waiter);
    if (entry == nullptr) continue;
    entry->waits_for.reset();
    if (entry->task.state != TaskState::suspended) continue;
    const bool is_promise = entry->task.operation == "Promise.await";
    set_state(*entry, TaskState::runnable, {}, place);
    if (!is_promise) return;
  }
}

void TaskTracker::stop_waiting(Process& process, Entry& entry) {
  if (entry.waits_for) process.waiters.erase(*std::exchange(entry.waits_for, std::nullopt));
}

void TaskTracker::set_state(Entry& entry, TaskState state, std::string_view operation, const Place& place) {
  report_interval(place, entry, false);
  Task& task = entry.task;
  --place.process.count(task);
  task.state = state;
  ++place.process.count(task);
  task.operation = kept_text(operation);
  task.since_ns = std::max(task.since_ns, place.time_ns);
  if (state == TaskState::running) task.domain = place.number;
  const auto domain = place.process.domains.find(task.domain);
  entry.gaps = domain != place.process.domains.end() ? domain->second.gaps : 0;
}

/// Nothing if the task may have been in other states meanwhile: it is not known since when it is in this one.
void TaskTracker::report_interval(const Place& place, const Entry& entry, bool goes_on) {
  const auto domain = place.process.domains.find(entry.task.domain);
  const bool is_known = domain != place.process.domains.end() && domain->second.gaps == entry.gaps;
  if (observer_ == nullptr || !is_known) return;
  const Task& task = entry.task;
  observer_->on_task_interval(place.index, task,
                              {.state = task.state,
                               .operation = task.operation,
                               .domain = task.domain,
                               .begin_ns = task.since_ns,
                               .end_ns = std::max(task.since_ns, place.time_ns),
                               .goes_on = goes_on});
}

/// Events of the domain are missing, or it ended.
void TaskTracker::lose(ProcessIndex process, std::uint16_t domain) {
  const auto of = processes_.find(process);
  if (of == processes_.end()) return;
  const auto found = of->second.domains.find(domain);
  if (found == of->second.domains.end()) return;
  found->second.current.reset();
  found->second.runs = false;
  found->second.poll_begin_ns = 0;
  ++found->second.gaps;
  if (observer_ != nullptr) observer_->on_tasks_unknown(process, domain);
}

void TaskTracker::end_process(ProcessIndex process, std::uint64_t time_ns) {
  const auto of = processes_.find(process);
  if (of == processes_.end()) return;
  Domain none;
  for (const auto& [key, entry] : of->second.tasks)
    report_interval({.index = process, .process = of->second, .number = 0, .domain = none, .time_ns = time_ns}, entry,
                    true);
  if (observer_ != nullptr) observer_->on_tasks_gone(process, time_ns);
  for (auto& [key, entry] : of->second.tasks) set_nameless(entry, false);
  tasks_ -= of->second.tasks.size();
  contexts_ -= of->second.contexts.size();
  domains_ -= of->second.domains.size();
  processes_.erase(of);
}

void TaskTracker::finish(std::uint64_t time_ns) {
  while (!processes_.empty()) end_process(processes_.begin()->first, time_ns);
}

/// Forgets tasks whose state is unknown since events were lost: they may have ended then.
void TaskTracker::make_room(ProcessIndex process) {
  if (until_sweep_ > 0) {
    --until_sweep_;
    return;
  }
  until_sweep_ = limits_.tasks / 8;
  const auto of = processes_.find(process);
  if (of == processes_.end()) return;
  auto& tasks = of->second.tasks;
  for (auto task = tasks.begin(); task != tasks.end();) {
    Entry& entry = task->second;
    const auto domain = of->second.domains.find(entry.task.domain);
    if (domain != of->second.domains.end() && domain->second.gaps == entry.gaps) {
      ++task;
      continue;
    }
    stop_waiting(of->second, entry);
    --of->second.count(entry.task);
    set_nameless(entry, false);
    task = tasks.erase(task);
    --tasks_;
  }
}

const Task* TaskTracker::running(ProcessIndex process, std::uint16_t domain) const {
  const auto of = processes_.find(process);
  if (of == processes_.end()) return nullptr;
  const auto found = of->second.domains.find(domain);
  if (found == of->second.domains.end() || !found->second.runs || !found->second.current) return nullptr;
  const auto task = of->second.tasks.find(*found->second.current);
  return task != of->second.tasks.end() ? &task->second.task : nullptr;
}

std::string TaskTracker::running_name(ProcessIndex process, std::uint16_t domain) const {
  const Task* const task = running(process, domain);
  if (task == nullptr) return {};
  TextBuffer text;
  append(text, TaskName{*task});
  return std::string(text.text());
}

std::string TaskTracker::context_text(ProcessIndex process, std::int64_t context) const {
  TextBuffer text;
  const auto of = processes_.find(process);
  if (of == processes_.end()) return {};
  const auto& contexts = of->second.contexts;
  constexpr int most_around = 8;
  auto found = contexts.find(context);
  for (int around = 0; found != contexts.end() && around < most_around; ++around) {
    text.add(around == 0 ? "" : " in ", escaped(found->second.type), ' ', found->first);
    if (!found->second.name.empty()) {
      text.add(' ');
      add_quoted(text, found->second.name);
    }
    found = found->second.parent ? contexts.find(*found->second.parent) : contexts.end();
  }
  return std::string(text.text());
}

}  // namespace rtev
