// SPDX-License-Identifier: MIT
// What FxtWriter keeps beside its buffer: the providers with their tables, and what composed events point to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "fxt/string_slots.hpp"
#include "fxt/thread_slots.hpp"
#include "rtev/fxt_writer.hpp"

namespace rtev::fxt {

/// Arguments whose names the format prescribes.
enum class KnownName : std::uint8_t { process, incoming_weight, outgoing_weight, weight, waker };
inline constexpr std::array<std::string_view, 5> known_names{"process", "incoming_weight", "outgoing_weight", "weight",
                                                             "waker"};

/// Tables of one provider.
struct ProviderTables {
  explicit ProviderTables(const FxtWriter::Options& options)
      : strings(options.fixed_strings, options.temporary_strings, options.interned_bytes),
        threads(options.fixed_threads) {}

  StringSlots strings;
  ThreadSlots threads;
  std::array<StringRef, known_names.size()> known{};  ///< empty until used
};

class WriterState {
 public:
  explicit WriterState(FxtWriter::Options of_writer) : options(std::move(of_writer)) {}

  ProviderTables& tables() const { return current->second; }

  /// Headers of arguments, kept for the life of the writer: the same ones once, however many events share them.
  const std::uint64_t* keep(std::vector<std::uint64_t> argument_headers) {
    return argument_headers_.insert(std::move(argument_headers)).first->data();
  }

  FxtWriter::Options options;
  std::map<std::uint32_t, ProviderTables> providers;
  std::map<std::uint32_t, ProviderTables>::iterator current = providers.end();

 private:
  std::set<std::vector<std::uint64_t>> argument_headers_;
};

}  // namespace rtev::fxt
