// SPDX-License-Identifier: MIT
#include "formats/chrome/chrome_recording.hpp"

#include "base/base64.hpp"

namespace rtev {

std::optional<std::string> recording_chunk(std::string_view line) {
  if (!line.starts_with(recording_prefix)) return std::nullopt;
  line.remove_prefix(recording_prefix.size());
  if (!line.ends_with(recording_suffix)) return std::nullopt;
  line.remove_suffix(recording_suffix.size());
  return from_base64(line);
}

}  // namespace rtev
