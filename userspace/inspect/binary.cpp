// SPDX-License-Identifier: MIT
#include "inspect/binary.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/processor.hpp"
#include "base/program_names.hpp"
#include "inspect/elf_file.hpp"

namespace rtev {
namespace {

struct WantedSymbol {
  std::string_view name;
  std::uint8_t type;  ///< STT_FUNC, STT_TLS, STT_OBJECT, or STT_NOTYPE for a constant of assembly code
};

// What of OCaml's runtime is looked for by name, in order.
constexpr std::array wanted_symbols = std::to_array<WantedSymbol>({
    {"backup_thread_func", STT_FUNC},
    {"caml_alloc_local", STT_FUNC},
    {"caml_alloc_small_dispatch", STT_FUNC},
    {"caml_domain_count", STT_FUNC},
    {"caml_domain_external_interrupt_hook", STT_OBJECT},
    {"caml_domain_external_interrupt_hook_default", STT_FUNC},
    {"caml_domain_terminate", STT_FUNC},
    {"caml_enter_blocking_section_hook", STT_OBJECT},
    {"caml_ev_begin", STT_FUNC},
    {"caml_ev_counter", STT_FUNC},
    {"caml_ev_end", STT_FUNC},
    {"caml_ev_lifecycle", STT_FUNC},
    {"caml_ml_runtime_events_path", STT_FUNC},
    {"caml_ml_runtime_events_pause", STT_FUNC},
    {"caml_ml_runtime_events_resume", STT_FUNC},
    {"caml_ml_runtime_events_start", STT_FUNC},
    {"caml_raise_exception", STT_FUNC},
    {"caml_raise_exn", STT_FUNC},
    {"caml_refresh_locals", STT_FUNC},
    {"caml_runtime_events_destroy", STT_FUNC},
    {"caml_runtime_events_init", STT_FUNC},
    {"caml_runtime_events_pause", STT_FUNC},
    {"caml_runtime_events_post_fork", STT_FUNC},
    {"caml_runtime_events_resume", STT_FUNC},
    {"caml_runtime_events_start", STT_FUNC},
    {"caml_runtime_events_user_register", STT_FUNC},
    {"caml_state", STT_TLS},
    {"caml_system__code_begin", STT_NOTYPE},
    {"caml_system__code_end", STT_NOTYPE},
    {"caml_thread_interrupt_hook", STT_FUNC},
    {"caml_thread_tick", STT_FUNC},
    {"domain_field_caml_action_pending", STT_NOTYPE},
    {"domain_field_caml_c_stack", STT_NOTYPE},
    {"domain_field_caml_current_stack", STT_NOTYPE},
    {"domain_field_caml_id", STT_NOTYPE},
    {"domain_field_caml_local_roots", STT_NOTYPE},
    {"domain_field_caml_requested_external_interrupt", STT_NOTYPE},
    {"domain_field_caml_young_end", STT_NOTYPE},
    {"domain_field_caml_young_limit", STT_NOTYPE},
    {"domain_field_caml_young_ptr", STT_NOTYPE},
    {"domain_field_caml_young_start", STT_NOTYPE},
    {"domain_field_caml_young_trigger", STT_NOTYPE},
    {"domain_self", STT_TLS},
    {"ring_size_words", STT_OBJECT},
    {"runtime_events_enabled", STT_OBJECT},
    {"runtime_events_path", STT_OBJECT},
    {"runtime_events_paused", STT_OBJECT},
    {"stw_create_runtime_events", STT_FUNC},
    {"stw_teardown_runtime_events", STT_FUNC},
});
static_assert(std::ranges::is_sorted(wanted_symbols, {}, &WantedSymbol::name));

constexpr std::size_t index_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(wanted_symbols, name, &WantedSymbol::name) -
                                  wanted_symbols.begin());
}
static_assert(std::ranges::all_of(runtime_layouts, [](const RuntimeLayout& layout) {
  return index_of(layout.function) != wanted_symbols.size();
}));

