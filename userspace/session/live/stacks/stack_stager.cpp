// SPDX-License-Identifier: MIT
#include "session/live/stacks/stack_stager.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "inspect/tracking.hpp"

namespace rtev {
namespace {

/// As many as what is copied of a stack can hold.
constexpr std::size_t max_frames = 2048;

/// Of stacks that wait for the code of their process: of one process, of one user (but root), and of all.
constexpr std::size_t max_waiting_bytes_of_process = std::size_t{2} << 20, max_waiting_bytes = std::size_t{16} << 20,
                      max_waiting_bytes_of_user = max_waiting_bytes / 4;

constexpr std::size_t max_sleeping = 1 << 16;

/// After the start of a process its stacks are looked at, at intervals that double.
constexpr std::uint64_t first_look_ns = 10'000'000, last_look_ns = 160'000'000;

ThreadRole role_of(std::uint8_t role) {
  return role <= static_cast<std::uint8_t>(ThreadRole::tick) ? static_cast<ThreadRole>(role) : ThreadRole::unknown;
}

Sample sample_of(const rtev_stack& record, ProcessIndex process, StackIndex stack) {
  return {.process = process,
          .pid = static_cast<std::int32_t>(record.tgid),
          .tid = static_cast<std::int32_t>(record.tid),
          .domain = record.domain,
          .cpu = record.cpu,
          .stack = stack,
          .weight = record.weight,
          .role = role_of(record.role),
          .holds_lock = (record.flags & RTEV_STACK_HOLDS_LOCK) != 0,
          .zero = {}};
}

/// Where the kernel side does not know the lock: code of OCaml runs with that of its domain only.
bool holds_lock(const Sample& sample, const rtev_stack& record, const StackTable& stacks) {
  return sample.holds_lock || ((record.flags & RTEV_STACK_NO_LAYOUT) != 0 && sample.domain >= 0 &&
                               stacks.frame(stacks.frame_of(sample.stack)).kind == FrameKind::ocaml);
}

constexpr Source samples{0, sample_stream};

LossReason reason_of(rtev_stack_kind kind) {
  switch (kind) {
    case RTEV_STACK_OFF_CPU:
    case RTEV_STACK_WOKEN:
      return LossReason::sleep_samples;
    case RTEV_STACK_ALLOCATION:
      return LossReason::allocation_samples;
    default:
      return LossReason::samples;
  }
}

}  // namespace

StackStager::StackStager(const Context& context, KernelSymbols kernel_symbols)
    : context_(context),
      code_(
          context.readers, context.builders, [this](ProcessIndex process) { on_known(process); }, context.clock),
      namer_(context.registry.stacks(), std::move(kernel_symbols)) {}

void StackStager::add_process(std::int32_t pid) {
  const TracedProcess* const process = context_.processes.find(pid);
  if (process == nullptr || !process->index || !process->program.binary) return;
  const auto added =
      context_.source.add_target(pid, stack_target_of(*process->program.binary, bias_of(process->program)));
  if (sampled_.insert(*process->index).second) {
    if (!added) ++unsampled_;
    if (sampled_.size() == 1) context_.source.set_sampling(true);
    look_interval_ns_ = first_look_ns;
    next_look_ns_ = context_.clock() + first_look_ns;
  }
  // Before the first sample: short programs end before an answer.
  code_.find({.index = *process->index, .pid = pid, .user = process->user});
}

void StackStager::forget(ProcessIndex process) {
  if (sampled_.erase(process) != 0 && sampled_.empty()) context_.source.set_sampling(false);
  // The last stacks may wait for an answer.
  if (!code_.is_awaited(process)) code_.forget(process);
}

void StackStager::on_known(ProcessIndex process) {
  retry(process, code_.final_until_ns(process));
  if (!sampled_.contains(process) && !code_.is_awaited(process)) code_.forget(process);
}

void StackStager::stage(std::uint64_t now_ns) {
  if (next_look_ns_ && *next_look_ns_ <= now_ns) {
    look_interval_ns_ *= 2;
    next_look_ns_ = look_interval_ns_ <= last_look_ns ? std::optional(now_ns + look_interval_ns_) : std::nullopt;
  }
  context_.source.read_stacks(
      [this](const rtev_stack& record, std::span<const std::byte> payload) { take(record, payload); });
  stage_drops(now_ns);
}

void StackStager::take(const rtev_stack& record, std::span<const std::byte> payload) {
  const auto pid = static_cast<std::int32_t>(record.tgid), tid = static_cast<std::int32_t>(record.tid);
  const auto image = context_.processes.current_image(pid);
  // Of a process that is not part of the stream, or of its image before.
  if (!image || record.time_ns < image->began_ns) return;
  const CodeSpaces::Process process{.index = image->index, .pid = pid, .user = image->user};
  switch (record.kind) {
    case RTEV_STACK_ON_CPU: {
      Sample sample = sample_of(record, process.index, stack_of(record, payload, process));
      sample.holds_lock = holds_lock(sample, record, context_.registry.stacks());
      return push(record.time_ns, SampleKind::on_cpu, sample);
    }
    case RTEV_STACK_ALLOCATION:
      return push(record.time_ns, SampleKind::allocation,
                  sample_of(record, process.index, stack_of(record, payload, process)));
    case RTEV_STACK_OFF_CPU:
      if (sleeping_.size() >= max_sleeping) {
        // Most are of threads that are gone.
        sleeping_.clear();
        forgotten_until_ns_ = record.time_ns;
      }
      sleeping_.insert_or_assign(
          tid, Sleeping{.left_ns = record.time_ns,
                        .sample = sample_of(record, process.index, stack_of(record, payload, process))});
      return;
    case RTEV_STACK_WOKEN: {
      const auto slept = sleeping_.find(tid);
      if (slept != sleeping_.end() && slept->second.left_ns == record.left_ns) {
        push(record.time_ns, SampleKind::off_cpu, sample_of(record, process.index, slept->second.sample.stack));
        sleeping_.erase(slept);
      } else if (record.left_ns < forgotten_until_ns_) {
        push_loss(LossReason::sleep_samples, {.words = 1, .from_ns = record.left_ns, .to_ns = record.time_ns});
      }  // else it was dropped, and is counted as such
      return;
    }
    default:
      return;
  }
}

void StackStager::push(std::uint64_t time_ns, SampleKind kind, const Sample& sample) {
  context_.timeline.push(time_ns, samples, EventKind::sample, static_cast<std::uint16_t>(kind), sample);
}

void StackStager::end_sleeps(std::uint64_t now_ns) {
  for (auto& [tid, sleeping] : sleeping_) {
    if (!context_.source.has_slept_since(tid, sleeping.left_ns, now_ns)) continue;
    sleeping.sample.weight = now_ns - sleeping.left_ns;
    push(now_ns, SampleKind::off_cpu, sleeping.sample);
  }
  sleeping_.clear();
}

void StackStager::stage_drops(std::uint64_t now_ns) {
  for (const kernel::StackDrop& drop : context_.source.take_stack_drops(now_ns)) {
    // Fewer of them than there could be: the others stand for more words each.
    if (drop.kind == RTEV_STACK_ALLOCATION && drop.loss == RTEV_STACK_LIMITED) continue;
    push_loss(reason_of(drop.kind), {.words = drop.count, .from_ns = drop.first_ns, .to_ns = drop.last_ns});
  }
}

void StackStager::push_loss(LossReason reason, const Loss& loss) {
  dropped_.at(static_cast<std::size_t>(*lost_samples(reason))) += loss.words;
  context_.timeline.push(loss.from_ns, samples, EventKind::lost, static_cast<std::uint16_t>(reason), loss);
}

StackIndex StackStager::stack_of(const rtev_stack& record, std::span<const std::byte> payload,
                                 const CodeSpaces::Process& process) {
  if (const auto stack = unwind(record, payload, process, Retry::if_missing)) return *stack;
  return wait(record, payload, process);
}

/// Nothing if an answer is awaited that may say more.
std::optional<StackIndex> StackStager::unwind(const rtev_stack& record, std::span<const std::byte> payload,
                                              const CodeSpaces::Process& process, Retry retry) {
  const AddressSpace* const space = code_.find(process);
  if (space == nullptr && retry == Retry::if_missing) return std::nullopt;
  static const AddressSpace nothing;
  const AddressSpace& known = space != nullptr ? *space : nothing;
  kernel::split_stack(record, payload, parts_);
  StackCopy stack{.registers = {}, .copies = parts_.copies};
  std::ranges::copy(record.registers, stack.registers.begin());
  unwinder_.unwind(stack, known, max_frames, unwound_);
  if (unwound_.is_code_missing && retry == Retry::if_missing && code_.ask_again(process)) return std::nullopt;
  return namer_.add(unwound_, known, parts_.kernel_frames);
}

/// The stack is known later, if there is room for it until then.
StackIndex StackStager::wait(const rtev_stack& record, std::span<const std::byte> payload,
                             const CodeSpaces::Process& process) {
  const auto known = waiting_.find(process.index);
  const auto others = waiting_bytes_of_users_.find(process.user);
  const std::size_t of_process = known != waiting_.end() ? known->second.bytes : 0;
  const std::size_t of_user = others != waiting_bytes_of_users_.end() ? others->second : 0;
  const std::size_t bytes = sizeof(Waiting) + payload.size();
  if (of_process + bytes > max_waiting_bytes_of_process || waiting_bytes_ + bytes > max_waiting_bytes ||
      (process.user != 0 && of_user + bytes > max_waiting_bytes_of_user))
    return StackTable::unknown();
  const StackIndex reserved = context_.registry.stacks().reserve();
  if (reserved != StackTable::unknown())
    keep({.reserved = reserved, .record = record, .payload = {payload.begin(), payload.end()}}, process);
  return reserved;
}

void StackStager::keep(Waiting stack, const CodeSpaces::Process& process) {
  const std::size_t bytes = sizeof(Waiting) + stack.payload.size();
  WaitingOfProcess& waiting = waiting_.try_emplace(process.index, WaitingOfProcess{.user = process.user}).first->second;
  waiting.stacks.push_back(std::move(stack));
  waiting.bytes += bytes;
  waiting_bytes_of_users_[waiting.user] += bytes;
  waiting_bytes_ += bytes;
}

/// Of stacks from before `final_until_ns` nothing more can be known. Later ones may be in code that was mapped after
/// the question that is answered now.
void StackStager::retry(ProcessIndex index, std::uint64_t final_until_ns) {
  const auto found = waiting_.find(index);
  if (found == waiting_.end()) return;
  WaitingOfProcess waiting = std::move(found->second);
  waiting_.erase(found);
  waiting_bytes_ -= waiting.bytes;
  const auto of_user = waiting_bytes_of_users_.find(waiting.user);
  of_user->second -= waiting.bytes;
  if (of_user->second == 0) waiting_bytes_of_users_.erase(of_user);
  for (Waiting& one : waiting.stacks) {
    const CodeSpaces::Process process{
        .index = index, .pid = static_cast<std::int32_t>(one.record.tgid), .user = waiting.user};
    const Retry again = one.record.time_ns < final_until_ns ? Retry::never : Retry::if_missing;
    if (const auto stack = unwind(one.record, one.payload, process, again))
      context_.registry.stacks().set_reserved(one.reserved, *stack);
    else
      keep(std::move(one), process);
  }
}

std::optional<std::uint64_t> StackStager::waiting_since() const {
  std::optional<std::uint64_t> since;
  for (const auto& [process, waiting] : waiting_) {
    const std::uint64_t time_ns = waiting.stacks.front().record.time_ns;
    since = std::min(since.value_or(time_ns), time_ns);
  }
  return since;
}

void StackStager::give_up() {
  while (!waiting_.empty()) retry(waiting_.begin()->first, UINT64_MAX);
}

}  // namespace rtev
