// SPDX-License-Identifier: MIT
// Words that the sentences and tables about pauses are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "analysis/cpu_history.hpp"
#include "base/text_buffer.hpp"
#include "rtev/names.hpp"
#include "stream/records.hpp"

namespace rtev {

/// "minor", or "#77" where the family has no such phase.
void add_phase(TextBuffer& out, Family family, std::uint16_t phase);

/// " #2" for the second domain that has its number, as tracks have it; nothing for the first. Counted from 0.
void add_incarnation(TextBuffer& out, std::uint32_t incarnation);

/// `"stress" (pid 99)`, with the thread where it is not the first; a thread of `own_pid` as such. Escaped.
void add_thread(TextBuffer& out, const Thread& thread, std::int32_t own_pid);

/// " behind "stress" (pid 99)": whom a thread waited for.
void add_behind(TextBuffer& out, const CpuWait& wait, std::int32_t own_pid);

/// "1 time", "1,234 times".
void add_counted(TextBuffer& out, std::uint64_t count, std::string_view singular, std::string_view plural);

/// A moment as seconds since the run began: "1.234567890 s".
void add_moment(TextBuffer& out, std::uint64_t time_ns, std::uint64_t start_ns);

/// For columns.
inline constexpr std::size_t duration_width = 9;
void add_duration_column(TextBuffer& out, std::uint64_t ns);

/// "93%", "<1%", "0%".
void add_percent(TextBuffer& out, std::uint64_t part, std::uint64_t of);

}  // namespace rtev
