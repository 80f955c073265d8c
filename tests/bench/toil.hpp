// SPDX-License-Identifier: MIT
// A program that does pieces of work, and says what each of them cost.
#pragma once

#include <filesystem>
#include <optional>

#include "live/child_process.hpp"

namespace rtev::bench {

struct Cost {
  double cpu, run_time;  ///< seconds
};

/// A running tests/ocaml/toil.ml. Failures throw.
class Toil {
 public:
  /// `kind`: as in toil.ml. `cpu`: of the whole program; else it chooses itself. `events`: whether they are on from the
  /// start. Rings go to `directory`.
  Toil(const char* kind, std::optional<int> cpu, const std::filesystem::path& directory, bool events);

  pid_t pid() const { return process_.pid(); }
  /// One piece of work.
  Cost piece(int amount);
  /// The medians of a few pieces. The one before them, after something has changed, does not count.
  Cost block(int amount);
  /// How much work takes 60 ms. Pieces are so short that slow changes of the machine's speed hit what is compared
  /// alike.
  int usual_amount();

 private:
  test::Process process_;
};

}  // namespace rtev::bench
