// SPDX-License-Identifier: MIT
#include "unwind/cfi_expression.hpp"

#include <array>
#include <utility>

#include "unwind/byte_cursor.hpp"

namespace rtev {
namespace {

/// A stack of numbers; taking from an empty one, or putting on a full one, makes the evaluation invalid.
class Numbers {
 public:
  bool ok() const { return ok_; }
  void push(std::uint64_t value) {
    if (size_ == values_.size())
      ok_ = false;
    else
      values_[size_++] = value;
  }
  std::uint64_t pop() {
    if (size_ == 0) {
      ok_ = false;
      return 0;
    }
    return values_[--size_];
  }
  /// Counted from the top, which is 0.
  std::uint64_t peek(std::size_t depth) {
    if (depth >= size_) {
      ok_ = false;
      return 0;
    }
    return values_[size_ - 1 - depth];
  }

 private:
  std::array<std::uint64_t, 16> values_;
  std::size_t size_ = 0;
  bool ok_ = true;
};

std::uint64_t signed_number(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

/// Operations on the two topmost numbers; nothing if it is no such operation.
std::optional<std::uint64_t> binary(std::uint8_t code, std::uint64_t left, std::uint64_t right) {
  const auto a = static_cast<std::int64_t>(left), b = static_cast<std::int64_t>(right);
  switch (code) {
    case 0x1a:
      return left & right;
    case 0x1c:
      return left - right;
    case 0x1e:
      return left * right;
    case 0x21:
      return left | right;
    case 0x22:
      return left + right;
    case 0x24:
      return right < 64 ? left << right : 0;
    case 0x25:
      return right < 64 ? left >> right : 0;
    case 0x27:
      return left ^ right;
    case 0x29:
      return a == b;
    case 0x2a:
      return a >= b;
    case 0x2b:
      return a > b;
    case 0x2c:
      return a <= b;
    case 0x2d:
      return a < b;
    case 0x2e:
      return a != b;
    default:
      return std::nullopt;
  }
}

}  // namespace

Evaluated evaluate_cfi(std::span<const std::byte> expression, const FrameRegisters& registers, const StackCopy& stack,
                       std::optional<std::uint64_t> first, std::size_t& hint) {
  ByteCursor cursor(expression);
  Numbers numbers;
  if (first) numbers.push(*first);
  const auto push_register = [&](std::uint64_t number, std::int64_t offset) {
    if (number >= registers.values.size() || !registers.has(static_cast<unsigned>(number))) return false;
    numbers.push(registers.values[number] + signed_number(offset));
    return true;
  };

  while (!cursor.at_end() && numbers.ok()) {
    const auto code = cursor.take<std::uint8_t>();
    bool known = true;
    if (code >= 0x30 && code <= 0x4f) {
      numbers.push(code - 0x30u);
    } else if (code >= 0x70 && code <= 0x8f) {
      known = push_register(code - 0x70u, cursor.take_sleb());
    } else {
      switch (code) {
        case 0x03:
        case 0x0e:
        case 0x0f:
          numbers.push(cursor.take<std::uint64_t>());
          break;
        case 0x06: {
          const auto word = stack.read_word(numbers.pop(), hint);
          if (!numbers.ok()) return {};
          if (!word) return {Evaluated::State::not_copied, 0};
          numbers.push(*word);
          break;
        }
        case 0x08:
          numbers.push(cursor.take<std::uint8_t>());
          break;
        case 0x09:
          numbers.push(signed_number(cursor.take<std::int8_t>()));
          break;
        case 0x0a:
          numbers.push(cursor.take<std::uint16_t>());
          break;
        case 0x0b:
          numbers.push(signed_number(cursor.take<std::int16_t>()));
          break;
        case 0x0c:
          numbers.push(cursor.take<std::uint32_t>());
          break;
        case 0x0d:
          numbers.push(signed_number(cursor.take<std::int32_t>()));
          break;
        case 0x10:
          numbers.push(cursor.take_uleb());
          break;
        case 0x11:
          numbers.push(signed_number(cursor.take_sleb()));
          break;
        case 0x12:
          numbers.push(numbers.peek(0));
          break;
        case 0x13:
          numbers.pop();
          break;
        case 0x14:
          numbers.push(numbers.peek(1));
          break;
        case 0x15:
          numbers.push(numbers.peek(cursor.take<std::uint8_t>()));
          break;
        case 0x16: {
          const std::uint64_t top = numbers.pop(), next = numbers.pop();
          numbers.push(top);
          numbers.push(next);
          break;
        }
        case 0x1f:
          numbers.push(0 - numbers.pop());
          break;
        case 0x20:
          numbers.push(~numbers.pop());
          break;
        case 0x23:
          numbers.push(numbers.pop() + cursor.take_uleb());
          break;
        case 0x92: {
          const std::uint64_t number = cursor.take_uleb();
          known = push_register(number, cursor.take_sleb());
          break;
        }
        case 0x96:
          break;
        default: {
          const std::uint64_t right = numbers.pop(), left = numbers.pop();
          const auto value = binary(code, left, right);
          known = value.has_value();
          numbers.push(value.value_or(0));
        }
      }
    }
    if (!known || !cursor.ok()) return {};
  }
  const std::uint64_t value = numbers.pop();
  if (!numbers.ok() || !cursor.ok()) return {};
  return {Evaluated::State::done, value};
}

}  // namespace rtev
