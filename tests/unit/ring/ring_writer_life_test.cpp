// SPDX-License-Identifier: MIT
// The file of a RingWriter from start to stop.
#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "support/ring_file_builder.hpp"
#include "unit/ring/writer_fixture.hpp"

namespace rtev::test {
namespace {

using Names = std::vector<std::string>;

class RingWriterLife : public WriterTest {
 protected:
  std::string own_name() const { return path().filename(); }
};

std::string contents(const std::filesystem::path& path, std::uint64_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

TEST_F(RingWriterLife, FileHasOcamlsLayout) {
  RingWriter writer = make({.directory = dir_.path()});
  constexpr std::uint64_t ocamls_size = 68'167'744;
  const std::array<std::uint64_t, 8> fields{1, 128, 80, 524'288, 65'536, 64, 10'304, 67'119'168};
  EXPECT_EQ(contents(path(), 0, 64), std::string(reinterpret_cast<const char*>(fields.data()), 64));
  struct stat status{};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode, S_IFREG | 0600u);
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), ocamls_size + sizeof(ProducerMark));
  EXPECT_LT(status.st_blocks * 512, 64 * 1024) << "unwritten pages take no space";

  // After the part that OCaml's readers use.
  ProducerMark mark;
  const std::string bytes = contents(path(), ocamls_size, sizeof mark + 1);
  ASSERT_EQ(bytes.size(), sizeof mark);
  std::memcpy(&mark, bytes.data(), sizeof mark);
  EXPECT_EQ(bytes.substr(0, 8), "librtev!");
  EXPECT_EQ(mark.version, 1u);
  EXPECT_EQ(mark.family, 1u);
  EXPECT_STREQ(mark.producer, "librtev");
  EXPECT_EQ(files(), Names{own_name()}) << "nothing else";
}

TEST_F(RingWriterLife, FileOfOcaml50HasNeitherNamesNorMark) {
  auto options = small();
  options.format = RingWriter::Format::before_5_1;
  RingWriter writer = make(options);
  EXPECT_EQ(std::filesystem::file_size(path()), 64 + 2 * (80 + 256 * 8u));
  CheckedReader reader(path());
  EXPECT_EQ(reader.reader().layout().has_names, false);
  EXPECT_EQ(reader.reader().producer(), std::nullopt);
}

TEST_F(RingWriterLife, ReaderFindsTheProducer) {
  for (const Family family : {Family::before_5_3, Family::since_5_3}) {
    auto options = small();
    options.family = family;
    RingWriter writer = make(options);
    EXPECT_EQ(CheckedReader(path()).reader().producer(), (Producer{.name = "librtev", .family = family}));
  }
}

TEST_F(RingWriterLife, NothingIsWrittenBetweenPauseAndResume) {
  RingWriter writer = make(small());
  DomainWriter events = writer.domain(0);
  events.begin(Phase{1});
  writer.pause();
  writer.pause();
  EXPECT_EQ(events.begin(Phase{2}), WriteStatus::off);
  writer.resume(1);
  writer.resume();
  events.begin(Phase{3});
  EXPECT_EQ(lines_of(path(), 0), (Lines{ring_start(), "begin 1 0", "lifecycle 2 0", "begin 3 0"}));
  EXPECT_EQ(lines_of(path(), 1), Lines{"lifecycle 3 0"});
}

TEST_F(RingWriterLife, CanBePausedBeforeTheStart) {
  auto options = small();
  options.start = false;
  RingWriter writer = make(options);
  EXPECT_EQ(writer.path(), "");
  EXPECT_EQ(files(), Names{});
  writer.pause();
  ASSERT_TRUE(writer.start(1));
  EXPECT_EQ(writer.domain(0).begin(Phase{1}), WriteStatus::off);
  writer.resume(1);
  EXPECT_EQ(writer.domain(0).begin(Phase{2}), WriteStatus::written);
  EXPECT_EQ(lines_of(path(), 0), Lines{"begin 2 0"});
  EXPECT_EQ(lines_of(path(), 1), (Lines{ring_start(), "lifecycle 3 0"}));
}

TEST_F(RingWriterLife, StopRemovesTheFileAndWritesAnEvent) {
  RingWriter writer = make(small());
  CheckedReader reader(path());
  EXPECT_EQ(writer.path(), path());
  writer.stop();
  EXPECT_EQ(files(), Names{});
  EXPECT_EQ(writer.domain(0).begin(Phase{1}), WriteStatus::off);
  writer.pause();
  writer.resume();
  writer.stop();
  reader.poll();
  ASSERT_EQ(reader.seen().size(), 2u);
  EXPECT_EQ(line_of(reader.seen().back()), "lifecycle 1 0");
  EXPECT_EQ(reader.words().delivered, 5u) << "the only lifecycle message without a value";
  EXPECT_EQ(writer.words_written(0), 5u);
}

TEST_F(RingWriterLife, DestructorStops) {
  CheckedReader reader = [&] {
    RingWriter writer = make(small());
    return CheckedReader(path());
  }();
  EXPECT_EQ(files(), Names{});
  reader.poll();
  EXPECT_EQ(line_of(reader.seen().back()), "lifecycle 1 0");
}

TEST_F(RingWriterLife, PreservedFileStays) {
  auto options = small();
  options.preserve = true;
  make(options).domain(0).begin(Phase{1});
  EXPECT_EQ(files(), Names{own_name()});
  EXPECT_EQ(lines_of(path(), 0), (Lines{ring_start(), "begin 1 0", "lifecycle 1 0"}));
}

TEST_F(RingWriterLife, StopKeepsTheFileOfAnotherProgram) {
  RingWriter writer = make(small());
  std::filesystem::remove(path());
  std::ofstream(path()) << "another's";
  writer.stop();
  EXPECT_EQ(contents(path(), 0, 100), "another's");
}

TEST_F(RingWriterLife, StopToleratesARemovedFile) {
  RingWriter writer = make(small());
  std::filesystem::remove(path());
  EXPECT_EQ(writer.domain(0).begin(Phase{1}), WriteStatus::written);
  writer.stop();
  EXPECT_EQ(files(), Names{});
}

TEST_F(RingWriterLife, StartsOnce) {
  RingWriter writer = make(small());
  EXPECT_TRUE(writer.start());
  EXPECT_EQ(lines_of(path(), 0), Lines{ring_start()});
  writer.stop();
  const auto again = writer.start();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().why, "they were stopped before");
  EXPECT_NE(again.error().hint, "");
}