/// The name of a wanted symbol; another one does not compile.
struct Name {
  consteval Name(const char* name) : index(index_of(name)) {  // NOLINT(google-explicit-constructor)
    if (index == wanted_symbols.size()) throw "not a wanted symbol";
  }
  std::size_t index;
};

/// How the file names of shared runtimes begin.
constexpr std::array<std::string_view, 2> runtime_library_names{"libasmrun", "libcamlrun"};

/// How well a symbol stands for the function it is named after; the best one is kept.
enum class Fit : std::uint8_t {
  none,
  part,   ///< some of its code, which the compiler split off: entered in most cases, not in all
  clone,  ///< a specialised copy that took its place
  exact,
};

/// What compilers append to the name of a local function. Code split off as unlikely (".cold") is never its entry.
Fit fit_of_suffix(std::string_view suffix) {
  if (suffix.empty()) return Fit::exact;
  if (suffix.contains(".cold")) return Fit::none;
  if (suffix.contains(".part.")) return Fit::part;
  constexpr std::array<std::string_view, 4> clones{".constprop.", ".isra.", ".lto_priv.", ".llvm."};
  const bool known = std::ranges::any_of(clones, [&](auto clone) { return suffix.starts_with(clone); });
  return known ? Fit::clone : Fit::none;
}

/// The symbols of a runtime.
class Symbols {
 public:
  explicit Symbols(ElfFile& file) {
    for (const std::uint32_t type : {SHT_DYNSYM, SHT_SYMTAB}) add_table(file, type);
  }

  const Elf64_Sym* find(Name name) const {
    const Found& found = found_[name.index];
    return found.fit == Fit::none ? nullptr : &found.symbol;
  }
  bool has(Name name) const { return find(name) != nullptr; }
  bool has_function_of(const RuntimeLayout& version) const {
    return found_[index_of(version.function)].fit != Fit::none;
  }

 private:
  struct Found {
    Elf64_Sym symbol{};
    Fit fit = Fit::none;
  };

  void add_table(ElfFile& file, std::uint32_t type) {
    const Elf64_Shdr* const table = file.section(type);
    const Elf64_Shdr* const names = table ? file.names_of(*table) : nullptr;
    // Almost every program of a host is turned away by this search, which is much cheaper than a walk over its symbols.
    if (!names || !file.contains({names->sh_offset, names->sh_size}, "caml_runtime_events_init")) return;
    const StringTable strings = file.strings(*names);
    file.for_each_symbol(*table, [&](const Elf64_Sym& symbol) { add(symbol, strings.at(symbol.st_name)); });
  }

  void add(const Elf64_Sym& symbol, std::string_view text) {
    const std::uint8_t type = ELF64_ST_TYPE(symbol.st_info);
    if (type > STT_FUNC && type != STT_TLS) return;
    const std::string_view base = text.substr(0, text.find('.'));
    const auto wanted = std::ranges::lower_bound(wanted_symbols, base, {}, &WantedSymbol::name);
    if (wanted == wanted_symbols.end() || wanted->name != base || wanted->type != type) return;
    const Fit fit = fit_of_suffix(text.substr(base.size()));
    Found& found = found_[static_cast<std::size_t>(wanted - wanted_symbols.begin())];
    if (fit > found.fit) found = {symbol, fit};
  }

  std::array<Found, wanted_symbols.size()> found_{};
};

/// The last version whose function is there, and those of all versions before it.
const RuntimeLayout& layout_of(const Symbols& symbols) {
  const auto later = std::ranges::find_if_not(
      runtime_layouts, [&](const RuntimeLayout& version) { return symbols.has_function_of(version); });
  return later == runtime_layouts.begin() ? *later : *std::prev(later);
}

