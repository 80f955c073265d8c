// SPDX-License-Identifier: MIT
#include "enable/target.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "base/processor.hpp"
#include "base/program_names.hpp"
#include "inspect/process_view.hpp"
#include "inspect/tracking.hpp"

namespace rtev::enable {
namespace {

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

/// No minor heap is larger.
constexpr std::uint64_t max_minor_heap_bytes = std::uint64_t{1} << 40;

constexpr std::uint64_t max_libraries = 65536, dtv_entry_bytes = 2 * word_bytes;

/// The file with the runtime of a process.
struct RuntimeFile {
  RuntimeBinary binary;
  FileIdentity file;
  std::uint64_t bias;
};

Checked<std::optional<RuntimeBinary>> inspect(const UniqueFd& file) {
  if (!file) return refuse(EnableResult::not_ocaml, "its program cannot be read");
  auto binary = inspect_binary(file.get());
  if (!binary) return refuse(EnableResult::not_ocaml, binary.error().message());
  return std::move(*binary);
}

Checked<RuntimeFile> place(RuntimeBinary binary, const UniqueFd& file, std::optional<std::uint64_t> bias) {
  struct stat status{};
  if (!bias || ::fstat(file.get(), &status) != 0)
    return refuse(EnableResult::not_ocaml, "it is not known where its runtime is");
  return RuntimeFile{.binary = std::move(binary), .file = {status.st_dev, status.st_ino}, .bias = *bias};
}

Checked<RuntimeFile> runtime_of(const Procfs& procfs, const ProcessView& view, std::int32_t pid) {
  auto program = inspect(view.image.file);
  if (!program) return std::unexpected(std::move(program.error()));
  const bool is_loader = is_loader_path(view.image.exe);
  if (!*program && !is_loader) return refuse(EnableResult::not_ocaml, "it is no OCaml 5 program");
  if (*program && !(*program)->needs_library)
    return place(std::move(**program), view.image.file, bias_of_program(**program, view.image.start_code));
  using enum ProcessQuery::Runtime;
  const ProcessView mapped = look_at(procfs, {.pid = pid, .runtime = is_loader ? loaded_program : library});
  if (!mapped.runtime) return refuse(EnableResult::not_ocaml, "it maps no OCaml 5 runtime");
  auto found = inspect(mapped.runtime->fd);
  if (!found) return std::unexpected(std::move(found.error()));
  if (!*found || (*found)->needs_library) return refuse(EnableResult::not_ocaml, "it maps no OCaml 5 runtime");
  return place(std::move(**found), mapped.runtime->fd, bias_of_mapping(**found, mapped.runtime->begin));
}

/// False if a symbol is missing.
bool has_symbols(const RuntimeBinary& runtime) {
  const StartSites& sites = runtime.start_sites;
  const bool has_thread_variables = runtime.caml_state_tls != 0 || runtime.domain_self_tls != 0;
  return sites.hook != 0 && sites.default_hook != 0 && sites.start.begin != 0 && sites.enabled_flag != 0 &&
         sites.blocking_hook != 0 && runtime.paused_flag != 0 && has_thread_variables;
}

Checked<DomainLayout> layout_of(const RuntimeBinary& runtime) {
  constexpr const char* start_hint = "start it with OCAML_RUNTIME_EVENTS_START=1";
  const std::string& text = runtime.full_version;
  const auto unknown = [&](std::string why) {
    return refuse(EnableResult::unknown_version, std::move(why), start_hint);
  };
  if (runtime.is_oxcaml || text.contains("+ox"))
    return unknown("OxCaml" + (text.empty() ? "" : " " + text) + ": not supported by enable");
  if (!has_symbols(runtime))
    return refuse(EnableResult::no_symbols, "its program lacks symbols of the runtime",
                  std::string(start_hint) + ", or use a program that is not stripped");
  const std::string& full = text.empty() ? runtime.version : text;
  const auto version = OcamlVersion::parse(runtime.version), said = OcamlVersion::parse(full);
  const RuntimeLayout* const known = version ? find_runtime_layout(*version) : nullptr;
  const auto layout = known != nullptr ? known->domain() : std::nullopt;
  // Neither variants of a release nor other versions that have the same functions.
  if (!layout || !said || said->stage != OcamlVersion::Stage::release || said->series() != known->version)
    return unknown("OCaml " + full + ": not supported by enable");
  const auto& own = runtime.start_sites.layout;
  if (own && *own != *layout) return unknown("its runtime is not laid out like that of OCaml " + full);
  // Bytecode has no symbols for the fields, but its version is in it as text.
  if (!own && text.empty()) return unknown("its runtime does not say which version of OCaml it is");
  return *layout;
}

/// The mappings of a process at these addresses. Others are not kept: a process can have 65,530, with paths of
/// kilobytes.
class Mappings {
 public:
  Mappings(const Procfs& procfs, std::int32_t pid, std::span<const std::uint64_t> addresses) {
    if (addresses.empty()) return;
    const std::uint64_t last = *std::ranges::max_element(addresses);
    procfs.visit_mappings(pid, [&](Mapping mapping) {
      const auto is_in = [&](std::uint64_t address) { return mapping.begin <= address && address < mapping.end; };
      const bool is_beyond = mapping.begin > last;
      if (std::ranges::any_of(addresses, is_in)) mappings_.push_back(std::move(mapping));
      return !is_beyond && mappings_.size() < addresses.size();
    });
  }

