// SPDX-License-Identifier: MIT
// What records refer to and what a reader therefore remembers of each provider: strings, threads and ticks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "rtev/fxt.hpp"

namespace rtev::fxt {

/// The memory that strings may still take.
class StringBudget {
 public:
  explicit StringBudget(std::size_t bytes) : left_(bytes) {}
  bool take(std::size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  void give_back(std::size_t bytes) { left_ += bytes; }

 private:
  std::size_t left_;
};

/// Strings by their index. A slot that is used again keeps its memory.
class StringTable {
 public:
  explicit StringTable(StringBudget& budget) : budget_(&budget) {}
  StringTable(const StringTable&) = delete;
  StringTable& operator=(const StringTable&) = delete;
  ~StringTable() { budget_->give_back(taken_); }

  /// False if the budget does not allow it. Ends the life of what the slot held.
  bool set(std::uint16_t index, std::string_view text);
  /// False if the index is not defined. What it yields lives until the slot is set.
  bool get(std::uint16_t index, std::string_view& text) const {
    if (index >= slots_.size() || slots_[index].bytes == nullptr) return false;
    text = {slots_[index].bytes.get(), slots_[index].size};
    return true;
  }

 private:
  struct Slot {
    std::unique_ptr<char[]> bytes;  ///< of defined strings, also of empty ones
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
  };
  bool take(std::size_t bytes);

  StringBudget* budget_;
  std::size_t taken_ = 0;
  std::vector<Slot> slots_;
};

struct ThreadIds {
  std::uint64_t pid = 0;
  std::uint64_t tid = 0;
};

struct Provider {
  explicit Provider(std::uint32_t its_id, StringBudget& budget) : id(its_id), strings(budget) {}

  std::uint32_t id;
  std::uint64_t ticks_per_second = default_ticks_per_second;
  StringTable strings;
  std::array<std::optional<ThreadIds>, max_thread_slot + 1> threads;
};

/// The providers of a trace. Provider 0 exists from the beginning, for traces that name none.
class Providers {
 public:
  Providers(std::size_t max_providers, std::size_t string_bytes);
  Providers(const Providers&) = delete;
  Providers& operator=(const Providers&) = delete;

  Provider& current() { return *current_; }
  const Provider& current() const { return *current_; }
  bool knows(std::uint32_t id) const { return providers_.contains(id); }
  /// Makes the provider anew and the current one. False if there are too many.
  bool introduce(std::uint32_t id);
  /// False if it was not introduced.
  bool select(std::uint32_t id);

 private:
  std::size_t max_providers_;
  StringBudget budget_;
  std::map<std::uint32_t, Provider> providers_;
  Provider* current_;
};

}  // namespace rtev::fxt
