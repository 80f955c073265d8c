// SPDX-License-Identifier: MIT
#include "live/initramfs.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <iterator>
#include <sstream>
#include <stdexcept>

#include "live/child_process.hpp"

namespace rtev::test {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t alignment = 4;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Shared libraries of a program, as listed by the dynamic linker; empty for a static one.
std::set<fs::path> libraries(const fs::path& program) {
  std::istringstream words(run({.argv = {"ldd", program}}).out);
  std::set<fs::path> found;
  for (std::string word; words >> word;)
    if (word.starts_with('/') && fs::is_regular_file(word)) found.insert(word);
  return found;
}

}  // namespace

Initramfs::Initramfs(const fs::path& archive) : out_(archive, std::ios::binary) {
  // The same layout as on the distributions the programs come from, where libraries are found by either path.
  for (const char* folder : {"bin", "sbin", "lib", "lib64"}) add_link(fs::path("/") / folder, fs::path("usr") / folder);
}

void Initramfs::add(const fs::path& path, unsigned mode, std::string_view content) {
  if (!added_.insert(path).second) return;
  const std::string name = path.relative_path();
  const auto pad = [&] {
    while (static_cast<std::size_t>(out_.tellp()) % alignment != 0) out_.put('\0');
  };
  constexpr unsigned owner = 0, links = 1, time = 0, device = 0, checksum = 0;
  out_ << fmt::format("070701{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}", ++inode_,
                      mode, owner, owner, links, time, content.size(), device, device, device, device, name.size() + 1,
                      checksum)
       << name << '\0';
  pad();
  out_ << content;
  pad();
}

void Initramfs::add_folders_of(const fs::path& path) {
  fs::path folder = "/";
  for (const fs::path& part : path.parent_path().relative_path()) add(folder /= part, S_IFDIR | 0755, {});
}

void Initramfs::add_file(const fs::path& path, const fs::path& source) {
  fs::path place = path;
  // Follows the links that the constructor made; they must not become folders.
  const std::string top = std::next(path.begin())->string();
  if (top == "bin" || top == "sbin" || top.starts_with("lib")) place = "/usr" + path.string();
  add_folders_of(place);
  add(place, S_IFREG | static_cast<unsigned>(fs::status(source).permissions()), contents(source));
}

void Initramfs::add_text(const fs::path& path, std::string_view text) {
  add_folders_of(path);
  add(path, S_IFREG | 0644, text);
}

void Initramfs::add_link(const fs::path& path, const fs::path& target) {
  add_folders_of(path);
  add(path, S_IFLNK | 0777, target.string());
}

void Initramfs::add_program(const fs::path& path, const fs::path& source) {
  add_file(path, source);
  for (const fs::path& library : libraries(source)) add_file(library, library);
}

void Initramfs::finish() {
  add("/TRAILER!!!", 0, {});
  out_.close();
  if (!out_) throw std::runtime_error("cannot write the initramfs");
}

}  // namespace rtev::test
