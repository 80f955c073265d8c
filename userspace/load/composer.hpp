// SPDX-License-Identifier: MIT
// The events that the parts of a load consist of.
#pragma once

#include <cstdint>
#include <random>
#include <string_view>

#include "load/plan.hpp"

namespace rtev::load {

/// Appends blocks to a plan. All domains of a process get blocks of the same shape with different values.
class Composer {
 public:
  Composer(Plan& plan, const PlanOptions& options);

  void add(Part part);

 private:
  void collection();
  void minor_collection();
  void major_slice();
  void phase_change();
  /// A stop-the-world section, in which all domains work.
  template <typename Work>
  void stop_the_world(bool is_leader, Work work);
  void minor_heap(bool is_leader);

  void counter();
  void alloc();
  void request();
  void queries();
  void message();

  void begin(std::string_view phase);
  void end(std::string_view phase);
  void span(std::string_view phase);
  template <typename Work>
  void span(std::string_view phase, Work work);
  void count(std::string_view counter, std::uint64_t value);
  void user(EventKind kind, std::string_view event, std::uint64_t value = 0);

  /// A random number for the shape, or for a value: 0 to `bound` - 1.
  std::uint64_t shape(std::uint64_t bound) { return shape_() % bound; }
  std::uint64_t value(std::uint64_t bound) { return values_() % bound; }
  bool leads_next_section();

  Plan& plan_;
  PlanOptions options_;
  std::mt19937_64 shape_;
  std::mt19937_64 values_;
  std::uint64_t sections_ = 0;
  std::uint64_t slices_ = 0;
  std::uint64_t heap_words_ = 150'000;
};

}  // namespace rtev::load
