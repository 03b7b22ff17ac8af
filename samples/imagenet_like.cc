// Training on JPEG files, in C++: read, decode, resize, normalise, batch, copy to a device, and the report.
//
//     imagenet_like [RUN_FOLDER] [IMAGES]
//
// The files are made first, in a temporary folder; one of them is broken. A first pass shows how its error
// reaches the loop, the passes that follow leave such files out.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

// After <cstdio>: libjpeg's header takes FILE and size_t for granted.
#include <jpeglib.h>

#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/pipeline/pipeline.h"
#include "headrace/profile/current.h"
#include "headrace/profile/snapshot.h"
#include "headrace/report/text.h"

namespace {

namespace fs = std::filesystem;
namespace pipeline = headrace::pipeline;
namespace transport = headrace::transport;

constexpr int kSide = 224;
constexpr int kClasses = 4;
constexpr int kBatch = 8;
constexpr int kEpochs = 2;

// --- what travels through the pipeline ----------------------------------------------------------------

struct File {
  fs::path path;
  int label = 0;
};
struct Encoded {
  std::vector<unsigned char> bytes;
  int label = 0;
};
/// Rows from the top, three bytes a pixel: red, green, blue.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<unsigned char> pixels;
  int label = 0;
};
/// Channel by channel, kSide x kSide each.
struct Sample {
  std::vector<float> values;
  int label = 0;
};
struct Batch {
  std::vector<float> images;
  std::vector<int> labels;
};

// --- JPEG ---------------------------------------------------------------------------------------------

/// libjpeg ends the program at an error unless it is given another way out.
class JpegErrors {
 public:
  JpegErrors() {
    jpeg_std_error(&handler_.base);
    handler_.base.error_exit = [](j_common_ptr jpeg) {
      auto* handler = reinterpret_cast<Handler*>(jpeg->err);
      jpeg->err->format_message(jpeg, handler->message.data());
      std::longjmp(handler->way_out, 1);
    };
    // Of a file that ends too early libjpeg only warns; the count stays in num_warnings.
    handler_.base.output_message = [](j_common_ptr) {};
  }

  jpeg_error_mgr* handler() noexcept { return &handler_.base; }
  bool warned() const noexcept { return handler_.base.num_warnings > 0; }

  /// Runs `calls` to libjpeg; std::runtime_error where one fails. A longjmp runs no destructors, so `calls`
  /// must not make objects that have one.
  template <class Calls>
  void guard(Calls&& calls) {
    if (setjmp(handler_.way_out) != 0) throw std::runtime_error(handler_.message.data());
    calls();
  }

 private:
  struct Handler {
    jpeg_error_mgr base{};  // the first member: libjpeg hands back its address
    std::jmp_buf way_out{};
    std::array<char, JMSG_LENGTH_MAX> message{};
  };
  Handler handler_;
};

