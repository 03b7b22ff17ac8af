#include "profile/file_systems.h"

#include <algorithm>
#include <iterator>

namespace headrace::profile {
namespace {

/// Numbers in segments: new ones go before the last, with a new layout version.
constexpr std::string_view kTypes[] = {
    "ext4", "ext3", "xfs",   "btrfs", "zfs",  "f2fs",     "bcachefs", "overlay", "squashfs", "tmpfs",
    "nfs",  "nfs4", "cifs",  "smb3",  "ceph", "lustre",   "gpfs",     "beegfs",  "pvfs2",    "9p",
    "afs",  "gfs2", "ocfs2", "fuse",  "vfat", "virtiofs", "ntfs3",    "iso9660", "other"};

}  // namespace

std::uint32_t file_system_code(std::string_view type) noexcept {
  if (type.empty()) return 0;
  const auto known = std::find(std::begin(kTypes), std::end(kTypes) - 1, type);
  return static_cast<std::uint32_t>(known - std::begin(kTypes)) + 1;
}

std::string_view file_system_name(std::uint32_t code) noexcept {
  return code >= 1 && code <= std::size(kTypes) ? kTypes[code - 1] : std::string_view();
}

}  // namespace headrace::profile
