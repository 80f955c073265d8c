// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/change_check.hpp"

namespace rtev {

/// What touching memory that is mapped from a file takes; a later state takes more.
enum class PageState : std::uint8_t {
  ready,   ///< nothing
  hole,    ///< memory for a page that the file does not have so far; read(2) takes none
  absent,  ///< a read of the disk
  busy,    ///< waiting for whoever holds the page, or cuts it from the file
};

struct PageRange {
  const std::byte* address;
  std::size_t bytes;
  PageState state = PageState::ready;  ///< the answer: the latest of its pages
};

/// Answers for ranges of mapped memory. The answer holds for the moment: what happens to the file afterwards can still
/// make the reader wait, unless the pages were ready because they are in its page tables.
using PageCheck = std::function<void(std::span<PageRange> ranges)>;

/// Requests that another thread reads a part of a file soon, so that its pages are ready.
using PageLoad = std::function<void(int fd, std::uint64_t offset, std::size_t bytes)>;

/// What is asked before a file of another process is mapped and read; without a function, nothing.
struct FileChecks {
  ChangeCheck is_being_changed{};
  PageCheck look_at_pages{};
  PageLoad load_pages{};
};

}  // namespace rtev