std::vector<ProbePoint> probe_points(const ElfFile& file, const Symbols& symbols) {
  struct Wanted {
    rtev_probe function;
    Name name;
    Name otherwise = name;
  };
  // The C functions for pause and resume are inlined into OCaml's primitives, where those exist apart from them.
  static constexpr std::array wanted = std::to_array<Wanted>({
      {RTEV_PROBE_INIT, "caml_runtime_events_init"},
      {RTEV_PROBE_START, "caml_ml_runtime_events_start"},
      {RTEV_PROBE_C_START, "caml_runtime_events_start"},
      {RTEV_PROBE_PAUSE, "caml_ml_runtime_events_pause", "caml_runtime_events_pause"},
      {RTEV_PROBE_RESUME, "caml_ml_runtime_events_resume", "caml_runtime_events_resume"},
      {RTEV_PROBE_STW_CREATE, "stw_create_runtime_events"},
      {RTEV_PROBE_STW_TEARDOWN, "stw_teardown_runtime_events"},
      {RTEV_PROBE_DESTROY, "caml_runtime_events_destroy"},
      {RTEV_PROBE_POST_FORK, "caml_runtime_events_post_fork"},
  });
  std::vector<ProbePoint> points;
  for (const auto& [function, name, otherwise] : wanted) {
    const Elf64_Sym* symbol = symbols.find(name);
    if (!symbol) symbol = symbols.find(otherwise);
    const auto offset = symbol ? file.code_offset(symbol->st_value) : std::nullopt;
    if (offset) points.push_back({function, *offset});
  }
  return points;
}

/// The functions that write events, as they can be probed: all or none, since half of the events would mislead.
std::vector<EmitterPoint> emitter_points(ElfFile& file, const Symbols& symbols) {
  struct Wanted {
    rtev_emitter emitter;
    Name name;
  };
  static constexpr std::array wanted = std::to_array<Wanted>({
      {RTEV_EMIT_BEGIN, "caml_ev_begin"},
      {RTEV_EMIT_END, "caml_ev_end"},
      {RTEV_EMIT_COUNTER, "caml_ev_counter"},
      {RTEV_EMIT_LIFECYCLE, "caml_ev_lifecycle"},
  });
  const Elf64_Sym* const enabled = symbols.find("runtime_events_enabled");
  // Without its symbol the flag is what all of them test.
  std::uint64_t flag = enabled ? enabled->st_value : 0;
  std::vector<EmitterPoint> points;
  for (const auto& [emitter, name] : wanted) {
    const Elf64_Sym* const symbol = symbols.find(name);
    const auto offset = symbol ? file.code_offset(symbol->st_value) : std::nullopt;
    if (!offset) return {};
    std::optional<EnabledBranch> branch;
    if (file.machine() == x86_64.elf)
      branch = find_enabled_branch(file.code(*offset, std::min<std::uint64_t>(symbol->st_size, emitter_code_bytes)),
                                   symbol->st_value);
    if (branch && (flag == 0 || flag == branch->flag)) {
      flag = branch->flag;
      points.push_back({.emitter = emitter,
                        .file_offset = *offset + branch->offset,
                        .address = symbol->st_value + branch->offset,
                        .enabled = 0});
    } else if (enabled && enabled->st_value != symbol->st_value) {
      points.push_back({.emitter = emitter,
                        .file_offset = *offset,
                        .address = symbol->st_value,
                        .enabled = static_cast<std::int64_t>(enabled->st_value - symbol->st_value)});
    } else {
      return {};
    }
  }
  return points;
}

CodeRange code_range(const ElfFile& file, const Elf64_Sym* symbol) {
  if (!symbol || symbol->st_size == 0) return {};
  std::uint64_t last = 0;
  if (__builtin_add_overflow(symbol->st_value, symbol->st_size - 1, &last)) return {};
  if (!file.code_offset(symbol->st_value) || !file.code_offset(last)) return {};
  return {symbol->st_value, last + 1};
}

