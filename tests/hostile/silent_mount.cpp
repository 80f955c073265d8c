// SPDX-License-Identifier: MIT
#include "silent_mount.hpp"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "attacker.hpp"

namespace rtev::hostile {
namespace {

constexpr std::uint64_t file_bytes = 64u << 20;
constexpr std::size_t page_bytes = 4096;

class Server {
 public:
  Server(int device, pid_t user, const std::string& content) : device_(device), user_(user), content_(content) {}

  void run() {
    std::vector<char> request(1 << 18);
    while (true) {
      const ssize_t got = ::read(device_, request.data(), request.size());
      if (got < 0 && (errno == EINTR || errno == ENOENT)) continue;
      if (got <= 0) return;
      fuse_in_header header{};
      std::memcpy(&header, request.data(), sizeof header);
      if (header.opcode == FUSE_INIT)
        initialise(header);
      else if (header.pid == static_cast<__u32>(user_) || header.nodeid == FUSE_ROOT_ID)
        answer(header, request.data() + sizeof header);
    }
  }

 private:
  void initialise(const fuse_in_header& request) const {
    fuse_init_out init{};
    init.major = FUSE_KERNEL_VERSION;
    init.minor = FUSE_KERNEL_MINOR_VERSION;
    init.max_readahead = 1 << 16;
    init.max_write = 1 << 16;
    reply(request, 0, &init, sizeof init);
  }

  void answer(const fuse_in_header& request, const char* arguments) {
    const bool is_own = request.pid == static_cast<__u32>(user_);
    switch (request.opcode) {
      case FUSE_GETATTR: {
        fuse_attr_out attr{};
        attr.attr_valid = 1000;
        attr.attr = attributes(request.nodeid);
        return reply(request, 0, &attr, sizeof attr);
      }
      case FUSE_LOOKUP: {
        if (!is_own) return;
        fuse_entry_out entry{};
        entry.nodeid = next_node_++;
        entry.attr_valid = entry.entry_valid = 1000;
        entry.attr = attributes(entry.nodeid);
        return reply(request, 0, &entry, sizeof entry);
      }
      case FUSE_OPEN: {
        if (!is_own) return;
        fuse_open_out open{};
        return reply(request, 0, &open, sizeof open);
      }
      case FUSE_READ: {
        if (!is_own) return;
        fuse_read_in read{};
        std::memcpy(&read, arguments, sizeof read);
        std::string bytes(read.size, '\0');
        if (read.offset < content_.size())
          content_.copy(bytes.data(), std::min<std::uint64_t>(read.size, content_.size() - read.offset), read.offset);
        return reply(request, 0, bytes.data(), bytes.size());
      }
      case FUSE_ACCESS:
      case FUSE_RELEASE:
        return is_own ? reply(request, 0, nullptr, 0) : void();
      case FUSE_WRITE:
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;
      default:
        return is_own ? reply(request, -ENOSYS, nullptr, 0) : void();
    }
  }

  static fuse_attr attributes(std::uint64_t node) {
    fuse_attr attr{};
    attr.ino = node;
    attr.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0777 : S_IFREG | 0777;
    attr.size = node == FUSE_ROOT_ID ? 0 : file_bytes;
    attr.nlink = 1;
    attr.blksize = 4096;
    return attr;
  }

  void reply(const fuse_in_header& request, int error, void* data, std::size_t size) const {
    fuse_out_header header{.len = static_cast<__u32>(sizeof header + size), .error = error, .unique = request.unique};
    const std::array<iovec, 2> parts{{{&header, sizeof header}, {data, size}}};
    [[maybe_unused]] const ssize_t put = ::writev(device_, parts.data(), size > 0 ? 2 : 1);
  }
  int device_;
  pid_t user_;
  const std::string& content_;
  std::uint64_t next_node_ = 2;
};

const dev_t fuse_device = makedev(10, 229);

void leave_namespace() {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    fail("cannot leave the mount namespace");
}

/// -1 if none comes.
int receive_descriptor(int socket) {
  char byte = 0;
  iovec data{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) <= 0 || CMSG_FIRSTHDR(&message) == nullptr) return -1;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return descriptor;
}

}  // namespace

SilentMount::SilentMount(std::filesystem::path at, Helper /*helper*/) : at_(std::move(at)) {
  leave_namespace();
  // Everybody may open it on most hosts, and here.
  const std::string device = at_.string() + ".device";
  if (::mknod(device.c_str(), S_IFCHR, fuse_device) != 0 || ::chmod(device.c_str(), 0666) != 0 ||
      ::mount(device.c_str(), "/dev/fuse", nullptr, MS_BIND, nullptr) != 0)
    fail("/dev/fuse");
  become_stranger(at_.parent_path());
  std::filesystem::create_directory(at_);
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) fail("socketpair");
  if (fork_dependent() == 0) {
    ::setenv("_FUSE_COMMFD", std::to_string(ends[1]).c_str(), 1);
    ::execlp("fusermount3", "fusermount3", "--", at_.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  device_ = receive_descriptor(ends[0]);
  ::close(ends[0]);
  ::wait(nullptr);
  if (device_ < 0) fail("fusermount3");
}

SilentMount::SilentMount(std::filesystem::path at) : at_(std::move(at)) {
  leave_namespace();
  std::filesystem::create_directory(at_);
  device_ = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device_ < 0) fail("/dev/fuse");
  const std::string options = "fd=" + std::to_string(device_) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
  if (::mount("hostile", at_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0) fail("mount");
}

void SilentMount::serve(pid_t user, const std::string& content) const {
  if (fork_dependent() == 0) {
    if (::geteuid() == 0) become_stranger(at_.parent_path());  // or the attacker could not end it
    Server(device_, user, content).run();
    ::_exit(0);
  }
  leave();
}

void SilentMount::leave() const {
  ::close(device_);
}

MapLock::MapLock(const SilentMount& mount) {
  const int file = ::open((mount / "lock").c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) fail("cannot open a file");
  void* const mapping = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapping == MAP_FAILED) fail("mmap");
  mapping_ = static_cast<volatile int*>(mapping);
  [[maybe_unused]] const int first = *mapping_;  // here, since the file system does not answer another process
  ::close(file);                                 // as long as the page is clean: it would be written now
}

void MapLock::hold() const {
  *mapping_ = 1;
  void* const page = const_cast<int*>(mapping_);
  [[maybe_unused]] void* const replaced =
      ::mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

}  // namespace rtev::hostile
