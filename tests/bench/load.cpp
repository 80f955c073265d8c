// SPDX-License-Identifier: MIT
#include "bench/load.hpp"

#include <signal.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace rtev::bench {
namespace {

test::Command command(const std::filesystem::path& directory, const std::vector<std::string>& arguments) {
  test::Command command{.argv = {RTEV_LOAD, "--directory", directory.string(), "--names", Load::name, "--wait"}};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace

Load::Load(const std::vector<std::string>& arguments) : process_(command(directory_.path(), arguments), "ready") {
  for (const auto& file : std::filesystem::directory_iterator(directory_.path()))
    pids_.push_back(std::stoi(file.path().stem()));
}

Load::Written Load::wait() {
  const test::Outcome outcome = process_.wait();
  const auto json = nlohmann::json::parse(outcome.out.substr(outcome.out.find('{')), nullptr, false);
  if (outcome.status.code() != 0 || json.is_discarded()) throw std::runtime_error("rtev-load failed: " + outcome.err);
  const auto& total = json.at("total");
  return {.events = total.at("total"),
          .words = total.at("words"),
          .events_per_second = total.at("events_per_second").get<double>()};
}

Load::Written Load::interrupt() {
  process_.signal(SIGINT);
  return wait();
}

}  // namespace rtev::bench