class Decompressor {
 public:
  Decompressor() {
    jpeg_.err = errors_.handler();
    errors_.guard([this] { jpeg_create_decompress(&jpeg_); });
  }
  ~Decompressor() { jpeg_destroy_decompress(&jpeg_); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  /// No smaller than `least` on either side where the file is larger: libjpeg leaves out the fine parts of
  /// the cosine transform, which costs a fraction of a full decode.
  Picture decode(std::span<const unsigned char> bytes, int least) {
    Picture picture;
    errors_.guard([&] {
      jpeg_mem_src(&jpeg_, bytes.data(), bytes.size());
      jpeg_read_header(&jpeg_, TRUE);
    });
    jpeg_.out_color_space = JCS_RGB;
    const auto shorter = static_cast<int>(std::min(jpeg_.image_width, jpeg_.image_height));
    jpeg_.scale_denom = 8;
    jpeg_.scale_num = static_cast<unsigned>(std::clamp((8 * least + shorter - 1) / shorter, 1, 8));
    errors_.guard([&] { jpeg_start_decompress(&jpeg_); });
    picture.width = static_cast<int>(jpeg_.output_width);
    picture.height = static_cast<int>(jpeg_.output_height);
    const std::size_t row = std::size_t{3} * jpeg_.output_width;
    picture.pixels.resize(row * jpeg_.output_height);
    errors_.guard([&] {
      while (jpeg_.output_scanline < jpeg_.output_height) {
        unsigned char* into = picture.pixels.data() + row * jpeg_.output_scanline;
        jpeg_read_scanlines(&jpeg_, &into, 1);
      }
      jpeg_finish_decompress(&jpeg_);
    });
    if (errors_.warned()) throw std::runtime_error("the JPEG data is damaged or ends too early");
    return picture;
  }

 private:
  JpegErrors errors_;
  jpeg_decompress_struct jpeg_{};
};

class Compressor {
 public:
  Compressor() {
    jpeg_.err = errors_.handler();
    errors_.guard([this] { jpeg_create_compress(&jpeg_); });
  }
  ~Compressor() {
    jpeg_destroy_compress(&jpeg_);
    std::free(made_);
  }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  /// The bytes live as long as this object.
  std::span<const unsigned char> encode(Picture& picture) {
    errors_.guard([&] {
      jpeg_mem_dest(&jpeg_, &made_, &bytes_);
      jpeg_.image_width = static_cast<unsigned>(picture.width);
      jpeg_.image_height = static_cast<unsigned>(picture.height);
      jpeg_.input_components = 3;
      jpeg_.in_color_space = JCS_RGB;
      jpeg_set_defaults(&jpeg_);
      jpeg_set_quality(&jpeg_, 88, TRUE);
      jpeg_start_compress(&jpeg_, TRUE);
      while (jpeg_.next_scanline < jpeg_.image_height) {
        unsigned char* from =
            picture.pixels.data() + std::size_t{3} * jpeg_.image_width * jpeg_.next_scanline;
        jpeg_write_scanlines(&jpeg_, &from, 1);
      }
      jpeg_finish_compress(&jpeg_);
    });
    return {made_, bytes_};
  }

