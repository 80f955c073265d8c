// SPDX-License-Identifier: MIT
// The fuzz targets, and what they share. A target is a function of some bytes that aborts if a promise is broken.
// libFuzzer runs one at a time (driver.cpp); the unit tests run all of them on the inputs in corpus/.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"

namespace rtev::fuzz {

using Bytes = std::span<const std::uint8_t>;

void command_line(Bytes input);
void elf(Bytes input);
void filter(Bytes input);
void fxt(Bytes input);
void object_tables(Bytes input);
void procfs(Bytes input);
void replay(Bytes input);
void ring(Bytes input);
void ring_changes(Bytes input);
void ring_header(Bytes input);
void ring_race(Bytes input);
void ring_record(Bytes input);
void saved_rings(Bytes input);
void sinks(Bytes input);
void unwind_tables(Bytes input);

struct Target {
  std::string_view name;  ///< of its file, X_fuzz.cpp, and its folder, corpus/X
  void (*run)(Bytes input);
};
std::span<const Target> all_targets();

/// An oracle: ends the program with the reason if it does not hold.
inline void check(bool holds, std::string_view what, std::string_view detail = "") {
  if (holds) return;
  std::fprintf(stderr, "broken: %.*s\n%.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Takes numbers and text from the front of an input; zeros and empty text from its end.
class Input {
 public:
  explicit Input(Bytes bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  Bytes rest() const { return rest_; }
  template <typename Number>
    requires std::integral<Number> || std::is_trivially_copyable_v<Number>
  Number take() {
    Number number{};
    const Bytes bytes = take_bytes(sizeof number);
    std::memcpy(&number, bytes.data(), bytes.size());
    return number;
  }
  Bytes take_bytes(std::size_t size) {
    const Bytes taken = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  /// Up to the separator, which is removed, too.
  std::string_view take_until(char separator) {
    const auto text = text_of(rest_);
    const auto end = std::min(text.find(separator), text.size());
    rest_ = rest_.subspan(std::min(end + 1, rest_.size()));
    return text.substr(0, end);
  }

 private:
  Bytes rest_;
};

/// A file in memory with these bytes.
inline UniqueFd file_of(Bytes bytes) {
  UniqueFd fd(::memfd_create("fuzz", MFD_CLOEXEC));
  check(fd && ::pwrite(fd.get(), bytes.data(), bytes.size(), 0) == std::ssize(bytes), "a file in memory");
  return fd;
}

inline void resize(const UniqueFd& file, std::uint64_t bytes) {
  check(::ftruncate(file.get(), static_cast<off_t>(bytes)) == 0, "ftruncate");
}

}  // namespace rtev::fuzz
