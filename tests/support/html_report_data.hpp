// SPDX-License-Identifier: MIT
// HTML reports: one of a stream made by hand, and the data inside.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace rtev::test {

/// As it is in the report: Base64 of gzip.
std::string packed_report_data(const std::string& html);
/// Throws if it is no JSON.
nlohmann::json report_data_of(const std::string& html);

/// The report of a stream made by hand: the process and its user spans have this name.
std::string report_of_made_stream(const std::string& name, std::uint64_t rounds);

/// What is in HTML between two texts.
std::string text_between(const std::string& html, const std::string& begin, const std::string& end);

}  // namespace rtev::test