/// Where a thread-local variable is, as RuntimeBinary has it; 0 if it is unknown. The static linker computes the
/// same for a program, whose own block lies at a fixed place.
std::int64_t tls_offset(const ElfFile& file, const Elf64_Sym* symbol) {
  const Elf64_Phdr* const block = file.segment(PT_TLS);
  if (!symbol || !block) return 0;
  constexpr std::uint64_t limit = 1u << 30;
  const std::uint64_t align = std::max<std::uint64_t>(block->p_align, 1);
  if (!std::has_single_bit(align) || align > limit || block->p_memsz > limit || symbol->st_value >= block->p_memsz)
    return 0;
  const auto round_up = [&](std::uint64_t size) {
    return static_cast<std::int64_t>((size + align - 1) & ~(align - 1));
  };
  const auto value = static_cast<std::int64_t>(symbol->st_value);
  if (!file.is_program()) return value + 1;
  const Processor* const processor = find_processor(file.machine());
  if (processor == nullptr) return 0;
  return processor->tls_header_bytes == 0 ? value - round_up(block->p_memsz)
                                          : value + round_up(processor->tls_header_bytes);
}

std::uint64_t link_base(const ElfFile& file) {
  for (const Elf64_Phdr& segment : file.segments())
    if (segment.p_type == PT_LOAD && segment.p_offset == 0) return segment.p_vaddr & ~std::uint64_t{4095};
  return 0;
}

/// What the kernel calls the beginning of a program's code.
std::uint64_t code_begin(const ElfFile& file) {
  std::uint64_t begin = UINT64_MAX;
  for (const Elf64_Phdr& segment : file.segments())
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) begin = std::min(begin, segment.p_vaddr);
  return begin == UINT64_MAX ? 0 : begin;
}

std::optional<DomainLayout> domain_layout(const Symbols& symbols) {
  bool is_whole = true;
  const auto field = [&](Name name) {
    const Elf64_Sym* const symbol = symbols.find(name);
    is_whole = is_whole && symbol != nullptr && symbol->st_shndx == SHN_ABS;
    return is_whole ? static_cast<std::uint32_t>(symbol->st_value) : 0;
  };
  const DomainLayout layout{.young_limit = field("domain_field_caml_young_limit"),
                            .young_ptr = field("domain_field_caml_young_ptr"),
                            .young_start = field("domain_field_caml_young_start"),
                            .young_end = field("domain_field_caml_young_end"),
                            .action_pending = field("domain_field_caml_action_pending"),
                            .requested_external_interrupt = field("domain_field_caml_requested_external_interrupt"),
                            .id = field("domain_field_caml_id")};
  return is_whole ? std::optional(layout) : std::nullopt;
}

/// From one symbol up to another, or to its end.
CodeRange code_between(const ElfFile& file, const Elf64_Sym* first, const Elf64_Sym* last) {
  if (!first || !last) return {};
  std::uint64_t end = 0;
  if (__builtin_add_overflow(last->st_value, last->st_size, &end) || end <= first->st_value) return {};
  if (!file.code_offset(first->st_value) || !file.code_offset(end - 1)) return {};
  return {first->st_value, end};
}

/// Of a version, unless the runtime's own symbols say where the fields are.
StackLayout stack_layout(const Symbols& symbols, const RuntimeLayout& version) {
  StackLayout layout = version.stacks();
  const auto read = [&](Name name, std::uint8_t StackLayout::* field, std::uint64_t max) {
    const Elf64_Sym* const symbol = symbols.find(name);
    if (symbol && symbol->st_shndx == SHN_ABS && symbol->st_value > 0 && symbol->st_value <= max)
      layout.*field = static_cast<std::uint8_t>(symbol->st_value);
  };
  constexpr std::uint64_t max_minor_heap_word = 7, max_word = 31;  // of those that BPF reads
  read("domain_field_caml_young_ptr", &StackLayout::young_ptr, max_minor_heap_word);
  read("domain_field_caml_young_start", &StackLayout::young_start, max_minor_heap_word);
  read("domain_field_caml_young_end", &StackLayout::young_end, max_minor_heap_word);
  read("domain_field_caml_young_trigger", &StackLayout::young_trigger, max_minor_heap_word);
  read("domain_field_caml_current_stack", &StackLayout::current_stack, max_word);
  read("domain_field_caml_c_stack", &StackLayout::c_stack, max_word);
  read("domain_field_caml_local_roots", &StackLayout::local_roots, max_word);
  return layout;
}

