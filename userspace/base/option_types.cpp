// SPDX-License-Identifier: MIT
#include "base/option_types.hpp"

#include "base/escape.hpp"

namespace rtev {
namespace {

std::string refusal(const std::string& text, const std::string& expected) {
  return "'" + escaped(text) + "' is not " + expected;
}

}  // namespace

CLI::Validator expects(std::string expected, std::function<bool(const std::string& text)> accepts) {
  return {[expected = std::move(expected), accepts = std::move(accepts)](const std::string& text) {
            return accepts(text) ? std::string() : refusal(text, expected);
          },
          ""};
}

CLI::Option* add_parsed_option(CLI::App& app, const std::string& name, const std::string& type,
                               const std::string& expected, std::function<bool(const std::string& text)> accept,
                               const std::string& help) {
  const auto parse = [long_name = name.substr(name.find("--")), expected,
                      accept = std::move(accept)](const CLI::results_t& texts) {
    for (const std::string& text : texts)
      if (!accept(text)) throw CLI::ValidationError(long_name, refusal(text, expected));
    return true;
  };
  return app.add_option(name, parse, help)->type_name(type);
}

}  // namespace rtev
