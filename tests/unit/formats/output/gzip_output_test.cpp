// SPDX-License-Identifier: MIT
#include "formats/output/gzip_output.hpp"

#include <gtest/gtest.h>

#include "formats/output/output.hpp"

namespace rtev {
namespace {

/// The unpacked content of a gzip file, and whether the file is complete.
std::pair<std::string, bool> unpacked(std::string_view bytes) {
  z_stream stream{};
  EXPECT_EQ(::inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  std::string packed(bytes), text(std::size_t{4} << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  const int result = ::inflate(&stream, Z_SYNC_FLUSH);
  text.resize(stream.total_out);
  ::inflateEnd(&stream);
  return {text, result == Z_STREAM_END};
}

std::string many_lines() {
  std::string text;
  for (int i = 0; text.size() < std::size_t{3} << 20; ++i) text += "line " + std::to_string(i * 7919) + "\n";
  return text;
}

TEST(GzipOutput, IsAGzipFile) {
  StringOutput file;
  GzipOutput gzip(file);
  const std::string text = many_lines();
  EXPECT_TRUE(gzip.write(std::string_view(text).substr(0, 1000)));
  EXPECT_TRUE(gzip.write({}));
  EXPECT_TRUE(gzip.write(std::string_view(text).substr(1000)));
  EXPECT_TRUE(gzip.finish());
  EXPECT_EQ(unpacked(file.text()), std::pair(text, true));
  EXPECT_LT(file.text().size(), text.size() / 3);
}

TEST(GzipOutput, IsReadableUpToTheLastSync) {
  StringOutput file;
  GzipOutput gzip(file);
  EXPECT_TRUE(gzip.sync());
  EXPECT_EQ(file.text(), "") << "there is nothing to write";
  gzip.write("first\n");
  gzip.sync();
  const std::size_t synced = file.text().size();
  gzip.sync();
  EXPECT_EQ(file.text().size(), synced);
  gzip.write("second\n");
  EXPECT_EQ(unpacked(file.text()), std::pair(std::string("first\n"), false));
  EXPECT_EQ(unpacked(std::string_view(file.text()).substr(0, synced)).first, "first\n");
  gzip.finish();
  EXPECT_EQ(unpacked(file.text()), std::pair(std::string("first\nsecond\n"), true));
}

class FullOutput final : public Output {
 public:
  bool write(std::string_view) override {
    error_ = Error{.what = "full"};
    return false;
  }
  const std::optional<Error>& error() const override { return error_; }

 private:
  std::optional<Error> error_;
};

TEST(GzipOutput, FailsIfItsOutputFails) {
  FullOutput full;
  GzipOutput gzip(full);
  gzip.write("text");
  EXPECT_FALSE(gzip.sync());
  ASSERT_TRUE(gzip.error());
  EXPECT_EQ(gzip.error()->what, "full");
  EXPECT_FALSE(gzip.write("more"));
  EXPECT_FALSE(gzip.finish());
}

}  // namespace
}  // namespace rtev
