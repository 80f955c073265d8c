// SPDX-License-Identifier: MIT
#include "unwind/vdso.hpp"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/file_io.hpp"
#include "unwind/object_tables_builder.hpp"

namespace rtev {
namespace {

/// Size of the image by its headers. The kernel's own are believed; the bound is for what it may become.
std::size_t image_bytes(const std::byte* image) {
  constexpr std::size_t max_image = 1u << 20;
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  std::size_t end = header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, image + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD) end = std::max(end, segment.p_offset + segment.p_filesz);
  }
  return std::min(end, max_image);
}

}  // namespace

Result<ObjectTables> vdso_tables() {
  constexpr const char* failure = "cannot read the vDSO";
  const std::uint64_t address = ::getauxval(AT_SYSINFO_EHDR);
  if (address == 0) return std::unexpected(Error{failure, {}, "the kernel has none"});
  const auto* const image = reinterpret_cast<const std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
  const std::size_t size = image_bytes(image);
  const UniqueFd file{::memfd_create("rtev-vdso", MFD_CLOEXEC)};
  if (!file) return errno_error(errno, failure);
  const Written written =
      write_all(file.get(), size, [&](std::size_t done) { return ::write(file.get(), image + done, size - done); });
  if (written.code != 0) return errno_error(written.code, failure);
  auto bytes = build_object_tables(file.get());
  if (!bytes) return std::unexpected(std::move(bytes.error()));
  return ObjectTables::from_bytes(std::move(*bytes));
}

}  // namespace rtev
