// SPDX-License-Identifier: MIT
// The recording that a trace in Chrome's format carries along: metadata events that viewers skip, a line each.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rtev {

/// What a line with a chunk begins with, followed by the chunk in base64, and what it ends with. The pid is that of the
/// rows of cpus, as viewers make a process of any they meet.
inline constexpr std::string_view recording_prefix =
    R"({"ph":"M","name":"rtev_recording","pid":2147418112,"tid":2147418112,"args":{"fxt":")";
inline constexpr std::string_view recording_suffix = R"("}},)";

/// The chunk in a line of a trace, as EmbeddedRecording made it; nothing in all other lines, and in one that is cut.
std::optional<std::string> recording_chunk(std::string_view line);

}  // namespace rtev
