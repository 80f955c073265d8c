// SPDX-License-Identifier: MIT
// Charts of measured curves, as SVG.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace rtev::bench {

/// A curve of positive values. Both axes are logarithmic.
struct Curve {
  std::string title;  ///< "processes, 1 M events/s in all"
  std::string unit;   ///< of y
  std::vector<std::pair<double, double>> points;
};

/// A panel for each curve, several in a row. Without a background, in colours for white and for black ones.
void write_svg(std::ostream& out, const std::vector<Curve>& curves);

}  // namespace rtev::bench