  const Mapping* find(std::uint64_t address) const {
    const auto found = std::ranges::find_if(
        mappings_, [&](const Mapping& mapping) { return mapping.begin <= address && address < mapping.end; });
    return found == mappings_.end() ? nullptr : &*found;
  }
  /// A variable: private, and it may be written.
  bool is_variable(std::uint64_t address) const {
    const Mapping* const mapping = find(address);
    return address % word_bytes == 0 && mapping != nullptr && mapping->permissions == "rw-p";
  }
  /// Code at this offset of a file.
  const Mapping* code(std::uint64_t address, std::uint64_t file_offset) const {
    const Mapping* const mapping = find(address);
    const bool is_code = mapping != nullptr && mapping->permissions == "r-xp" && mapping->inode != 0 &&
                         mapping->offset + (address - mapping->begin) == file_offset;
    return is_code ? mapping : nullptr;
  }

 private:
  std::vector<Mapping> mappings_;
};

std::optional<std::uint64_t> start_file_offset(const RuntimeBinary& runtime) {
  const auto found = std::ranges::find(runtime.probes, RTEV_PROBE_C_START, &ProbePoint::function);
  return found == runtime.probes.end() ? std::nullopt : std::optional(found->file_offset);
}

/// Whether everything lies where it must: the function in the code of the runtime's file, the variables in its data.
/// The mapping of the code, without its path.
Checked<Mapping> check_places(const Procfs& procfs, const Target& target) {
  const StartSites& sites = target.runtime.start_sites;
  const std::array addresses{target.start_function(),
                             target.hook(),
                             target.flags().enabled,
                             target.flags().paused,
                             target.place(sites.blocking_hook),
                             target.place(sites.directory),
                             target.spare().begin};
  const Mappings mappings(procfs, target.process.pid(), addresses);
  const auto offset = start_file_offset(target.runtime);
  const Mapping* const code = offset ? mappings.code(target.start_function(), *offset) : nullptr;
  const Mapping* const hook = mappings.find(target.hook());
  const bool same_file = code != nullptr && hook != nullptr && hook->inode == code->inode &&
                         hook->device == code->device && hook->path == code->path;
  const std::uint64_t directory = target.place(sites.directory), spare = target.spare().begin;
  const bool variables =
      mappings.is_variable(target.hook()) && mappings.is_variable(target.flags().enabled) &&
      mappings.is_variable(target.flags().paused) && mappings.is_variable(target.place(sites.blocking_hook)) &&
      (directory == 0 || mappings.is_variable(directory)) && (spare == 0 || mappings.is_variable(spare));
  if (!same_file || !variables)
    return refuse(EnableResult::unexpected_value, "its runtime is not mapped as its file says");
  // Kept for every program that is waited for.
  Mapping found = *code;
  found.path = std::string();
  return found;
}

/// Where the offsets of the runtime's thread-local variables count from; nothing if the thread has none.
std::optional<std::uint64_t> thread_variables(const Target& target, std::uint64_t thread_pointer) {
  if (!target.runtime.shared_library) return thread_pointer;
  const auto module = target.memory().word(target.place(target.runtime.tls_module_word));
  if (!module || *module == 0 || *module > max_libraries) return std::nullopt;
  const auto vector = target.memory().word(thread_pointer + own_processor.dtv_offset);
  const auto block = vector ? target.memory().word(*vector + *module * dtv_entry_bytes) : std::nullopt;
  if (!block || *block == 0 || *block == UINT64_MAX) return std::nullopt;
  return *block - 1;  // see RuntimeBinary::domain_self_tls
}

/// An int at the beginning of a word.
std::uint32_t as_int(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}

/// Whether there is the state of a domain with this number.
bool is_domain_state(const Target& target, std::uint64_t state, std::optional<std::uint32_t> id) {
  if (state == 0 || state % word_bytes != 0) return false;
  bool readable = true;
  const auto field = [&](std::uint32_t index) {
    const auto word = target.memory().word(state + index * word_bytes);
    readable &= word.has_value();
    return word.value_or(0);
  };
  const DomainLayout& layout = target.layout;
  const std::uint64_t limit = field(layout.young_limit), next = field(layout.young_ptr),
                      begin = field(layout.young_start), end = field(layout.young_end);
  const std::uint32_t own_id = as_int(field(layout.id));
  const bool is_heap = begin != 0 && begin <= next && next <= end && end - begin <= max_minor_heap_bytes &&
                       (begin | end) % word_bytes == 0;
  const bool is_limit = limit == UINT64_MAX || (begin <= limit && limit <= end);
  const bool are_flags = as_int(field(layout.action_pending)) <= 1 && field(layout.requested_external_interrupt) <= 1;
  return readable && is_heap && is_limit && are_flags && own_id < RTEV_MAX_DOMAINS && id.value_or(own_id) == own_id;
}

}  // namespace

CodeRange Target::spare() const {
  const auto [begin, end] = runtime.start_sites.spare;
  const std::uint64_t first = (begin + word_bytes - 1) / word_bytes * word_bytes, last = end / word_bytes * word_bytes;
  return first < last ? CodeRange{.begin = place(first), .end = place(last)} : CodeRange{};
}

bool Target::is_initialised() const {
  // Set after runtime_events_path, in all versions. An int, which need not be aligned to a word.
  const std::uint64_t ring_words = place(runtime.start_sites.ring_words);
  const auto word = memory().word(ring_words & ~std::uint64_t{7});
  return ring_words == 0 || (word && as_int(*word >> (ring_words % 8 * 8)) != 0);
}

Checked<EventsState> Target::events_state() const {
  const auto enabled = memory().word(flags().enabled), paused = memory().word(flags().paused);
  if (!enabled || !paused) return ended();
  if (*enabled > 1 || *paused > 1)
    return refuse(EnableResult::unexpected_value, "its flag of events is neither on nor off");
  if (*enabled == 0) return EventsState::off;
  return *paused == 0 ? EventsState::active : EventsState::paused;
}

Checked<void> Target::check_unchanged(const Procfs& procfs) const {
  if (auto same = process.check_unchanged(); !same) return same;
  const auto now = check_places(procfs, *this);
  if (!now) return std::unexpected(now.error());
  if (now->begin != code.begin || now->inode != code.inode || now->device != code.device)
    return refuse(EnableResult::unexpected_value, "its runtime is mapped from another file by now");
  // While the process lives its pid is not another's: the mappings were its own.
  return process.check_unchanged();
}

bool Target::is_copy(const Target& child) const {
  return child.file == file && child.bias == bias && child.process.program() == process.program() &&
         child.process.credentials() == process.credentials();
}

Checked<Target> find_target(const Procfs& procfs, HeldProcess process) {
  const std::int32_t pid = process.pid();
  const ProcessView view = look_at(procfs, {.pid = pid, .image = true});
  if (!view.stat || view.stat->ending || view.stat->start_ticks != process.start_ticks()) return ended();
  auto runtime = runtime_of(procfs, view, pid);
  if (!runtime) return std::unexpected(std::move(runtime.error()));
  if (const auto& may_write = process.may_write(); !may_write) return std::unexpected(may_write.error());
  auto layout = layout_of(runtime->binary);
  if (!layout) return std::unexpected(std::move(layout.error()));
  Target target{.process = std::move(process),
                .comm = view.image.comm,
                .file = runtime->file,
                .runtime = std::move(runtime->binary),
                .bias = runtime->bias,
                .layout = *layout};
  auto code = check_places(procfs, target);
  // Of a program that ends, or becomes another one, all that was looked at may be missing. What was looked at is of
  // the program that is held only if that still runs.
  if (auto same = target.process.check_unchanged(); !same) return std::unexpected(std::move(same.error()));
  if (!code) return std::unexpected(std::move(code.error()));
  target.code = std::move(*code);
  return target;
}

Checked<ReplacedHook> plan_hook(const Target& target) {
  const StartSites& sites = target.runtime.start_sites;
  const std::uint64_t witness = target.place(sites.blocking_hook);
  const auto present = target.memory().word(target.hook()), witness_before = target.memory().word(witness);
  if (!present || !witness_before) return ended();
  const std::uint64_t thread_hook = target.place(sites.thread_hook);
  if (*present == target.start_function())
    return std::unexpected(Refused{.result = EnableResult::unexpected_value,
                                   .why = "its interrupt hook is replaced already",
                                   .hint = "another run may switch it on just now: try again",
                                   .is_passing = true});
  if (*present != target.place(sites.default_hook) && (thread_hook == 0 || *present != thread_hook))
    return refuse(EnableResult::unexpected_value,
                  "its interrupt hook is neither that of the runtime nor of its threads",
                  "start it with OCAML_RUNTIME_EVENTS_START=1, or trace it with --ringless");
  return ReplacedHook{.address = target.hook(),
                      .original = *present,
                      .replacement = target.start_function(),
                      .thread_hook = thread_hook,
                      .witness = witness,
                      .witness_before = *witness_before};
}

std::optional<ReplacedHook> own_hook(const Target& target, const ClaimedHook& claim) {
  const ReplacedHook& hook = claim.hook;
  const StartSites& sites = target.runtime.start_sites;
  const std::uint64_t default_hook = target.place(sites.default_hook), thread_hook = target.place(sites.thread_hook);
  const std::uint64_t request_offset = target.layout.requested_external_interrupt * word_bytes;
  const bool is_its_hook = hook.address == target.hook() && hook.replacement == target.start_function() &&
                           (hook.original == default_hook || (thread_hook != 0 && hook.original == thread_hook));
  const bool are_its_variables = hook.thread_hook == thread_hook && hook.witness == target.place(sites.blocking_hook);
  const bool is_own = is_its_hook && are_its_variables &&
                      (hook.request == 0 || is_domain_state(target, hook.request - request_offset, std::nullopt));
  return is_own ? std::optional(hook) : std::nullopt;
}

std::optional<std::uint64_t> domain_state_of(const Target& target, std::uint64_t thread_pointer) {
  const auto variables = thread_variables(target, thread_pointer);
  if (!variables) return std::nullopt;
  const auto variable = [&](std::int64_t offset) -> std::uint64_t {
    if (offset == 0) return 0;
    return target.memory().word(*variables + static_cast<std::uint64_t>(offset)).value_or(0);
  };
  const std::uint64_t domain = variable(target.runtime.domain_self_tls);
  std::optional<std::uint32_t> id;
  if (domain != 0) {
    const auto number = target.memory().word(domain);
    if (!number) return std::nullopt;
    id = as_int(*number);
  }
  // While the thread is in a system call it does not hold its domain: its own state is in the domain's record.
  std::uint64_t state = variable(target.runtime.caml_state_tls);
  if (state == 0 && domain != 0)
    state = target.memory().word(domain + target.runtime.stack_sites.layout.domain_state * word_bytes).value_or(0);
  return is_domain_state(target, state, id) ? std::optional(state) : std::nullopt;
}

}  // namespace rtev::enable
