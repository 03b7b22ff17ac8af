// Runs a fuzz target over recorded inputs: a plain main for builds without libFuzzer.
//
//     segment_fuzz fuzz/corpus/segment some_crash_file
//
// An argument is a file, or a folder whose files are replayed in the order of their names. The empty input
// always runs first: it is the one that every corpus forgets.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return false;
  }
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  // Named before it runs: after a crash this is the last line.
  std::fprintf(stderr, "%s (%zu bytes)\n", path.c_str(), bytes.size());
  // A copy of exactly this size, so that a read past the end is seen by AddressSanitizer.
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(input.data(), input.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  LLVMFuzzerTestOneInput(nullptr, 0);
  bool read_all = true;
  std::size_t replayed = 0;
  for (int i = 1; i < argc; ++i) {
    // A target whose corpus is still empty has no folder in git.
    if (!std::filesystem::exists(argv[i])) continue;
    for (const auto& path : files_of(argv[i])) {
      read_all = replay(path) && read_all;
      ++replayed;
    }
  }
  std::printf("%zu inputs replayed\n", replayed + 1);
  return read_all ? 0 : 1;
}
