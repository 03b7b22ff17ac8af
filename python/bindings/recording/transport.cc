// Devices, the arrays that were copied to them, and what a copy was. Crossing only.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cmath>
#include <optional>

#include "crossing.h"
#include "headrace/profile/errors.h"
#include "headrace/transport/device_array.h"
#include "headrace/transport/transfer_recorder.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

using transport::Device;
using transport::DeviceArray;
namespace dlpack = transport::dlpack;

constexpr double kSecond = 1e-9;

// --- in: whatever brings its bytes ---

/// Lets go of a tensor that was taken out of its capsule.
struct CallDeleter {
  template <class Managed>
  void operator()(Managed* tensor) const {
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  }
};

/// One array to copy: its bytes in host memory, what its elements are, and what keeps it alive.
struct HostArray {
  transport::HostBytes bytes;
  std::vector<std::int64_t> shape;
  transport::ElementType type;
  std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> buffer{nullptr, nullptr};
  std::unique_ptr<dlpack::ManagedTensor, CallDeleter> tensor;
  std::unique_ptr<dlpack::ManagedTensorVersioned, CallDeleter> versioned;
  std::vector<std::byte> gathered;  ///< of an array with strides
};

HostArray of_buffer(const py::handle& object) {
  HostArray source;
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), view.get(), PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0)
    throw py::error_already_set();
  source.buffer = {view.release(), [](Py_buffer* held) {
                     PyBuffer_Release(held);
                     delete held;
                   }};
  const Py_buffer& held = *source.buffer;
  source.bytes = {static_cast<const std::byte*>(held.buf), static_cast<std::size_t>(held.len)};
  source.shape.assign(held.shape, held.shape + held.ndim);
  source.type = {held.format != nullptr ? held.format : "B", static_cast<std::size_t>(held.itemsize)};
  return source;
}

template <class Managed>
Managed* taken(const py::object& capsule, const char* name, const char* used) {
  auto* const tensor = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (tensor == nullptr || PyCapsule_SetName(capsule.ptr(), used) != 0) throw py::error_already_set();
  return tensor;
}

HostArray of_dlpack(const py::handle& object) {
  py::object capsule;
  try {
    capsule = object.attr("__dlpack__")(py::arg("max_version") = py::make_tuple(1, 0));
  } catch (py::error_already_set& error) {
    // A producer of before 1.0 does not know the argument.
    if (!error.matches(PyExc_TypeError)) throw;
    capsule = object.attr("__dlpack__")();
  }
  HostArray source;
  transport::ImportedArray array;
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0) {
    source.versioned.reset(
        taken<dlpack::ManagedTensorVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned"));
    array = transport::import_tensor(*source.versioned);
  } else {
    source.tensor.reset(taken<dlpack::ManagedTensor>(capsule, "dltensor", "used_dltensor"));
    array = transport::import_tensor(*source.tensor);
  }
  if (array.device.type == dlpack::kCuda) throw UsageError("DLPack: this array is on a device already");
  source.type = transport::ElementType::of(array.type);
  source.shape = array.shape;
  source.bytes = {array.data, array.bytes};
  if (!array.compact) {
    source.gathered.resize(array.bytes);
    transport::copy_compact(array, source.gathered.data());
    source.bytes = source.gathered;
  }
  return source;
}

HostArray source_of(const py::handle& object) {
  if (PyObject_CheckBuffer(object.ptr()) != 0) return of_buffer(object);
  if (py::hasattr(object, "__dlpack__")) return of_dlpack(object);
  throw UsageError("an array to copy brings the buffer protocol or __dlpack__, which " +
                   py::str(py::type::of(object).attr("__name__")).cast<std::string>() + " does not");
}

// --- the copy ---

/// A batch that was copied, or is being copied.
struct CopiedBatch {
  std::vector<DeviceArray> arrays;
  transport::Copied copied;
  std::int64_t buffer_wait_ns = 0;
  std::vector<HostArray> read_directly;  ///< page-locked ones among them are read until the copy is done