TEST_F(RingWriterLife, CanBeMovedWhileDomainsAreInUse) {
  RingWriter first = make(small());
  DomainWriter events = first.domain(0);
  RingWriter second = std::move(first);
  EXPECT_EQ(events.begin(Phase{1}), WriteStatus::written);
  auto elsewhere = small();
  const TempDir other;
  elsewhere.directory = other.path();
  RingWriter third = make(elsewhere);
  third = std::move(second);
  EXPECT_TRUE(std::filesystem::is_empty(other.path())) << "the assigned-to writer has stopped";
  EXPECT_EQ(events.begin(Phase{2}), WriteStatus::written);
  EXPECT_EQ(lines_of(path(), 0), (Lines{ring_start(), "begin 1 0", "begin 2 0"}));
}

TEST_F(RingWriterLife, RelativeDirectoryIsResolvedAtCreation) {
  const auto before = std::filesystem::current_path();
  std::filesystem::create_directory(dir_ / "sub");
  for (const auto& [here, directory] : {std::pair{"", "sub"}, {"sub", ""}, {"sub", "."}, {"", "sub/"}}) {
    std::filesystem::current_path(dir_ / here);
    auto options = small();
    options.directory = directory;
    RingWriter writer = make(options);
    std::filesystem::current_path("/");
    EXPECT_TRUE(std::filesystem::exists(dir_ / "sub" / own_name())) << directory;
    EXPECT_TRUE(std::filesystem::equivalent(writer.path(), dir_ / "sub" / own_name()));
    writer.stop();
    EXPECT_TRUE(std::filesystem::is_empty(dir_ / "sub")) << directory;
  }
  std::filesystem::current_path(before);
}

