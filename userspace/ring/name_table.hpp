// SPDX-License-Identifier: MIT
// Names of the user events of a ring.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "ring/layout.hpp"

namespace rtev {

/// Finds names by id. A program may have thousands of names and end at once, so they are allocated in blocks.
class NameTable {
 public:
  bool contains(std::uint16_t id) const { return id < index_.size() && index_[id] != 0; }
  /// Empty if there is none. Valid until the name changes.
  std::string_view find(std::uint16_t id) const { return contains(id) ? at(index_[id]).text() : std::string_view{}; }
  /// Bytes of memory that put() would allocate.
  std::size_t bytes_of_next(std::uint16_t id) const {
    if (contains(id)) return 0;
    const std::size_t index = (std::max(index_.size(), std::size_t{id} + 1) - index_.size()) * sizeof index_[0];
    return index + (is_full() ? sizeof(Block) + sizeof blocks_[0] : 0);
  }
  /// Longer names are cut.
  void put(std::uint16_t id, std::string_view text) {
    if (id >= index_.size()) index_.resize(std::size_t{id} + 1);
    if (index_[id] == 0) {
      if (is_full()) blocks_.push_back(std::make_unique<Block>());
      index_[id] = ++count_;
    }
    at(index_[id]).set(text);
  }
  void clear() { *this = {}; }
  /// Calls `visit(id)` for each name, which may put() another one in its place.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::size_t id = 0; id < index_.size(); ++id)
      if (index_[id] != 0) visit(static_cast<std::uint16_t>(id));
  }

 private:
  static constexpr std::size_t names_of_block = 8;

  class Name {
   public:
    std::string_view text() const { return {text_.data(), length_}; }
    void set(std::string_view text) {
      length_ = static_cast<std::uint8_t>(std::min(text.size(), text_.size()));
      std::memcpy(text_.data(), text.data(), length_);
    }

   private:
    std::uint8_t length_ = 0;
    std::array<char, user_event_name_bytes - 1> text_;
  };
  using Block = std::array<Name, names_of_block>;

  bool is_full() const { return count_ == blocks_.size() * names_of_block; }
  Name& at(std::size_t number) const {
    return (*blocks_[(number - 1) / names_of_block])[(number - 1) % names_of_block];
  }

  std::vector<std::uint16_t> index_;  ///< number of each id's name, from 1 on; 0: none
  std::vector<std::unique_ptr<Block>> blocks_;
  std::uint16_t count_ = 0;
};

}  // namespace rtev
