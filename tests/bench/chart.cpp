// SPDX-License-Identifier: MIT
#include "bench/chart.hpp"

#include <fmt/core.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ostream>
#include <string_view>

namespace rtev::bench {
namespace {

constexpr std::size_t panels_in_a_row = 3;
constexpr double panel_width = 300, panel_height = 220;
// Of the plot in its panel.
constexpr double left = 46, right = 20, top = 40, bottom = 30;
/// Room for the values that are written beside the first and the highest point.
constexpr double beside = 18;

/// Whole powers of ten around values, at least one decade.
struct Axis {
  int first, last;  ///< exponents
  double from, to;  ///< in pixels

  Axis(double least, double most, double from_pixel, double to_pixel)
      : first(static_cast<int>(std::floor(std::log10(least)))),
        last(std::max(first + 1, static_cast<int>(std::ceil(std::log10(most))))),
        from(from_pixel),
        to(to_pixel) {}

  double place(double value) const { return from + (to - from) * (std::log10(value) - first) / (last - first); }
};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  return result;
}

/// "0.1", "25.1", "300", "10k", "20M".
std::string brief(double value) {
  if (value >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.3g}k", value / 1e3);
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

void write_panel(std::ostream& out, const Curve& curve) {
  const auto [least_x, most_x] = std::ranges::minmax(curve.points, {}, &std::pair<double, double>::first);
  const auto [least_y, most_y] = std::ranges::minmax(curve.points, {}, &std::pair<double, double>::second);
  const Axis x(least_x.first, most_x.first, left + beside, panel_width - right);
  const Axis y(least_y.second, most_y.second, panel_height - bottom, top + beside);
  fmt::print(out, "<text class=\"title\" x=\"{}\" y=\"14\">{}</text>\n<text x=\"{}\" y=\"29\">{}</text>\n", 4,
             escaped(curve.title), 4, escaped(curve.unit));
  for (int exponent = x.first; exponent <= x.last; ++exponent) {
    const double value = std::pow(10, exponent), place = x.place(value);
    fmt::print(
        out, "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text class=\"middle\" x=\"{0:.1f}\" y=\"{3}\">{4}</text>\n",
        place, top, panel_height - bottom, panel_height - bottom + 15, brief(value));
  }
  for (int exponent = y.first; exponent <= y.last; ++exponent) {
    const double value = std::pow(10, exponent), place = y.place(value);
    fmt::print(out,
               "<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/><text class=\"end\" x=\"{3}\" y=\"{4:.1f}\">{5}</text>\n",
               left, place, panel_width - right, left - 5, place + 4, brief(value));
  }
  std::string path;
  for (const auto& [at, value] : curve.points)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', x.place(at), y.place(value));
  fmt::print(out, "<path class=\"curve\" d=\"{}\"/>\n", path);
  for (const auto& [at, value] : curve.points) {
    fmt::print(
        out,
        "<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"3\"/><text class=\"value\" x=\"{0:.1f}\" y=\"{2:.1f}\">{3}</text>\n",
        x.place(at), y.place(value), y.place(value) - 7, brief(value));
  }
}

}  // namespace

void write_svg(std::ostream& out, const std::vector<Curve>& curves) {
  const std::size_t rows = (curves.size() + panels_in_a_row - 1) / panels_in_a_row;
  const std::size_t columns = std::min(curves.size(), panels_in_a_row);
  fmt::print(out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
             "font-size=\"11\">\n",
             panel_width * static_cast<double>(columns), panel_height * static_cast<double>(rows));
  // Greys and a blue that have contrast to white and to black.
  out << "<style>text{fill:#808080}.title{font-weight:bold;font-size:12px}.middle,.value{text-anchor:middle}"
         ".end{text-anchor:end}.grid{stroke:#808080;stroke-opacity:.35}.curve{fill:none;stroke:#3b8eea;stroke-width:2}"
         "circle,.value{fill:#3b8eea}</style>\n";
  for (std::size_t i = 0; i < curves.size(); ++i) {
    fmt::print(out, "<g transform=\"translate({} {})\">\n", panel_width * static_cast<double>(i % panels_in_a_row),
               panel_height * static_cast<double>(i / panels_in_a_row));
    write_panel(out, curves[i]);
    out << "</g>\n";
  }
  out << "</svg>\n";
}

}  // namespace rtev::bench
