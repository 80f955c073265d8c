// SPDX-License-Identifier: MIT
// Every fuzz target on every input of its corpus: well-formed ones, and those that once failed. A broken promise ends
// the process, and its name is the last that was printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "fuzz/fuzzing.hpp"
#include "support/files.hpp"

namespace rtev::fuzz {
namespace {

namespace fs = std::filesystem;

struct CorpusFile {
  Target target;
  fs::path path;
};

std::vector<CorpusFile> corpus() {
  std::vector<CorpusFile> files;
  for (const Target& target : all_targets()) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(fs::path(RTEV_FUZZ_CORPUS) / target.name, error))
      files.push_back({target, entry.path()});
  }
  std::ranges::sort(files, {}, &CorpusFile::path);
  return files;
}

std::string name_of(const testing::TestParamInfo<CorpusFile>& info) {
  std::string name = std::string(info.param.target.name) + "_" + info.param.path.filename().string();
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class FuzzCorpus : public testing::TestWithParam<CorpusFile> {};

TEST_P(FuzzCorpus, KeepsThePromises) {
  const std::string input = test::read_file(GetParam().path);
  GetParam().target.run({reinterpret_cast<const std::uint8_t*>(input.data()), input.size()});
}

INSTANTIATE_TEST_SUITE_P(Inputs, FuzzCorpus, testing::ValuesIn(corpus()), name_of);

TEST(FuzzTargets, EachHasACorpusAndSurvivesInputsOfNearlyNothing) {
  for (const Target& target : all_targets()) {
    EXPECT_TRUE(fs::exists(fs::path(RTEV_FUZZ_CORPUS) / target.name)) << target.name;
    for (const std::string& input : {std::string(), std::string(1, '\0'), std::string(9, '\xff')})
      target.run({reinterpret_cast<const std::uint8_t*>(input.data()), input.size()});
  }
}

}  // namespace
}  // namespace rtev::fuzz