 private:
  JpegErrors errors_;
  jpeg_compress_struct jpeg_{};
  unsigned char* made_ = nullptr;  // libjpeg allocates it with malloc
  unsigned long bytes_ = 0;
};

/// Smooth shapes with grain compress like photographs; the class decides the colours.
Picture drawn(int number, int label) {
  constexpr int kWidth = 800;
  constexpr int kHeight = 600;
  std::mt19937 random(static_cast<unsigned>(number));
  const auto wave = [](int length, double pace, double from) {
    std::vector<int> values;
    for (int at = 0; at < length; ++at) values.push_back(static_cast<int>(40 * std::sin(pace * at + from)));
    return values;
  };
  Picture picture{kWidth, kHeight, std::vector<unsigned char>(std::size_t{3} * kWidth * kHeight), label};
  for (int channel = 0; channel < 3; ++channel) {
    const std::vector<int> across = wave(kWidth, 0.01 * (channel + 1), number);
    const std::vector<int> down = wave(kHeight, 0.013, channel);
    const int tint = (label + 1) % (channel + 2) == 0 ? 150 : 100;
    std::size_t at = static_cast<std::size_t>(channel);
    for (const int y : down) {
      for (const int x : across) {
        const int grain = static_cast<int>(random() >> 28) - 8;
        picture.pixels[at] = static_cast<unsigned char>(std::clamp(tint + x + y + grain, 0, 255));
        at += 3;
      }
    }
  }
  return picture;
}

std::vector<File> make_files(const fs::path& folder, int count) {
  std::vector<File> files;
  for (int number = 0; number < count; ++number) {
    const int label = number % kClasses;
    Picture picture = drawn(number, label);
    Compressor compressor;
    std::span<const unsigned char> bytes = compressor.encode(picture);
    if (number == count / 2) bytes = bytes.first(bytes.size() / 3);  // as after a download that was cut off
    files.push_back({folder / (std::to_string(number) + ".jpg"), label});
    std::ofstream out(files.back().path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) throw std::runtime_error("cannot write " + files.back().path.string());
  }
  return files;
}

// --- the operators' bodies ----------------------------------------------------------------------------

Encoded read_file(const File& file) {
  std::ifstream in(file.path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + file.path.filename().string());
  Encoded encoded{{}, file.label};
  encoded.bytes.assign(std::istreambuf_iterator<char>(in), {});
  return encoded;
}

Picture decode(const Encoded& encoded) {
  Picture picture = Decompressor().decode(encoded.bytes, kSide);
  picture.label = encoded.label;
  return picture;
}

/// Bilinear, to kSide x kSide. What was decoded is less than twice as large, so four neighbours are enough.
Picture resize(const Picture& from) {
  Picture to{kSide, kSide, std::vector<unsigned char>(std::size_t{3} * kSide * kSide), from.label};
  const auto place = [](int at, int size) {
    const float middle = (static_cast<float>(at) + 0.5F) * static_cast<float>(size) / kSide - 0.5F;
    return std::clamp(middle, 0.0F, static_cast<float>(size - 1));
  };
  for (int y = 0; y < kSide; ++y) {
    const float fy = place(y, from.height);
    const int y0 = static_cast<int>(fy);
    const int y1 = std::min(y0 + 1, from.height - 1);
    const float down = fy - static_cast<float>(y0);
    for (int x = 0; x < kSide; ++x) {
      const float fx = place(x, from.width);
      const int x0 = static_cast<int>(fx);
      const int x1 = std::min(x0 + 1, from.width - 1);
      const float right = fx - static_cast<float>(x0);
      for (int channel = 0; channel < 3; ++channel) {
        const auto pixel = [&](int row, int column) {
          return static_cast<float>(
              from.pixels[static_cast<std::size_t>(3 * (row * from.width + column) + channel)]);
        };
        const float above = pixel(y0, x0) * (1 - right) + pixel(y0, x1) * right;
        const float below = pixel(y1, x0) * (1 - right) + pixel(y1, x1) * right;
        to.pixels[static_cast<std::size_t>(3 * (y * kSide + x) + channel)] =
            static_cast<unsigned char>(above * (1 - down) + below * down + 0.5F);
      }
    }
  }
  return to;
}

Sample normalise(const Picture& picture) {
  constexpr std::array<float, 3> kMean{0.485F, 0.456F, 0.406F};
  constexpr std::array<float, 3> kDeviation{0.229F, 0.224F, 0.225F};
  Sample sample{std::vector<float>(picture.pixels.size()), picture.label};
  const std::size_t plane = picture.pixels.size() / 3;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t at = 0; at < plane; ++at) {
      const float value = static_cast<float>(picture.pixels[3 * at + channel]) / 255;
      sample.values[channel * plane + at] = (value - kMean[channel]) / kDeviation[channel];
    }
  }
  return sample;
}

Batch stack(std::vector<Sample>&& samples) {
  Batch batch;
  batch.images.reserve(samples.size() * samples.front().values.size());
  for (const Sample& sample : samples) {
    batch.images.insert(batch.images.end(), sample.values.begin(), sample.values.end());
    batch.labels.push_back(sample.label);
  }
  return batch;
}

// --- the pipeline -------------------------------------------------------------------------------------

using Batches = pipeline::Pipeline<pipeline::DeviceBatch<Batch>>;

Batches batches_of(const std::vector<File>& files, pipeline::OnError on_broken_file,
                   const std::string& name) {
  // On a machine with a GPU: "cuda". Four batches on the device at a time, two of them ready to be taken.
  const auto device = transport::open_device("cpu", {.buffers = 4});
  const auto arrays = [](const Batch& batch) {
    return std::vector<transport::HostBytes>{std::as_bytes(std::span(batch.images)),
                                             std::as_bytes(std::span(batch.labels))};
  };
  return pipeline::source("files", files)
      .shuffle(64, /*seed=*/0)
      .map("read", read_file)
      .map("decode", decode, {.workers = 2, .on_error = on_broken_file})
      .map("resize", resize)
      .map("normalise", normalise)
      .batch(kBatch, stack)
      .transfer(device, arrays, {.capacity = 2})
      .record_as({.name = name});
}

// --- the training loop --------------------------------------------------------------------------------

