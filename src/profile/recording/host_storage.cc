#include "host_storage.h"

#include <fmt/core.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "headrace/profile/host/kernel_text.h"
#include "host_kernel_file.h"

namespace headrace::profile {
namespace {

/// FUSE, then those of clients of NFS, Ceph, SMB, 9p, virtio-fs and Lustre.
constexpr std::string_view kFileSystemFunctions[] = {
    "request_wait_answer", "fuse_", "nfs",       "rpc_wait",   "ceph_", "cifs_",  "smb",
    "wait_for_response",   "p9_",   "virtio_fs", "cl_sync_io", "ldlm_", "ptlrpc_"};
constexpr std::string_view kFuse = "request_wait_answer";

/// System calls whose first argument is an open file.
constexpr long kTakeFile[] = {SYS_read,  SYS_pread64, SYS_readv, SYS_preadv,    SYS_write,
                              SYS_fsync, SYS_lseek,   SYS_fstat, SYS_getdents64};

std::string read_of(int pid, int tid, std::string_view file) {
  std::array<char, 512> text;
  return std::string(KernelFile::read_once(fmt::format("/proc/{}/task/{}/{}", pid, tid, file).c_str(), text));
}

/// The file that a sleeping system call is about; nothing if it is about none, or cannot be seen.
std::optional<std::uint64_t> open_file_of(std::string_view syscall) noexcept {
  const std::optional<SystemCall> call = parse_system_call(syscall);
  const bool takes_file =
      call && std::find(std::begin(kTakeFile), std::end(kTakeFile), call->number) != std::end(kTakeFile);
  return takes_file ? call->argument : std::nullopt;
}

}  // namespace

bool waits_for_files(std::string_view wchan) noexcept {
  return std::any_of(std::begin(kFileSystemFunctions), std::end(kFileSystemFunctions),
                     [&](std::string_view start) { return wchan.starts_with(start); });
}

std::string sleeps_in(int pid, int tid) { return read_of(pid, tid, "wchan"); }

std::string file_system_in_use(int pid, int tid) {
  if (const auto file = open_file_of(read_of(pid, tid, "syscall"))) {
    const std::string info = read_of(pid, tid, fmt::format("fdinfo/{}", *file));
    if (const auto mount = parse_number_behind(info, "mnt_id:\t"))
      return std::string(
          mount_type(KernelFile::read_whole(fmt::format("/proc/{}/mountinfo", pid).c_str()), *mount));
  }
  return sleeps_in(pid, tid).starts_with(kFuse) ? "fuse" : "";
}

std::string state_of_thread(int pid, int tid) {
  std::array<char, 64> path{};
  std::array<char, 512> text;
  std::snprintf(path.data(), path.size(), "/proc/%d/task/%d/stat", pid, tid);
  const auto stat = parse_process_stat(KernelFile::read_once(path.data(), text), tick_ns());
  if (!stat) return {};
  if (stat->state == 'R') return "runs";
  const std::string place = sleeps_in(pid, tid);
  const std::string in = place.empty() || place == "0" ? "" : " in " + place;
  if (stat->state == 'D') return "waits for storage" + in;
  if (stat->state == 'T' || stat->state == 't') return "is stopped";
  return "sleeps" + in;
}

}  // namespace headrace::profile