TEST_F(RingWriterLife, DirectoryBehindALinkIsFollowed) {
  std::filesystem::create_directories(dir_ / "deep/er");
  std::filesystem::create_directory_symlink(dir_ / "deep/er", dir_ / "link");
  auto options = small();
  options.directory = dir_ / "link/..";
  RingWriter writer = make(options);
  EXPECT_TRUE(std::filesystem::exists(dir_ / "deep" / own_name()));
}

TEST_F(RingWriterLife, StaleFileIsReplacedAndItsReaderContinues) {
  {
    RingFileBuilder stale(path(), {.domains = 3, .words_log2 = 6});
    stale.append(2, make::begin(5, 1));
    stale.set_name(0, "of old");
  }
  CheckedReader old_reader(path());
  RingWriter writer = make(small());
  writer.domain(0).begin(Phase{2});
  EXPECT_EQ(lines_of(path(), 0), (Lines{ring_start(), "begin 2 0"}));
  EXPECT_EQ(CheckedReader(path()).reader().user_event_name(0), "") << "no content of the old file is left";
  old_reader.poll();
  EXPECT_EQ(old_reader.take_times(), std::vector<std::uint64_t>{5});
  EXPECT_FALSE(old_reader.reader().truncated());
  EXPECT_EQ(old_reader.reader().user_event_name(0), "of old");
}

TEST_F(RingWriterLife, LinkInItsPlaceIsReplacedNotFollowed) {
  std::ofstream(dir_ / "precious") << "precious";
  std::filesystem::create_symlink(dir_ / "precious", path());
  RingWriter writer = make(small());
  EXPECT_FALSE(std::filesystem::is_symlink(path()));
  EXPECT_EQ(contents(dir_ / "precious", 0, 100), "precious");
}

TEST_F(RingWriterLife, UnusableDirectoryIsAnError) {
  const auto failure = [&](const std::filesystem::path& directory) {
    auto options = small();
    options.directory = directory;
    const auto writer = RingWriter::create(options);
    return writer ? Error{} : writer.error();
  };
  EXPECT_EQ(failure(dir_ / "missing").code, ENOENT);
  EXPECT_NE(failure(dir_ / "missing").hint, "");
  EXPECT_EQ(failure(dir_ / "missing").subject, (dir_ / "missing" / own_name()).string());
  std::ofstream(dir_ / "file") << "";
  EXPECT_EQ(failure(dir_ / "file").code, ENOTDIR);
  EXPECT_NE(failure(dir_ / std::string(300, 'n')).code, 0);
  EXPECT_NE(failure("/proc").code, 0);
  // A directory that cannot be replaced has the name of the ring file.
  std::filesystem::create_directories(path() / "x");
  EXPECT_EQ(failure(dir_.path()).code, EISDIR);
  EXPECT_EQ(files(), (Names{own_name(), "file"})) << "no temporary file is left";
}

TEST_F(RingWriterLife, StartMayBeRetried) {
  auto options = small();
  options.directory = dir_ / "later";
  options.start = false;
  RingWriter writer = make(options);
  EXPECT_FALSE(writer.start());
  EXPECT_EQ(writer.domain(0).begin(Phase{1}), WriteStatus::off);
  std::filesystem::create_directory(dir_ / "later");
  EXPECT_TRUE(writer.start());
  EXPECT_EQ(writer.domain(0).begin(Phase{1}), WriteStatus::written);
}

}  // namespace
}  // namespace rtev::test
