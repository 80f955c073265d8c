// SPDX-License-Identifier: MIT
// Reads pprof's profiles with the library of protocol buffers, and checks what every reader relies on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rtev::test {

struct PprofStack {
  std::vector<std::string> frames{};  ///< "Upload.store src/upload.ml:42", innermost first
  std::vector<std::int64_t> values{};
  std::map<std::string, std::string> labels{};
};
struct PprofContent {
  std::vector<std::string> sample_types{};  ///< "cpu/nanoseconds"
  std::vector<PprofStack> stacks{};
  std::map<std::string, std::string> build_ids{};  ///< by file
  std::vector<std::string> comments{};
  std::int64_t period = 0, time_ns = 0, duration_ns = 0;
};

/// Not compressed. Fails the test if references lead nowhere, or if it cannot be read.
PprofContent read_pprof(std::string_view bytes);
/// The content of a gzip file.
std::string gunzip(std::string_view bytes);

}  // namespace rtev::test
