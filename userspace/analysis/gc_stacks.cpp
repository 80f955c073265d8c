// SPDX-License-Identifier: MIT
#include "analysis/gc_stacks.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace rtev {
namespace {

/// Of OCaml 5.0 to 5.5.
/// Marking is work of the GC also where caml_modify begins it, whose write barrier marks what a field had before.
constexpr std::array<std::string_view, 27> entries{
    "caml_alloc_small_dispatch",
    "caml_check_urgent_gc",
    "caml_darken",
    "caml_darken_cont",
    "caml_empty_minor_heaps_once",
    "caml_finish_major_cycle",
    "caml_garbage_collection",
    "caml_gc_compaction",
    "caml_gc_full_major",
    "caml_gc_major",
    "caml_gc_major_slice",
    "caml_gc_minor",
    "caml_gc_stat",
    "caml_handle_gc_interrupt",
    "caml_handle_incoming_interrupts",
    "caml_major_collection_slice",
    "caml_minor_collection",
    "caml_opportunistic_major_collection_slice",
    "caml_poll_gc_work",
    "caml_try_empty_minor_heap_on_all_domains",
    "caml_try_run_on_all_domains",
    "caml_try_run_on_all_domains_async",
    "caml_try_run_on_all_domains_with_spin_work",
    "caml_try_stw_empty_minor_heap_on_all_domains",
    "mark_stack_push_block",
    "mark_stack_push_range",
    "realloc_mark_stack",
};
/// By which another thread of the domain takes its turn, at the same places.
constexpr std::array<std::string_view, 3> exits{
    "caml_process_external_interrupt",
    "caml_thread_interrupt_hook",
    "caml_thread_yield",
};

}  // namespace

bool is_below_gc_entry(StackIndex stack, const StackTable& stacks) {
  // In damaged recordings callers may go round in a circle.
  for (std::size_t depth = 0; stack != 0 && depth < StackTable::max_depth; ++depth, stack = stacks.caller_of(stack)) {
    const StackFrame& frame = stacks.frame(stacks.frame_of(stack));
    if (frame.kind == FrameKind::ocaml || frame.kind == FrameKind::bytecode) return false;
    if (frame.kind != FrameKind::c) continue;
    if (std::ranges::binary_search(entries, frame.function)) return true;
    if (std::ranges::binary_search(exits, frame.function)) return false;
  }
  return false;
}

bool acts_for_domain(const Sample& sample, SampleKind kind) {
  if (sample.domain < 0) return false;
  if (sample.holds_lock || sample.role == ThreadRole::backup) return true;
  // A thread gives the lock up before it sleeps. Which thread of the domain had it last is not known.
  return kind == SampleKind::off_cpu && sample.role == ThreadRole::mutator;
}

}  // namespace rtev