  CopiedBatch() = default;
  CopiedBatch(const CopiedBatch&) = delete;
  CopiedBatch& operator=(const CopiedBatch&) = delete;
  ~CopiedBatch() {
    if (read_directly.empty()) return;
    const LockReleased free_lock;
    try {
      copied.completion.wait();
    } catch (const Error&) {
      // A copy that failed reads nothing any more.
    }
  }
};

transport::BlockRing::Clock::time_point deadline_of(std::optional<double> timeout_s) {
  using Clock = transport::BlockRing::Clock;
  constexpr double kLongest = 1e9;  // thirty years
  if (!timeout_s || *timeout_s > kLongest) return Clock::time_point::max();
  if (!(*timeout_s >= 0)) throw UsageError("a timeout is a number of seconds, 0 or more");
  return Clock::now() + std::chrono::nanoseconds(static_cast<std::int64_t>(*timeout_s * 1e9));
}

[[noreturn]] void raise_error(const char* name, const std::string& what) {
  const py::object type = py::module_::import("headrace.errors").attr(name);
  PyErr_SetObject(type.ptr(), py::str(what).ptr());
  throw py::error_already_set();
}

transport::Acquired acquire(Device& device, std::size_t bytes,
                            transport::BlockRing::Clock::time_point deadline) {
  std::int64_t waited_ns = 0;
  for (;;) {
    transport::Acquired acquired =
        without_lock([&] { return transport::acquire_recorded(device, bytes, deadline); });
    acquired.waited_ns += waited_ns;
    switch (acquired.outcome) {
      case transport::AcquireOutcome::acquired:
        return acquired;
      case transport::AcquireOutcome::cancelled:
        raise_error("TransferCancelled", device.name() + ": cancelled");
      case transport::AcquireOutcome::timed_out:
        PyErr_SetString(PyExc_TimeoutError, (device.name() + ": all buffers are in use").c_str());
        throw py::error_already_set();
      case transport::AcquireOutcome::interrupted:
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        waited_ns = acquired.waited_ns;
    }
  }
}

std::unique_ptr<CopiedBatch> copy(const std::shared_ptr<Device>& device, const py::iterable& objects,
                                  std::optional<double> timeout_s) {
  const auto deadline = deadline_of(timeout_s);
  std::vector<HostArray> sources;
  for (const py::handle object : objects) sources.push_back(source_of(object));
  std::vector<transport::HostBytes> arrays;
  for (const HostArray& source : sources) arrays.push_back(source.bytes);
  transport::Acquired acquired = acquire(*device, transport::bytes_needed(arrays), deadline);
  auto batch = std::make_unique<CopiedBatch>();
  batch->buffer_wait_ns = acquired.waited_ns;
  batch->copied = without_lock([&] { return device->copy(arrays, acquired.block); });
  const auto lease =
      std::make_shared<transport::Lease>(device, std::move(acquired.block), batch->copied.completion);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    batch->arrays.push_back(
        {lease, batch->copied.offsets[i], std::move(sources[i].shape), std::move(sources[i].type)});
  }
  if (batch->copied.pinned_bytes > 0) batch->read_directly = std::move(sources);
  return batch;
}

// --- out ---