/// What it takes to copy stacks.
StackSites stack_sites(const ElfFile& file, const Symbols& symbols, const RuntimeLayout& version) {
  StackSites sites;
  if (const Elf64_Sym* const dispatch = symbols.find("caml_alloc_small_dispatch"))
    sites.allocation_offset = file.code_offset(dispatch->st_value);
  sites.system = code_between(file, symbols.find("caml_system__code_begin"), symbols.find("caml_system__code_end"));
  sites.raise = code_between(file, symbols.find("caml_raise_exn"), symbols.find("caml_raise_exception"));
  sites.layout = stack_layout(symbols, version);
  // Bytecode has its own stack in the place of OCaml's.
  if (sites.system.end == 0) sites.layout.current_stack = sites.layout.c_stack = sites.layout.local_roots = 0;
  return sites;
}

/// Whether the dynamic linker leaves alone what a program does not use of its pages: that of musl gives it to malloc().
bool keeps_spare_memory(ElfFile& file) {
  const bool is_static = file.is_program() && file.segment(PT_INTERP) == nullptr;
  return is_static || !file.needed_libraries("libc.so.6").empty();
}

CodeRange spare_memory(ElfFile& file) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::uint64_t begin = 0, end = 0;
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_LOAD || segment.p_memsz > UINT64_MAX - page - segment.p_vaddr) continue;
    if (segment.p_vaddr + segment.p_memsz <= begin) continue;
    begin = segment.p_vaddr + segment.p_memsz;
    end = (segment.p_flags & PF_W) != 0 ? (begin + page - 1) / page * page : begin;
  }
  return keeps_spare_memory(file) ? CodeRange{.begin = begin, .end = end} : CodeRange{};
}

StartSites start_sites(ElfFile& file, const Symbols& symbols) {
  const auto address = [&](Name name) {
    const Elf64_Sym* const symbol = symbols.find(name);
    return symbol != nullptr ? symbol->st_value : 0;
  };
  return {.hook = address("caml_domain_external_interrupt_hook"),
          .default_hook = address("caml_domain_external_interrupt_hook_default"),
          .thread_hook = address("caml_thread_interrupt_hook"),
          .blocking_hook = address("caml_enter_blocking_section_hook"),
          .start = code_range(file, symbols.find("caml_runtime_events_start")),
          .enabled_flag = address("runtime_events_enabled"),
          .directory = address("runtime_events_path"),
          .spare = spare_memory(file),
          .ring_words = address("ring_size_words"),
          .layout = domain_layout(symbols)};
}

/// Where constants may lie: read-only data, or all that is read-only where the file has no sections.
std::vector<Extent> constants_of(const ElfFile& file) {
  std::vector<Extent> extents;
  for (const Elf64_Shdr& section : file.sections())
    if (section.sh_type == SHT_PROGBITS && (section.sh_flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR)) == SHF_ALLOC)
      extents.push_back({section.sh_offset, section.sh_size});
  if (!file.sections().empty()) return extents;
  for (const Elf64_Phdr& segment : file.segments())
    if (segment.p_type == PT_LOAD && !(segment.p_flags & PF_W)) extents.push_back({segment.p_offset, segment.p_filesz});
  return extents;
}

/// The version that a bytecode runtime says it is ("5.3.0", "5.2.0+ox"); empty if it does not.
std::string version_text(ElfFile& file) {
  constexpr std::string_view begin = "The OCaml runtime, version ";
  constexpr std::size_t max_version_bytes = 32;
  for (const Extent& extent : constants_of(file)) {
    const auto found = file.find(extent, begin);
    if (!found) continue;
    std::array<std::byte, max_version_bytes> bytes{};
    const std::size_t got = file.read(*found + begin.size(), bytes);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), got);
    constexpr std::string_view allowed = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+~-_";
    return std::string(text.substr(0, std::min(text.find_first_not_of(allowed), text.size())));
  }
  return {};
}

