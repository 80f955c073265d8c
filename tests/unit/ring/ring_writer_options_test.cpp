// SPDX-License-Identifier: MIT
// Options of a RingWriter, and those that the environment sets.
#include <sys/resource.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "ring/layout.hpp"
#include "unit/ring/writer_fixture.hpp"

namespace rtev::test {
namespace {

class RingWriterOptions : public WriterTest {
 protected:
  RingWriterOptions() {
    for (const char* name : {"OCAML_RUNTIME_EVENTS_START", "OCAML_RUNTIME_EVENTS_DIR", "OCAML_RUNTIME_EVENTS_PRESERVE",
                             "OCAMLRUNPARAM", "CAMLRUNPARAM"}) {
      const char* value = std::getenv(name);
      before_[name] = value != nullptr ? std::optional<std::string>(value) : std::nullopt;
      ::unsetenv(name);
    }
  }
  ~RingWriterOptions() override {
    for (const auto& [name, value] : before_) value ? set(name, *value) : static_cast<void>(::unsetenv(name.c_str()));
  }
  static void set(const std::string& name, const std::string& value) { ::setenv(name.c_str(), value.c_str(), 1); }
  static Options with_parameters(const std::string& list) {
    set("OCAMLRUNPARAM", list);
    return Options::from_environment();
  }
  std::string refusal(const Options& options) const {
    const auto writer = RingWriter::create(options);
    if (writer) return "";
    EXPECT_NE(writer.error().hint, "");
    return writer.error().message();
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(RingWriterOptions, EmptyEnvironmentGivesDefaults) {
  const auto options = Options::from_environment();
  EXPECT_FALSE(options.start);
  EXPECT_FALSE(options.preserve);
  EXPECT_EQ(options.directory, "");
  EXPECT_EQ(options.domains, 128u);
  EXPECT_EQ(options.log2_words, 16u);
}

TEST_F(RingWriterOptions, PresenceOfAVariableCounts) {
  set("OCAML_RUNTIME_EVENTS_START", "");
  set("OCAML_RUNTIME_EVENTS_PRESERVE", "0");
  set("OCAML_RUNTIME_EVENTS_DIR", dir_.path());
  set("OCAMLRUNPARAM", "e=7,d=3");  // the program sets the number of domains
  const auto options = Options::from_environment();
  EXPECT_TRUE(options.start);
  EXPECT_TRUE(options.preserve);
  EXPECT_EQ(options.directory, dir_.path());
  make(options);
  EXPECT_EQ(std::filesystem::file_size(path()), 64 + 128 * (80 + 128 * 8) + (1 << 20) + sizeof(ProducerMark));
}

TEST_F(RingWriterOptions, Parameters) {
  const std::pair<const char*, unsigned> cases[] = {
      {"", 16},
      {"e=20", 20},
      {"v=0x400,e=0x14,d=0x10,b", 20},
      {"e=1k", 1024},
      {"e=5,e=6", 6},
      {"e=9,e=junk", 9},
      {"e=,e==3,e", 16},
      {"e=12x,e=-1", 16},
      {"ee=12,s=e=12", 16},
      {",,e=10,,", 10},
      {"e=0x", 16},
      {"e=99999999999999999999999", UINT32_MAX},
      {"e=18446744073709551615G", UINT32_MAX},
      {"e=4294967297", UINT32_MAX},
  };
  for (const auto& [list, log2_words] : cases) EXPECT_EQ(with_parameters(list).log2_words, log2_words) << list;
}

TEST_F(RingWriterOptions, OlderNameOfTheParameters) {
  set("CAMLRUNPARAM", "e=11");
  EXPECT_EQ(Options::from_environment().log2_words, 11u);
  EXPECT_EQ(with_parameters("d=2").log2_words, 16u) << "read only if the other one is not set";
}

TEST_F(RingWriterOptions, SecondWriterInOneDirectoryIsAnError) {
  const RingWriter first = make(small());
  EXPECT_NE(refusal(small()).find("has created it already"), std::string::npos);
  EXPECT_TRUE(RingReader::open(path())) << "the first writer's";
}

TEST_F(RingWriterOptions, FileSizeLimitIsAnErrorAndNotASignal) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit low{.rlim_cur = 100'000, .rlim_max = old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  const std::string refused = refusal(small());
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_NE(refused.find("File too large"), std::string::npos) << refused;
  EXPECT_TRUE(files().empty());
}

TEST_F(RingWriterOptions, OutOfRangeIsAnError) {
  auto options = small();
  for (const std::uint32_t domains : {0u, 4097u, UINT32_MAX}) {
    options.domains = domains;
    EXPECT_NE(refusal(options).find(std::to_string(domains) + " domains"), std::string::npos) << domains;
  }
  options.domains = 1;
  for (const unsigned log2_words : {0u, 5u, 25u, UINT32_MAX}) {
    options.log2_words = log2_words;
    EXPECT_NE(refusal(options).find("2^" + std::to_string(log2_words)), std::string::npos) << log2_words;
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(RingWriterOptions, BoundsAreInRange) {
  for (const auto& [domains, log2_words] : {std::pair{1u, 6u}, {1u, 24u}, {4096u, 6u}, {4096u, 16u}}) {
    auto options = small();
    options.domains = domains;
    options.log2_words = log2_words;
    RingWriter writer = make(options);
    EXPECT_EQ(writer.domain(domains - 1).begin(Phase{1}), WriteStatus::written);
    auto reader = RingReader::open(path());
    ASSERT_TRUE(reader) << reader.error().message();
    EXPECT_EQ(reader->layout().rings, domains);
    EXPECT_EQ(reader->layout().ring_words, std::uint64_t{1} << log2_words);
    EXPECT_EQ(reader->poll([](const Batch&) {}).events, 2u);
  }
}

}  // namespace
}  // namespace rtev::test
