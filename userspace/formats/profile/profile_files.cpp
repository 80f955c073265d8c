// SPDX-License-Identifier: MIT
#include "formats/profile/profile_files.hpp"

#include <algorithm>
#include <array>

#include "formats/output/gzip_output.hpp"
#include "formats/output/output.hpp"

namespace rtev {

std::span<const ProfileFileInfo> profile_files() {
  static constexpr std::array files{
      ProfileFileInfo{ProfileFile::html, ".html", "a flame graph for any browser"},
      ProfileFileInfo{ProfileFile::folded, ".folded", "folded stacks"},
      ProfileFileInfo{ProfileFile::pprof, ".pb.gz", "pprof"},
      ProfileFileInfo{ProfileFile::speedscope, ".speedscope.json", "speedscope"},
  };
  return files;
}

std::optional<ProfileFile> profile_file_of(std::string_view path) {
  const auto found =
      std::ranges::find_if(profile_files(), [&](const ProfileFileInfo& info) { return path.ends_with(info.suffix); });
  return found == profile_files().end() ? std::nullopt : std::optional(found->file);
}

std::string profile_file(const ProfileReport& report, ProfileFile file) {
  switch (file) {
    case ProfileFile::folded:
      return folded_stacks(report);
    case ProfileFile::pprof: {
      StringOutput compressed;
      GzipOutput gzip(compressed);
      gzip.write(pprof_profile(report));
      gzip.finish();
      return compressed.text();
    }
    case ProfileFile::speedscope:
      return speedscope_profile(report);
    case ProfileFile::html:
      return flame_graph_html(report);
  }
  return {};
}

}  // namespace rtev
