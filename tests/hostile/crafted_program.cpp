// SPDX-License-Identifier: MIT
#include "crafted_program.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "attacker.hpp"

namespace rtev::hostile {
namespace {

template <typename Value>
void append(std::string& bytes, const Value& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The bytes of an ELF program. To load it, nobody needs its sections.
class Program {
 public:
  explicit Program(std::string bytes) : bytes_(std::move(bytes)) {
    const auto header = at<Elf64_Ehdr>(0);
    for (std::size_t i = 0; i < header.e_shnum; ++i)
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    for (std::size_t i = 0; i < header.e_phnum; ++i) {
      const auto segment = at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) code_ = segment;
    }
    names_ = section_bytes(header.e_shstrndx);
  }

  std::uint64_t code_begin() const { return code_.p_vaddr; }
  std::uint64_t code_bytes() const { return code_.p_filesz; }

  std::size_t section(std::string_view name) const {
    const auto found = std::ranges::find_if(
        sections_, [&](const Elf64_Shdr& section) { return names_.c_str() + section.sh_name == name; });
    if (found == sections_.end()) fail("a program without " + std::string(name));
    return static_cast<std::size_t>(found - sections_.begin());
  }
  std::size_t names_of(std::size_t section) const { return sections_.at(section).sh_link; }
  std::string section_bytes(std::size_t index) const {
    return bytes_.substr(sections_.at(index).sh_offset, sections_.at(index).sh_size);
  }
  void replace(std::size_t index, const std::string& content) {
    bytes_.append(-bytes_.size() % 8, '\0');
    sections_.at(index).sh_offset = bytes_.size();
    sections_.at(index).sh_size = content.size();
    bytes_ += content;
  }
  std::string finish() && {
    auto header = at<Elf64_Ehdr>(0);
    bytes_.append(-bytes_.size() % 8, '\0');
    header.e_shoff = bytes_.size();
    std::memcpy(bytes_.data(), &header, sizeof header);
    for (const Elf64_Shdr& section : sections_) append(bytes_, section);
    return std::move(bytes_);
  }

 private:
  template <typename Value>
  Value at(std::size_t offset) const {
    Value value{};
    std::memcpy(&value, bytes_.substr(offset, sizeof value).data(), sizeof value);
    return value;
  }

  std::string bytes_, names_;
  std::vector<Elf64_Shdr> sections_;
  Elf64_Phdr code_{};
};

/// An entry of .eh_frame.
std::string entry(std::string body) {
  body.append(-body.size() % 8 + 4, '\0');
  std::string whole;
  append(whole, static_cast<std::uint32_t>(body.size()));
  return whole + body;
}

}  // namespace

std::string with_many_expressions(std::string bytes) {
  constexpr std::uint64_t instructions = 6'300'000;
  constexpr std::string_view common{"\0\0\0\0\1\0\1\x78\x10\x0c\7\x8\x90\1", 14};
  Program program(std::move(bytes));
  std::string frame = entry(std::string(common));
  std::string function;
  function.reserve(instructions * 10 + 64);
  append(function, static_cast<std::uint32_t>(frame.size() + 4));  // back to what functions have in common
  append(function, program.code_begin());
  append(function, program.code_bytes());
  for (std::uint64_t i = 0; i < instructions; ++i) {
    function += "\x0f\x8";  // the frame is where an expression of 8 bytes says
    append(function, i);
  }
  program.replace(program.section(".eh_frame"), frame + entry(std::move(function)));
  return std::move(program).finish();
}

std::string with_many_symbols(std::string bytes, std::size_t symbols) {
  constexpr std::size_t name_bytes = 120;
  Program program(std::move(bytes));
  const std::size_t table = program.section(".symtab"), strings = program.names_of(table);
  std::string entries = program.section_bytes(table), names = program.section_bytes(strings);
  for (std::size_t i = 0; i < symbols; ++i) {
    append(entries, Elf64_Sym{.st_name = static_cast<Elf64_Word>(names.size()),
                              .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                              .st_other = 0,
                              .st_shndx = 1,
                              .st_value = program.code_begin() + i % program.code_bytes(),
                              .st_size = 1});
    std::string name = std::to_string(i);
    name.resize(name_bytes, 'x');
    names += name + '\0';
  }
  program.replace(table, entries);
  program.replace(strings, names);
  return std::move(program).finish();
}

}  // namespace rtev::hostile
