// SPDX-License-Identifier: MIT
// Reads numbers from untrusted bytes, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace rtev {

/// Once it was asked for more than there is, ok() is false and all that it returns is zero.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return !ok_ || position_ == bytes_.size(); }
  std::size_t position() const { return position_; }
  std::size_t left() const { return bytes_.size() - position_; }

  template <typename Number>
    requires std::is_trivially_copyable_v<Number>
  Number take() {
    Number number{};
    if (left() < sizeof number) {
      fail();
      return number;
    }
    std::memcpy(&number, bytes_.data() + position_, sizeof number);
    position_ += sizeof number;
    return number;
  }

  /// Bits beyond the 64th are dropped, as long as the number ends.
  std::uint64_t take_uleb() {
    std::uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = take<std::uint8_t>();
      if (!ok_) return 0;
      if (shift < 64) number |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return number;
    }
  }
  std::int64_t take_sleb() {
    std::uint64_t number = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = take<std::uint8_t>();
      if (!ok_) return 0;
      if (shift < 64) number |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift + 7 < 64) number |= ~std::uint64_t{0} << (shift + 7);
      return static_cast<std::int64_t>(number);
    }
  }

  std::span<const std::byte> take_bytes(std::uint64_t count) {
    if (count > left()) {
      fail();
      return {};
    }
    const auto taken = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += taken.size();
    return taken;
  }
  /// Up to a zero byte, which is taken, too.
  std::string_view take_text() {
    const char* const begin = reinterpret_cast<const char*>(bytes_.data() + position_);
    const std::size_t length = left() == 0 ? 0 : ::strnlen(begin, left());
    if (length == left()) {
      fail();
      return {};
    }
    position_ += length + 1;
    return {begin, length};
  }

 private:
  void fail() {
    ok_ = false;
    position_ = bytes_.size();
  }

  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace rtev
