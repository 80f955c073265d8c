// SPDX-License-Identifier: MIT
// A metadata record of a recording: a userspace object with named arguments.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include "rtev/fxt_writer.hpp"
#include "stream/recording_layout.hpp"

namespace rtev::record {

inline std::string_view clipped(std::string_view text) {
  return text.substr(0, max_metadata_bytes);
}

/// Collects the arguments of one record. Texts must be valid until write().
class Metadata {
 public:
  /// `what` is one of metadata_*.
  Metadata(FxtWriter& writer, std::string_view what, fxt::Value value = true) : writer_(writer) { put(what, value); }

  /// A number, or a text, which is cut to max_metadata_bytes.
  template <typename T>
  Metadata& add(std::string_view name, const T& value) {
    if constexpr (std::convertible_to<const T&, std::string_view>) {
      put(name, clipped(value));
    } else {
      put(name, value);
    }
    return *this;
  }

  void write(std::uint64_t address = 0) { write(address, {}, {}); }
  /// About a slot of the thread table or of the string table.
  void write(std::uint64_t address, fxt::ThreadRef thread, fxt::StringRef string) {
    writer_.write(fxt::UserspaceObject{.address = address, .process = thread, .name = string}, arguments_);
  }

 private:
  void put(std::string_view name, fxt::Value value) { arguments_.add(writer_.intern(name), value); }

  FxtWriter& writer_;
  fxt::Arguments arguments_;
};

}  // namespace rtev::record