/// Softmax regression on the mean of each channel: a model that is small, and a step that reads every pixel.
class Model {
 public:
  /// One step of gradient descent; the mean loss before it.
  double step(std::span<const float> images, std::span<const int> labels) {
    const std::size_t plane = std::size_t{kSide} * kSide;
    Weights gradient{};
    double loss = 0;
    for (std::size_t number = 0; number < labels.size(); ++number) {
      std::array<double, kFeatures> features{0, 0, 0, 1};
      for (std::size_t channel = 0; channel < 3; ++channel) {
        for (const float value : images.subspan((3 * number + channel) * plane, plane))
          features[channel] += value / static_cast<double>(plane);
      }
      const std::array<double, kClasses> chances = predict(features);
      for (std::size_t label = 0; label < kClasses; ++label) {
        const bool right = static_cast<int>(label) == labels[number];
        if (right) loss -= std::log(chances[label]);
        for (std::size_t i = 0; i < kFeatures; ++i)
          gradient[label][i] += (chances[label] - (right ? 1 : 0)) * features[i];
      }
    }
    const auto count = static_cast<double>(labels.size());
    for (std::size_t label = 0; label < kClasses; ++label) {
      for (std::size_t i = 0; i < kFeatures; ++i) weights_[label][i] -= 0.5 * gradient[label][i] / count;
    }
    return loss / count;
  }

 private:
  static constexpr std::size_t kFeatures = 4;
  using Weights = std::array<std::array<double, kFeatures>, kClasses>;

  std::array<double, kClasses> predict(const std::array<double, kFeatures>& features) const {
    std::array<double, kClasses> chances{};
    double sum = 0;
    for (std::size_t label = 0; label < kClasses; ++label) {
      double score = 0;
      for (std::size_t i = 0; i < kFeatures; ++i) score += weights_[label][i] * features[i];
      sum += chances[label] = std::exp(score);
    }
    for (double& chance : chances) chance /= sum;
    return chances;
  }

  Weights weights_{};
};

/// Trains for some passes; how many images were seen.
int train(Batches& batches) {
  Model model;
  int seen = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    double loss = 0;
    int steps = 0;
    for (pipeline::DeviceBatch<Batch>& batch : batches) {
      batch.completion.wait();  // host memory is complete at once; a GPU's stream would wait instead
      const std::size_t images = batch.sizes[0] / sizeof(float);
      const std::size_t labels = batch.sizes[1] / sizeof(int);
      loss += model.step({reinterpret_cast<const float*>(batch.host_data(0)), images},
                         {reinterpret_cast<const int*>(batch.host_data(1)), labels});
      ++steps;
      seen += static_cast<int>(labels);
    }
    std::printf("epoch %d: loss %.3f\n", epoch, loss / steps);
  }
  return seen;
}

/// Whether the broken file's error comes out of `next`, with the operator's name.
bool broken_file_is_told(const std::vector<File>& files) {
  Batches batches = batches_of(files, pipeline::OnError::stop, "strict");
  try {
    while (batches.next()) {
    }
  } catch (const pipeline::OperatorError& error) {
    std::printf("as it should: %s\n", error.what());
    return error.operator_name() == "decode";
  }
  return false;
}

/// Removed at the end, with what is in it.
struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() / ("headrace-imagenet-like-" + std::to_string(getpid()));
  TemporaryFolder() { fs::create_directories(path); }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

int main(int argc, char** argv) try {
  using headrace::profile::CurrentSession;
  const auto session = CurrentSession::for_run(argc > 1 ? argv[1] : "headrace-runs/imagenet-like", 0);
  const int count = argc > 2 ? std::stoi(argv[2]) : 64;
  const TemporaryFolder folder;
  const std::vector<File> files = make_files(folder.path, count);

  const bool told = broken_file_is_told(files);
  Batches batches = batches_of(files, pipeline::OnError::skip, "train");
  const int seen = train(batches);

  headrace::profile::SegmentImage image;
  image.read_memory(session->segment().data(), session->segment().size());
  const auto loader = static_cast<std::uint32_t>(batches.runtime().loader()->id());
  const auto profile = headrace::profile::read_profile(image, loader);
  std::puts(headrace::report::to_text(profile, headrace::analysis::diagnose(profile)).c_str());
  CurrentSession::close_all();
  return told && seen == kEpochs * (count - 1) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "imagenet_like: %s\n", error.what());
  return 1;
}
