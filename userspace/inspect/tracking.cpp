// SPDX-License-Identifier: MIT
#include "inspect/tracking.hpp"

namespace rtev {

std::optional<std::uint64_t> bias_of_program(const RuntimeBinary& program, std::uint64_t start_code) {
  if (start_code == 0 || program.shared_library) return std::nullopt;
  return start_code - program.code_begin;
}

std::optional<std::uint64_t> bias_of_mapping(const RuntimeBinary& file, std::uint64_t begin) {
  if (begin == 0) return std::nullopt;
  return begin - file.link_base;
}

rtev_tracked tracking_of(const Binary& binary, std::optional<std::uint64_t> bias) {
  const RuntimeBinary& runtime = binary.runtime;
  rtev_tracked tracked{};
  tracked.binary = binary.id;
  tracked.id_offset = runtime.id_offset;
  // Of a library BPF has to find out first which number it has in the process.
  if (!runtime.shared_library || bias) {
    tracked.domain_self_tls = runtime.domain_self_tls;
    tracked.caml_state_tls = runtime.caml_state_tls;
  }
  if (!bias) return tracked;
  const auto place = [&](std::uint64_t address) { return address == 0 ? 0 : address + *bias; };
  if (runtime.shared_library) tracked.tls_module_word = place(runtime.tls_module_word);
  tracked.paused_flag = place(runtime.paused_flag);
  tracked.backup_begin = place(runtime.backup_thread.begin);
  tracked.backup_end = place(runtime.backup_thread.end);
  tracked.tick_begin = place(runtime.tick_thread.begin);
  tracked.tick_end = place(runtime.tick_thread.end);
  return tracked;
}

rtev_stack_target stack_target_of(const Binary& binary, std::optional<std::uint64_t> bias) {
  const StackSites& sites = binary.runtime.stack_sites;
  rtev_stack_target target{};
  target.process = tracking_of(binary, bias);
  target.young_ptr = sites.layout.young_ptr;
  target.young_start = sites.layout.young_start;
  target.young_end = sites.layout.young_end;
  target.young_trigger = sites.layout.young_trigger;
  target.current_stack = sites.layout.current_stack;
  target.c_stack = sites.layout.c_stack;
  target.local_roots = sites.layout.local_roots;
  target.domain_state = sites.layout.domain_state;
  if (!bias) return target;
  const auto place = [&](std::uint64_t address) { return address == 0 ? 0 : address + *bias; };
  target.system_begin = place(sites.system.begin);
  target.system_end = place(sites.system.end);
  target.raise_begin = place(sites.raise.begin);
  target.raise_end = place(sites.raise.end);
  return target;
}

}  // namespace rtev
