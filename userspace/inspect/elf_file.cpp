// SPDX-License-Identifier: MIT
#include "inspect/elf_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/processor.hpp"

namespace rtev {
namespace {

// What the kernel accepts of a program: segment headers of up to 64 KiB.
constexpr std::size_t max_segments = 65536 / sizeof(Elf64_Phdr);
constexpr std::size_t max_dynamic_entries = 4096;
// What a read takes of the budget, also if it returns nothing: thousands of empty tables are work, too.
constexpr std::size_t min_cost = 4096;
constexpr std::size_t max_string_bytes = 64u << 20;
// Fits the second-level cache; a larger one is no faster. A multiple of the size of a symbol and of a relocation.
constexpr std::uint64_t window_bytes = 48u << 10;
constexpr std::uint64_t max_relocation_bytes = 16u << 20;
static_assert(window_bytes % sizeof(Elf64_Sym) == 0 && window_bytes % sizeof(Elf64_Rela) == 0);

bool is_elf(const Elf64_Ehdr& header) {
  constexpr auto order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == order && (header.e_type == ET_EXEC || header.e_type == ET_DYN);
}

}  // namespace

std::string_view StringTable::at(std::uint32_t offset) const {
  if (offset >= bytes_.size()) return {};
  const char* const name = &bytes_[offset];
  const std::size_t room = bytes_.size() - offset;
  const std::size_t length = ::strnlen(name, std::min(room, max_name));
  return length == room ? std::string_view{} : std::string_view{name, length};
}

Result<std::optional<ElfFile>> ElfFile::open(int fd, const ChangeCheck& check) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return errno_error(errno, "cannot read program");
  if (!S_ISREG(status.st_mode)) return std::unexpected(Error{"cannot read program", {}, "not a regular file"});

  ElfFile file{fd, static_cast<std::uint64_t>(status.st_size), check};
  const auto got = file.read(0, std::as_writable_bytes(std::span{&file.header_, 1}));
  const bool usable = got == sizeof(Elf64_Ehdr) && is_elf(file.header_) && file.load_tables();
  if (file.error_) return errno_error(file.error_, "cannot read program");
  if (!usable) return std::nullopt;
  return file;
}

bool ElfFile::load_tables() {
  if (header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_phnum > max_segments) return false;
  segments_ = read_table<Elf64_Phdr>(header_.e_phoff, header_.e_phnum);
  if (segments_.empty()) return false;
  // More than 65279 sections are counted elsewhere (e_shnum is 0 then): object files may have them, programs do not.
  if (header_.e_shoff != 0 && header_.e_shentsize == sizeof(Elf64_Shdr))
    sections_ = read_table<Elf64_Shdr>(header_.e_shoff, header_.e_shnum);

  const Elf64_Phdr* const dynamic = segment(PT_DYNAMIC);
  is_program_ = header_.e_type == ET_EXEC || segment(PT_INTERP) ||
                (dynamic && has_pie_flag({dynamic->p_offset, dynamic->p_filesz}));
  return true;
}

bool ElfFile::has_pie_flag(Extent dynamic) {
  const auto count = std::min<std::uint64_t>(dynamic.size / sizeof(Elf64_Dyn), max_dynamic_entries);
  for (const Elf64_Dyn& entry : read_table<Elf64_Dyn>(dynamic.offset, count)) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_FLAGS_1) return entry.d_un.d_val & DF_1_PIE;
  }
  return false;
}

std::size_t ElfFile::read(std::uint64_t offset, std::span<std::byte> into) {
  std::size_t done = 0;
  const std::size_t wanted = std::min<std::uint64_t>(into.size(), budget_);
  while (done < wanted && !error_) {
    if (offset > static_cast<std::uint64_t>(INT64_MAX) - done) break;
    if (is_being_changed_ && is_being_changed_(fd_, FileUse::read)) {
      error_ = EAGAIN;
      break;
    }
    const ssize_t got = ::pread(fd_, into.data() + done, wanted - done, static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got > 0)
      done += static_cast<std::size_t>(got);
    else if (errno != EINTR)
      error_ = errno;
  }
  budget_ -= std::min(budget_, std::max(done, min_cost));
  return done;
}

template <typename Entry>
std::vector<Entry> ElfFile::read_table(std::uint64_t offset, std::size_t count) {
  std::vector<Entry> table(count);
  if (read(offset, std::as_writable_bytes(std::span{table})) != count * sizeof(Entry)) table.clear();
  return table;
}

std::span<const Elf64_Sym> ElfFile::read_symbols(Extent rest) {
  symbols_.resize(window_bytes / sizeof(Elf64_Sym));
  const std::span wanted{symbols_.data(), std::min<std::size_t>(symbols_.size(), rest.size / sizeof(Elf64_Sym))};
  return wanted.first(read(rest.offset, std::as_writable_bytes(wanted)) / sizeof(Elf64_Sym));
}

const Elf64_Phdr* ElfFile::segment(std::uint32_t type) const {
  const auto found = std::ranges::find(segments_, type, &Elf64_Phdr::p_type);
  return found == segments_.end() ? nullptr : &*found;
}

