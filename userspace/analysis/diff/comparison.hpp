// SPDX-License-Identifier: MIT
// Compares figures of one program in two recordings.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/diff/common_slices.hpp"
#include "analysis/diff/diff_report.hpp"

namespace rtev {

/// Whether it is good or bad if a figure rises.
enum class Rising : std::uint8_t {
  bad,    ///< and good if it falls
  costs,  ///< bad; but if it falls, perhaps less work was done
  neutral,
};

/// What a figure is, and how much it must change to be reported.
struct FigureKind {
  std::string id{}, name{};
  DiffRole role = DiffRole::detail;
  DiffUnit unit = DiffUnit::number;
  Rising rising = Rising::neutral;
  double least = 0;          ///< change, in the unit of the figure
  double change_factor = 1;  ///< how many times DiffOptions::min_change
};

/// A sum divided by another one.
struct Quotient {
  std::size_t of = 0, per = 0;
  double scale = 1;
  bool is_count = false;         ///< of events: a few of them tell nothing
  bool needs_scheduler = false;  ///< unknown where scheduler events are missing
};

/// Collects figures. What tests say of them is known after judge().
class Comparison {
 public:
  /// The arguments must outlive this.
  Comparison(const CommonSlices& a, const CommonSlices& b, double min_change) : a_(a), b_(b), min_change_(min_change) {}

  /// Figures that are 0 in both are left out.
  void add(const FigureKind& kind, const Quotient& quotient);
  void add_percentile(const FigureKind& kind, const SlicedDistribution& a, const SlicedDistribution& b,
                      double percentile);
  /// The median of the longest durations of each slice.
  void add_longest(const FigureKind& kind, const SlicedDistribution& a, const SlicedDistribution& b);
  /// How many of them there are in a second that the program runs.
  void add_rate(const FigureKind& kind, const SlicedDistribution& a, const SlicedDistribution& b);
  /// The part of samples that are those of a function; `all` has all samples of the kind.
  void add_share(const FigureKind& kind, const SlicedSamples& a, const SlicedSamples& b, SliceSum all);

  /// Decides which of the figures that were added since the last call have changed.
  void judge();
  std::vector<DiffFigure> take() { return std::move(figures_); }

 private:
  struct Pending {
    FigureKind kind{};
    double p = 1;
    bool tested = false, b_is_greater = false;
  };
  void add(const FigureKind& kind, double a, double b, std::span<const double> slices_a,
           std::span<const double> slices_b, bool is_enough);
  DiffVerdict verdict_of(const DiffFigure& figure, const Pending& pending) const;

  const CommonSlices &a_, &b_;
  double min_change_;
  std::vector<DiffFigure> figures_;
  std::vector<Pending> pending_;  ///< of the last figures
};

}  // namespace rtev