py::buffer_info buffer_of(const DeviceArray& array) {
  if (array.lease->device().memory_kind() != transport::MemoryKind::host)
    throw py::buffer_error("this array is in the memory of " + array.lease->device().name() +
                           ": copy it back with tobytes(), or take it with from_dlpack()");
  const auto item = static_cast<py::ssize_t>(array.type.bytes);
  std::vector<py::ssize_t> strides(array.shape.size(), item);
  for (std::size_t i = strides.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<py::ssize_t>(1, array.shape[i]);
  return {array.data(),
          item,
          array.type.format,
          static_cast<py::ssize_t>(array.shape.size()),
          {array.shape.begin(), array.shape.end()},
          strides};
}

template <class Managed>
py::object capsule_of(Managed* tensor, const char* name) {
  PyObject* const capsule = PyCapsule_New(tensor, name, [](PyObject* self) {
    // A consumer renames what it took; what nobody took is let go of here.
    const char* const its_name = PyCapsule_GetName(self);
    if (std::string_view(its_name).substr(0, 4) == "used") return;
    auto* const unused = static_cast<Managed*>(PyCapsule_GetPointer(self, its_name));
    unused->deleter(unused);
  });
  if (capsule == nullptr) {
    tensor->deleter(tensor);
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::object>(capsule);
}

/// Python's array API: None is the legacy default stream, -1 none at all, 1 and 2 the default ones, else an
/// address; the driver's handles for the default ones are the same numbers.
void order_streams(const DeviceArray& array, const std::optional<std::int64_t>& stream) {
  if (array.lease->device().memory_kind() == transport::MemoryKind::host) {
    if (stream && *stream != -1) throw py::buffer_error("host memory has no streams: stream=None");
    return;
  }
  if (stream && *stream == -1) return;
  if (stream && *stream <= 0) throw py::buffer_error("0 is no stream: 1 is the legacy default one");
  array.lease->read_on(reinterpret_cast<void*>(static_cast<std::intptr_t>(stream.value_or(1))));
}

py::object to_dlpack(const DeviceArray& array, const std::optional<std::int64_t>& stream,
                     const std::optional<std::pair<int, int>>& max_version,
                     const std::optional<std::pair<int, int>>& dl_device, std::optional<bool> copy) {
  const dlpack::Device device = array.dlpack_device();
  if (dl_device && (dl_device->first != device.type || dl_device->second != device.id))
    throw py::buffer_error("this array stays on the device that it is on");
  try {
    transport::ExportedArray exported = array.exported(copy.value_or(false));
    order_streams(array, stream);
    if (!max_version || max_version->first < 1)
      return capsule_of(transport::export_tensor(std::move(exported)), "dltensor");
    dlpack::ManagedTensorVersioned* const tensor = transport::export_versioned(std::move(exported));
    if (copy.value_or(false)) tensor->flags |= dlpack::kCopied;
    return capsule_of(tensor, "dltensor_versioned");
  } catch (const UsageError& error) {
    throw py::buffer_error(error.what());  // what the protocol asks for
  }
}

py::object known_copy_s(const transport::Completion& completion) {
  const std::int64_t copy_ns = completion.copy_ns();
  return copy_ns < 0 ? py::none() : py::object(py::float_(static_cast<double>(copy_ns) * kSecond));
}

std::int64_t ns_of(double seconds) { return std::isfinite(seconds) ? std::llround(seconds * 1e9) : 0; }

}  // namespace

void add_transport(PyObject* to) {
  py::module_ module = py::reinterpret_borrow<py::module_>(to);
  py::class_<DeviceArray>(
      module, "DeviceArray", py::buffer_protocol(),
      "An array in a device's buffer, which it keeps: buffer protocol (host memory alone) and DLPack.")
      .def_buffer(&buffer_of)
      .def("__dlpack__", &to_dlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none())
      .def("__dlpack_device__",
           [](const DeviceArray& self) {
             return py::make_tuple(self.dlpack_device().type, self.dlpack_device().id);
           })
      .def(
          "tobytes",
          [](const DeviceArray self) {
            const std::vector<std::byte> host = without_lock([&] { return self.read_back(); });
            return py::bytes(reinterpret_cast<const char*>(host.data()), host.size());
          },
          "The elements, copied back; waits for the copy.")
      .def_property_readonly(
          "shape", [](const DeviceArray& self) { return py::tuple(py::cast(self.shape)); },
          "-> tuple[int, ...]")
      .def_property_readonly(
          "format", [](const DeviceArray& self) { return self.type.format; },
          "The element type in the format of the buffer protocol.")
      .def_property_readonly("itemsize", [](const DeviceArray& self) { return self.type.bytes; })
      .def_property_readonly("nbytes", &DeviceArray::bytes)
      .def_property_readonly("device", [](const DeviceArray& self) { return self.lease->device().name(); })
      .def("__repr__", [](const DeviceArray& self) {
        return py::str("<headrace.DeviceArray {} of '{}' on {}>")
            .format(py::tuple(py::cast(self.shape)), self.type.format, self.lease->device().name());
      });

  py::class_<CopiedBatch>(module, "CopiedBatch",
                          "Arrays that were copied together, and the cost of the copy.")
      .def_readonly("arrays", &CopiedBatch::arrays)
      .def_property_readonly("bytes", [](const CopiedBatch& self) { return self.copied.bytes; })
      .def_property_readonly("pinned_bytes", [](const CopiedBatch& self) { return self.copied.pinned_bytes; })
      .def_property_readonly("pageable_bytes",
                             [](const CopiedBatch& self) { return self.copied.pageable_bytes; })
      .def_property_readonly(
          "buffer_wait_s",
          [](const CopiedBatch& self) { return static_cast<double>(self.buffer_wait_ns) * kSecond; })
      .def_property_readonly("completion", [](const CopiedBatch& self) { return self.copied.completion; });

  py::class_<transport::Completion>(module, "Completion", "Progress of a copy; keeps none of its arrays.")
      .def("done", &transport::Completion::done)
      .def(
          "wait", [](const transport::Completion self) { self.wait(); }, py::call_guard<LockReleased>())
      .def_property_readonly("copy_s", &known_copy_s, "-> float | None\nNone while the copy runs.");

  py::class_<Device, std::shared_ptr<Device>>(module, "TransportDevice", "A device with its ring of buffers.")
      .def_property_readonly("name", &Device::name)
      .def_property_readonly("buffers", &Device::buffers)
      .def_property_readonly("free_buffers", &Device::free_buffers)
      .def("copy", &copy, py::arg("arrays"), py::arg("timeout_s") = py::none(),
           "Copy objects with the buffer protocol or DLPack, all into one buffer.")
      .def("cancel", &Device::cancel)
      .def("resume", &Device::resume);

  module.def(
      "open_device",
      [](const std::string& name, std::size_t buffers, std::size_t buffer_bytes, std::size_t max_buffer_bytes,
         std::optional<double> bandwidth, bool pin, const std::string& cuda_library) {
        return transport::open_device(
            name, {buffers, buffer_bytes, max_buffer_bytes, bandwidth, pin, cuda_library});
      },
      py::arg("name"), py::arg("buffers"), py::arg("buffer_bytes"), py::arg("max_buffer_bytes"),
      py::arg("bandwidth"), py::arg("pin"), py::arg("cuda_library"), py::call_guard<LockReleased>());
  module.def(
      "available_devices",
      [](const std::string& cuda_library) {
        transport::DeviceOptions options;
        options.cuda_library = cuda_library;
        return transport::available_devices(options);
      },
      py::arg("cuda_library"), py::call_guard<LockReleased>());
  module.attr("CUDA_LIBRARY") = transport::DeviceOptions().cuda_library;

  module.def(
      "transferred",
      [](profile::OperatorHandle& op, std::int64_t copies, std::int64_t bytes, std::int64_t pinned_bytes,
         std::int64_t pageable_bytes, std::int64_t timed_bytes, double copy_s, double buffer_wait_s) {
        op.transferred(
            {copies, bytes, pinned_bytes, pageable_bytes, timed_bytes, ns_of(copy_s), ns_of(buffer_wait_s)});
      },
      py::arg("operator"), py::kw_only(), py::arg("copies") = 0, py::arg("bytes") = 0,
      py::arg("pinned_bytes") = 0, py::arg("pageable_bytes") = 0, py::arg("timed_bytes") = 0,
      py::arg("copy_s") = 0.0, py::arg("buffer_wait_s") = 0.0,
      "Adds copies that the calling thread made as this operator.");
}

}  // namespace headrace::python
