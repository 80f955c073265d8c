// SPDX-License-Identifier: MIT
// Reads CSV as RFC 4180 has it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rtev::test {

using CsvFields = std::vector<std::string>;
/// Fields by the name of their column.
using CsvRecord = std::map<std::string, std::string>;

/// Removes the first record of a text, with its end. Nothing for text that is no CSV, e.g. without an end.
inline std::optional<CsvFields> take_csv(std::string_view& text) {
  CsvFields fields{{}};
  while (!text.empty()) {
    if (text.front() == '"') {
      if (!fields.back().empty()) return std::nullopt;
      for (text.remove_prefix(1);; text.remove_prefix(1)) {
        if (text.empty()) return std::nullopt;
        if (text.front() == '"') {
          text.remove_prefix(1);
          if (!text.starts_with('"')) break;
        }
        fields.back() += text.front();
      }
      if (!text.starts_with(',') && !text.starts_with('\n')) return std::nullopt;
    }
    if (text.empty()) return std::nullopt;
    const char next = text.front();
    text.remove_prefix(1);
    if (next == '\n') return fields;
    if (next == '"' || next == '\r') return std::nullopt;
    if (next == ',')
      fields.emplace_back();
    else
      fields.back() += next;
  }
  return std::nullopt;
}

/// All records of a file with titles; nothing if one has another number of fields.
inline std::optional<std::vector<CsvRecord>> read_csv(std::string_view text) {
  const auto titles = take_csv(text);
  if (!titles) return std::nullopt;
  std::vector<CsvRecord> records;
  while (!text.empty()) {
    const auto fields = take_csv(text);
    if (!fields || fields->size() != titles->size()) return std::nullopt;
    CsvRecord& record = records.emplace_back();
    for (std::size_t i = 0; i < fields->size(); ++i) record[(*titles)[i]] = (*fields)[i];
  }
  return records;
}

}  // namespace rtev::test
