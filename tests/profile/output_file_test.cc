#include "headrace/profile/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "headrace/profile/errors.h"
#include "profile/scratch_folder.h"

namespace headrace::profile {
namespace {

namespace fs = std::filesystem;

void write_out(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write("thrown away", 11);
  file.restart();
  file.write(text.data(), text.size());
  file.commit();
}

std::ptrdiff_t entries(const std::string& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

TEST(OutputFile, IsThereWhenItIsComplete) {
  const ScratchFolder folder;
  {
    OutputFile file(folder / "a");
    file.write("x", 1);
    EXPECT_FALSE(fs::exists(folder / "a"));
  }
  EXPECT_EQ(entries(folder.path()), 0) << "given up, it leaves nothing";
  write_out(folder / "a", "first");
  write_out(folder / "a", "second");
  EXPECT_EQ(read_bytes(folder / "a"), "second");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(OutputFile, FollowsLinks) {
  const ScratchFolder folder;
  fs::create_directory(folder / "there");
  fs::create_symlink("there/file", folder / "relative");
  fs::create_symlink(folder / "relative", folder / "twice");
  write_out(folder / "twice", "text");
  EXPECT_TRUE(fs::is_symlink(folder / "twice"));
  EXPECT_TRUE(fs::is_symlink(folder / "relative"));
  EXPECT_EQ(read_bytes(folder / "there/file"), "text");
}

TEST(OutputFile, WritesThroughToWhatIsNoFile) {
  const ScratchFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = read_bytes(folder / "fifo"); });
  write_out(folder / "fifo", "through");
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(folder / "fifo"));

  write_out("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  try {
    write_out("/dev/full", "text");
    FAIL() << "nothing fits there";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "/dev/full: No space left on device");
  }
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(OutputFile, SaysWhyItCannotBeWritten) {
  const ScratchFolder folder;
  EXPECT_THROW(OutputFile(folder.path()), Error);
  EXPECT_THROW(OutputFile(folder / "no/such/folder"), Error);
  EXPECT_THROW(OutputFile("/proc/headrace"), Error);
}

}  // namespace
}  // namespace headrace::profile