const Elf64_Shdr* ElfFile::section(std::uint32_t type) const {
  const auto found = std::ranges::find(sections_, type, &Elf64_Shdr::sh_type);
  return found == sections_.end() ? nullptr : &*found;
}

const Elf64_Shdr* ElfFile::section_named(std::string_view name) {
  if (header_.e_shstrndx >= sections_.size()) return nullptr;
  const StringTable names = strings(sections_[header_.e_shstrndx]);
  const auto found =
      std::ranges::find_if(sections_, [&](const Elf64_Shdr& section) { return names.at(section.sh_name) == name; });
  return found == sections_.end() ? nullptr : &*found;
}

const Elf64_Shdr* ElfFile::names_of(const Elf64_Shdr& symbols) const {
  if (symbols.sh_link >= sections_.size()) return nullptr;
  const Elf64_Shdr& names = sections_[symbols.sh_link];
  return names.sh_type == SHT_STRTAB ? &names : nullptr;
}

std::optional<std::uint64_t> ElfFile::code_offset(std::uint64_t address) const {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) || address < segment.p_vaddr) continue;
    const std::uint64_t within = address - segment.p_vaddr;
    std::uint64_t offset = 0;
    if (within >= segment.p_filesz || __builtin_add_overflow(segment.p_offset, within, &offset)) continue;
    if (offset < size_) return offset;
  }
  return std::nullopt;
}

std::vector<std::byte> ElfFile::code(std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> bytes(size);
  bytes.resize(read(offset, bytes));
  return bytes;
}

std::optional<std::uint64_t> ElfFile::find(Extent extent, std::string_view bytes) {
  window_.resize(window_bytes);
  // What lies across two windows is found since the end of one is kept as the beginning of the next.
  std::size_t kept = 0;
  while (extent.size > 0) {
    const std::size_t wanted = std::min<std::uint64_t>(extent.size, window_.size() - kept);
    const std::size_t got = read(extent.offset, std::span{window_}.subspan(kept, wanted));
    const std::size_t filled = kept + got;
    if (const void* const found = ::memmem(window_.data(), filled, bytes.data(), bytes.size()))
      return extent.offset - kept + static_cast<std::uint64_t>(static_cast<const std::byte*>(found) - window_.data());
    if (got < wanted) return std::nullopt;
    extent = {extent.offset + got, extent.size - got};
    kept = std::min(filled, bytes.size() - 1);
    std::memmove(window_.data(), window_.data() + (filled - kept), kept);
  }
  return std::nullopt;
}

std::vector<std::string> ElfFile::needed_libraries(std::string_view part) {
  std::vector<std::string> found;
  const Elf64_Shdr* const dynamic = section(SHT_DYNAMIC);
  const Elf64_Shdr* const names = dynamic ? names_of(*dynamic) : nullptr;
  // Most programs need nothing of the kind.
  if (!names || !contains({names->sh_offset, names->sh_size}, part)) return found;
  const StringTable text = strings(*names);
  const auto count = std::min<std::uint64_t>(dynamic->sh_size / sizeof(Elf64_Dyn), max_dynamic_entries);
  for (const Elf64_Dyn& entry : read_table<Elf64_Dyn>(dynamic->sh_offset, count)) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag != DT_NEEDED || entry.d_un.d_val > UINT32_MAX) continue;
    const std::string_view name = text.at(static_cast<std::uint32_t>(entry.d_un.d_val));
    if (name.contains(part)) found.emplace_back(name);
  }
  return found;
}

std::optional<std::uint64_t> ElfFile::tls_module_word() {
  const Processor* const known = find_processor(machine());
  if (known == nullptr) return std::nullopt;
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type != SHT_RELA || section.sh_entsize != sizeof(Elf64_Rela)) continue;
    for (std::uint64_t done = 0; done < std::min(section.sh_size, max_relocation_bytes); done += window_bytes) {
      const std::uint64_t rest = std::min(section.sh_size - done, window_bytes);
      const auto relocations = read_table<Elf64_Rela>(section.sh_offset + done, rest / sizeof(Elf64_Rela));
      if (relocations.empty()) break;
      // Without a symbol it is this file's own number. Another's symbol may be defined elsewhere as well.
      const auto found =
          std::ranges::find(relocations, ELF64_R_INFO(0, known->tls_module_relocation), &Elf64_Rela::r_info);
      if (found != relocations.end()) return found->r_offset;
    }
  }
  return std::nullopt;
}

StringTable ElfFile::strings(const Elf64_Shdr& table) {
  std::vector<char> bytes;
  // Grown as it is read: a size that is only claimed costs nothing.
  constexpr std::size_t step = 1u << 20;
  const std::size_t wanted = std::min<std::uint64_t>(table.sh_size, max_string_bytes);
  while (bytes.size() < wanted) {
    const std::size_t before = bytes.size(), more = std::min(step, wanted - before);
    bytes.resize(before + more);
    const auto got = read(table.sh_offset + before, std::as_writable_bytes(std::span{bytes}.subspan(before)));
    if (got < more) {
      bytes.resize(before + got);
      break;
    }
  }
  return StringTable{std::move(bytes)};
}

}  // namespace rtev
