#include "headrace/profile/regular_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "headrace/profile/errors.h"
#include "profile/scratch_folder.h"

namespace headrace::profile {
namespace {

namespace fs = std::filesystem;

std::string refusal_of(const std::string& path, std::uint64_t most = 1 << 20) {
  try {
    read_regular_file(path, most);
  } catch (const FormatError& error) {
    EXPECT_EQ(error.path(), path);
    return error.what();
  }
  return "";
}

TEST(RegularFile, IsReadUpToItsLimit) {
  const ScratchFolder folder;
  std::ofstream(folder / "a") << "12345";
  EXPECT_EQ(RegularFile(folder / "a").bytes(), 5u);
  EXPECT_EQ(read_regular_file(folder / "a", 5), "12345");
  EXPECT_NE(refusal_of(folder / "a", 4).find("a file of at most"), std::string::npos);
}

TEST(RegularFile, NothingElseIsOpened) {
  const ScratchFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_directory(folder / "folder");
  fs::create_symlink("/dev/zero", folder / "device");
  fs::create_symlink("pipe", folder / "link");
  for (const char* name : {"pipe", "folder", "device", "link"})
    EXPECT_NE(refusal_of(folder / name).find("not a regular file"), std::string::npos) << name;
  EXPECT_EQ(refusal_of(folder / "missing"), (folder / "missing") + ": no such file");
}

TEST(RegularFile, AHugeFileIsNotRead) {
  const ScratchFolder folder;
  const int fd = open((folder / "huge").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(ftruncate(fd, off_t{10'000'000'000}), 0);
  close(fd);
  EXPECT_NE(refusal_of(folder / "huge").find("at most 1 MiB"), std::string::npos);
}

}  // namespace
}  // namespace headrace::profile
