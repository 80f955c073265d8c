// SPDX-License-Identifier: MIT
// Files of profiles that other programs open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analysis/profile/profile_report.hpp"

namespace rtev {

enum class ProfileFile : std::uint8_t { folded, pprof, speedscope, html };

struct ProfileFileInfo {
  ProfileFile file;
  std::string_view suffix;
  std::string_view purpose;
};
std::span<const ProfileFileInfo> profile_files();
/// The one with the suffix of the path, if there is one.
std::optional<ProfileFile> profile_file_of(std::string_view path);

/// The content of a file. Of a comparison it has the samples inside. Its size is bounded: what does not fit is one
/// frame, "[left out]".
std::string profile_file(const ProfileReport& report, ProfileFile file);

// The files, one by one.
std::string folded_stacks(const ProfileReport& report);
std::string pprof_profile(const ProfileReport& report);  ///< not compressed
std::string speedscope_profile(const ProfileReport& report);
std::string flame_graph_html(const ProfileReport& report);

/// What web/flame_graph.js draws, as one JSON object. Of more nodes those with most weight are shown.
std::string flame_graph_json(const ProfileReport& report, std::size_t max_nodes);

/// The frame that stands for what does not fit.
inline constexpr std::string_view left_out_frame = "[left out]";
/// Most frames in a file, a frame counted once a stack.
inline constexpr std::size_t max_file_frames = std::size_t{1} << 22;

}  // namespace rtev