/// Recognises a runtime without symbols by the texts in it. This program speaks of the same environment variables, so
/// the last text is one that only a runtime has; it is composed here so that this program does not contain it.
bool has_runtime_texts(ElfFile& file) {
  const std::array<std::string, 3> texts{"OCAML_RUNTIME_EVENTS_START", "OCAML_RUNTIME_EVENTS_DIR",
                                         std::string{"%s/%ld"} + ".events"};
  const auto extents = constants_of(file);
  return std::ranges::all_of(texts, [&](const std::string& text) {
    return std::ranges::any_of(extents, [&](Extent extent) { return file.contains(extent, text); });
  });
}

bool needs_runtime_library(ElfFile& file) {
  if (!file.is_program()) return false;
  return std::ranges::any_of(runtime_library_names, [&](std::string_view name) {
    return std::ranges::any_of(file.needed_libraries(name), is_runtime_library_path);
  });
}

}  // namespace

bool is_runtime_library_path(std::string_view path) {
  const std::string_view name = file_name_of(path);
  const bool begins_so =
      std::ranges::any_of(runtime_library_names, [&](std::string_view begin) { return name.starts_with(begin); });
  return begins_so && name.ends_with(".so");
}

Result<std::optional<RuntimeBinary>> inspect_binary(int fd, const ChangeCheck& check) {
  auto opened = ElfFile::open(fd, check);
  if (!opened) return std::unexpected(std::move(opened.error()));
  if (!*opened) return std::nullopt;
  ElfFile& file = **opened;

  const Symbols symbols{file};
  const bool named = symbols.has("caml_runtime_events_init");
  // A full symbol table without the runtime's functions leaves no doubt.
  const bool anonymous = !named && !file.section(SHT_SYMTAB) && has_runtime_texts(file);
  if (file.read_error()) return errno_error(file.read_error(), "cannot read program");
  RuntimeBinary runtime;
  if (!named && !anonymous) {
    runtime.needs_library = needs_runtime_library(file);
    if (file.read_error()) return errno_error(file.read_error(), "cannot read program");
    return runtime.needs_library ? std::optional(runtime) : std::nullopt;
  }
  runtime.shared_library = !file.is_program();
  runtime.code_begin = code_begin(file);
  runtime.link_base = link_base(file);
  if (anonymous) {
    // The version is not known. 5.1 to 5.4 have the same places, and BPF checks what it finds there.
    constexpr StackLayout usual = find_runtime_layout({.major = 5, .minor = 2})->stacks();
    runtime.stack_sites.layout = usual;
    return runtime;
  }

  const RuntimeLayout& version = layout_of(symbols);
  runtime.version = fmt::format("{}.{}", version.version.major, version.version.minor);
  runtime.family = family_of_version(runtime.version);
  runtime.id_offset = version.id * sizeof(std::uint64_t);
  runtime.probes = probe_points(file, symbols);
  if (runtime.shared_library) runtime.tls_module_word = file.tls_module_word().value_or(0);
  if (!runtime.shared_library || runtime.tls_module_word != 0) {
    runtime.domain_self_tls = tls_offset(file, symbols.find("domain_self"));
    runtime.caml_state_tls = tls_offset(file, symbols.find("caml_state"));
  }
  runtime.emitters = emitter_points(file, symbols);
  runtime.backup_thread = code_range(file, symbols.find("backup_thread_func"));
  if (const Elf64_Sym* paused = symbols.find("runtime_events_paused")) runtime.paused_flag = paused->st_value;
  runtime.tick_thread = code_range(file, symbols.find("caml_thread_tick"));
  runtime.start_sites = start_sites(file, symbols);
  runtime.is_oxcaml = symbols.has("caml_alloc_local") || symbols.has("caml_refresh_locals");
  if (!runtime.start_sites.layout) runtime.full_version = version_text(file);
  runtime.stack_sites = stack_sites(file, symbols, version);
  return runtime;
}

}  // namespace rtev
