// SPDX-License-Identifier: MIT
// Pages of `rtev-bpf report`: one of a stream made by hand, and the data inside.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace rtev::test {

/// As it is in the page: Base64 of gzip.
std::string packed_page_data(const std::string& page);
/// Throws if it is no JSON.
nlohmann::json page_data_of(const std::string& page);

/// The page of a stream made by hand: the process and its user spans have this name.
std::string page_of_made_stream(const std::string& name, std::uint64_t rounds);

/// What is in a page between two texts.
std::string text_between(const std::string& page, const std::string& begin, const std::string& end);

}  // namespace rtev::test
