// SPDX-License-Identifier: MIT
#include "inspect/emitter_sites.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace rtev {
namespace {

// Instructions, each as the hex digits of its bytes, ".." for any byte.

/// What may come before the flag is tested: none of it changes where the arguments are.
constexpr std::array<std::string_view, 6> preludes{
    "f30f1efa",            // endbr64
    "4883ec..",            // sub $.., %rsp
    "48897424..",          // mov %rsi, ..(%rsp)
    "897c24..",            // mov %edi, ..(%rsp)
    "64488b042528000000",  // mov %fs:40, %rax: the guard of the stack
    "48894424..",          // mov %rax, ..(%rsp)
};

constexpr std::string_view load_flag = "488b05........",  // mov flag(%rip), %rax
    test_flag = "4885c0",                                 // test %rax, %rax
    compare_flag = "48833d........00";                    // cmpq $0, flag(%rip)

/// je and jne, short and long.
constexpr std::array<std::string_view, 4> branches{"74..", "75..", "0f84........", "0f85........"};

constexpr std::size_t length_of(std::string_view form) {
  return form.size() / 2;
}

constexpr std::uint8_t digit(char c) {
  return static_cast<std::uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10);
}

/// Takes instructions from the front of some code.
class Decoder {
 public:
  Decoder(std::span<const std::byte> code, std::uint64_t address) : code_(code), address_(address) {}

  bool take(std::string_view form) {
    if (!is(form)) return false;
    at_ += length_of(form);
    return true;
  }
  /// The same for an instruction with an address relative to the next one's, which lies there.
  bool take(std::string_view form, std::size_t relative, std::uint64_t& target) {
    if (!is(form)) return false;
    std::int32_t distance = 0;
    std::memcpy(&distance, code_.data() + at_ + relative, sizeof distance);
    at_ += length_of(form);
    target = address_ + at_ + static_cast<std::uint64_t>(std::int64_t{distance});
    return true;
  }
  bool is(std::string_view form) const {
    if (code_.size() - at_ < length_of(form)) return false;
    for (std::size_t i = 0; i < length_of(form); ++i) {
      if (form[2 * i] == '.') continue;
      if (std::to_integer<std::uint8_t>(code_[at_ + i]) != (digit(form[2 * i]) << 4 | digit(form[2 * i + 1])))
        return false;
    }
    return true;
  }
  std::size_t at() const { return at_; }

 private:
  std::span<const std::byte> code_;
  std::uint64_t address_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<EnabledBranch> find_enabled_branch(std::span<const std::byte> code, std::uint64_t address) {
  constexpr std::size_t load_distance = 3, compare_distance = 3;
  Decoder decoder(code, address);
  const auto take_one = [&](std::string_view form) { return decoder.take(form); };
  while (std::ranges::any_of(preludes, take_one)) {
  }
  std::uint64_t flag = 0;
  if (decoder.take(load_flag, load_distance, flag)) {
    if (!decoder.take(test_flag)) return std::nullopt;
  } else if (!decoder.take(compare_flag, compare_distance, flag)) {
    return std::nullopt;
  }
  if (std::ranges::none_of(branches, [&](std::string_view form) { return decoder.is(form); })) return std::nullopt;
  return EnabledBranch{.offset = decoder.at(), .flag = flag};
}

}  // namespace rtev
