#include "host_storage.h"

#include <fmt/core.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "host_kernel_file.h"

namespace headrace::profile {
namespace {

/// FUSE, then those of clients of NFS, Ceph, SMB, 9p, virtio-fs and Lustre.
constexpr std::string_view kFileSystemFunctions[] = {
    "request_wait_answer", "fuse_", "nfs",       "rpc_wait",   "ceph_", "cifs_",  "smb",
    "wait_for_response",   "p9_",   "virtio_fs", "cl_sync_io", "ldlm_", "ptlrpc_"};
constexpr std::string_view kFuse = "request_wait_answer";

/// Numbers in segments: new ones go before the last, with a new layout version.
constexpr std::string_view kTypes[] = {
    "ext4", "ext3", "xfs",   "btrfs", "zfs",  "f2fs",     "bcachefs", "overlay", "squashfs", "tmpfs",
    "nfs",  "nfs4", "cifs",  "smb3",  "ceph", "lustre",   "gpfs",     "beegfs",  "pvfs2",    "9p",
    "afs",  "gfs2", "ocfs2", "fuse",  "vfat", "virtiofs", "ntfs3",    "iso9660", "other"};

/// System calls whose first argument is an open file.
constexpr long kTakeFile[] = {SYS_read,  SYS_pread64, SYS_readv, SYS_preadv,    SYS_write,
                              SYS_fsync, SYS_lseek,   SYS_fstat, SYS_getdents64};

std::string read_of(int pid, int tid, std::string_view file) {
  std::array<char, 512> text;
  return std::string(KernelFile::read_once(fmt::format("/proc/{}/task/{}/{}", pid, tid, file).c_str(), text));
}

/// -1 if the thread's system call is none of those, or cannot be seen.
std::int64_t open_file_of(std::string_view syscall) noexcept {
  const char* const end = syscall.data() + syscall.size();
  long number = -1;
  const auto [after, error] = std::from_chars(syscall.data(), end, number);
  constexpr std::string_view kArgument = " 0x";
  const std::string_view rest(after, static_cast<std::size_t>(end - after));
  if (error != std::errc() || !rest.starts_with(kArgument)) return -1;
  if (std::find(std::begin(kTakeFile), std::end(kTakeFile), number) == std::end(kTakeFile)) return -1;
  std::int64_t file = -1;
  const auto read = std::from_chars(after + kArgument.size(), end, file, 16);
  return read.ec == std::errc() ? file : -1;
}

std::int64_t mount_of(std::string_view fdinfo) noexcept {
  constexpr std::string_view kField = "mnt_id:";
  const std::size_t at = fdinfo.find(kField);
  if (at == std::string_view::npos) return -1;
  const std::string_view rest = fdinfo.substr(at + kField.size());
  const std::size_t digit = std::min(rest.find_first_not_of(" \t"), rest.size());
  std::int64_t id = -1;
  const auto read = std::from_chars(rest.data() + digit, rest.data() + rest.size(), id);
  return read.ec == std::errc() ? id : -1;
}

}  // namespace

bool waits_for_files(std::string_view wchan) noexcept {
  return std::any_of(std::begin(kFileSystemFunctions), std::end(kFileSystemFunctions),
                     [&](std::string_view start) { return wchan.starts_with(start); });
}

std::string_view mount_type(std::string_view mountinfo, std::int64_t id) noexcept {
  constexpr std::string_view kDash = " - ";
  for (std::size_t at = 0; at < mountinfo.size();) {
    const std::size_t end = std::min(mountinfo.find('\n', at), mountinfo.size());
    const std::string_view line = mountinfo.substr(at, end - at);
    at = end + 1;
    std::int64_t number = -1;
    std::from_chars(line.data(), line.data() + line.size(), number);
    const std::size_t dash = line.find(kDash);
    if (number != id || dash == std::string_view::npos) continue;
    const std::string_view type = line.substr(dash + kDash.size());
    return type.substr(0, type.find_first_of(". "));
  }
  return {};
}

std::string sleeps_in(int pid, int tid) { return read_of(pid, tid, "wchan"); }

std::string file_system_in_use(int pid, int tid) {
  const std::int64_t file = open_file_of(read_of(pid, tid, "syscall"));
  if (file >= 0) {
    const std::int64_t mount = mount_of(read_of(pid, tid, fmt::format("fdinfo/{}", file)));
    const std::string mounts = KernelFile::read_whole(fmt::format("/proc/{}/mountinfo", pid).c_str());
    if (mount >= 0) return std::string(mount_type(mounts, mount));
  }
  return sleeps_in(pid, tid).starts_with(kFuse) ? "fuse" : "";
}

std::uint32_t file_system_code(std::string_view type) noexcept {
  if (type.empty()) return 0;
  const auto known = std::find(std::begin(kTypes), std::end(kTypes) - 1, type);
  return static_cast<std::uint32_t>(known - std::begin(kTypes)) + 1;
}

std::string_view file_system_name(std::uint32_t code) noexcept {
  return code >= 1 && code <= std::size(kTypes) ? kTypes[code - 1] : std::string_view();
}

}  // namespace headrace::profile
