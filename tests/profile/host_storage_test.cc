// Which sleep is a wait for files, and on which file system: from texts of the kernel.
#include "../../src/profile/recording/host_storage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "../../src/profile/file_systems.h"
#include "headrace/profile/host/kernel_text.h"

namespace headrace::profile {
namespace {

constexpr const char* kMounts =
    "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
    "41 22 0:39 / /data rw,nosuid,nodev - fuse.sshfs user@host:/data rw,user_id=0\n"
    "42 22 0:40 / /weird\\040- nfs rw master:7 propagate_from:2 - nfs4 server:/export rw,vers=4.2\n"
    "43 22 0:41 / /cut rw";

TEST(HostStorage, FindsTheTypeOfAMount) {
  EXPECT_EQ(mount_type(kMounts, 22), "ext4");
  EXPECT_EQ(mount_type(kMounts, 41), "fuse");
  EXPECT_EQ(mount_type(kMounts, 42), "nfs4");
  EXPECT_EQ(mount_type(kMounts, 43), "");
  EXPECT_EQ(mount_type(kMounts, 4), "");
  EXPECT_EQ(mount_type("", 1), "");
  EXPECT_EQ(mount_type(" - \n1 - ", 1), "");
}

TEST(HostStorage, KnowsWhoseFunctionsWaitForFiles) {
  EXPECT_TRUE(waits_for_files("request_wait_answer"));
  EXPECT_TRUE(waits_for_files("rpc_wait_bit_killable"));
  EXPECT_FALSE(waits_for_files("hrtimer_nanosleep"));
  EXPECT_FALSE(waits_for_files("futex_wait_queue"));
  EXPECT_FALSE(waits_for_files("pipe_read"));
  EXPECT_FALSE(waits_for_files("0"));
  EXPECT_FALSE(waits_for_files(""));
}

TEST(HostStorage, NumbersTypes) {
  for (const char* type : {"", "ext4", "nfs4", "virtiofs", "other"})
    EXPECT_EQ(file_system_name(file_system_code(type)), type);
  EXPECT_EQ(file_system_name(file_system_code("hypothetical")), "other");
  EXPECT_EQ(file_system_name(~0U), "") << "a damaged file";
}

TEST(HostStorage, SaysNothingOfAThreadThatIsGone) {
  EXPECT_EQ(sleeps_in(getpid(), 1 << 30), "");
  EXPECT_EQ(file_system_in_use(getpid(), 1 << 30), "");
}

}  // namespace
}  // namespace headrace::profile
