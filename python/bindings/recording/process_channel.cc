// Base of a map whose bodies run in processes: shared slots, waiting for an answer, reports of what was
// served.
#include <poll.h>
#include <pybind11/pybind11.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "crossing.h"
#include "headrace/pipeline/remote_service.h"
#include "headrace/pipeline/shared_slot.h"
#include "headrace/profile/background_thread.h"
#include "recording/pipeline_item.h"

namespace py = pybind11;

namespace headrace::python {
namespace {

using pipeline::RemoteService;
using pipeline::SharedSlot;
using pipeline::SlotLease;
using pipeline::SlotReceiver;
using pipeline::SlotSender;

/// A claimed slot that is being filled.
class SlotWriter {
 public:
  explicit SlotWriter(SlotSender::Claimed claimed) : claimed_(std::move(claimed)) {}
  ~SlotWriter() {
    if (sent_) {
      claimed_.slot->close_descriptor();
    } else {
      claimed_.slot->release();
    }
  }
  SlotWriter(const SlotWriter&) = delete;
  SlotWriter& operator=(const SlotWriter&) = delete;

  /// Copies a contiguous buffer to `offset`, without the interpreter lock where that takes longer than giving
  /// it away.
  void write(std::int64_t offset, const py::object& source) {
    const BufferView from(source.ptr());
    if (!from) throw py::error_already_set();
    const std::shared_ptr<SharedSlot> slot = claimed_.slot;  // on the stack: see interpreter_lock.h
    const std::span<std::byte> to = slot->data();
    const bool fits = offset >= 0 && offset <= std::ssize(to) && from.size() <= std::ssize(to) - offset;
    if (!fits) throw py::index_error("a slot has no such place");
    if (from.size() == 0) return;
    constexpr py::ssize_t kWorthLettingGo = 64 << 10;
    std::optional<LockReleased> released;
    if (from.size() >= kWorthLettingGo) released.emplace();
    std::memcpy(to.data() + offset, from.data(), static_cast<std::size_t>(from.size()));
  }
  void sent() noexcept { sent_ = true; }

  std::uint32_t number() const noexcept { return claimed_.number; }
  /// -1 if the reader has it already.
  int descriptor() const noexcept { return claimed_.slot->descriptor(); }
  bool is_lent() const noexcept { return claimed_.is_lent; }

 private:
  SlotSender::Claimed claimed_;
  bool sent_ = false;
};

/// 1: something can be read; 0: the pass was stopped; -1: the process is gone and left nothing.
int await_answer(int socket, int process) {
  constexpr int kLookEvery = 20;  // ms: a pass that stops wakes nobody here
  const RemoteService* service = RemoteService::current();
  const LockReleased released;
  for (;;) {
    pollfd both[2] = {{socket, POLLIN, 0}, {process, POLLIN, 0}};
    const int ready = poll(both, process >= 0 ? 2 : 1, kLookEvery);
    if (ready < 0 && errno != EINTR) return -1;
    if (ready > 0 && (both[0].revents & POLLIN) != 0) return 1;
    if (ready > 0) return -1;
    if (service != nullptr && service->stopped()) return 0;
  }
}

/// Ends this process as soon as that one, its parent, is no more, whatever this one is doing. Not by a signal
/// at the parent's death: the kernel sends it when the parent's thread ends.
void end_with(int parent) {
  const profile::SignalsBlocked blocked;
  std::thread([parent] {
    const int handle = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
    while (getppid() == parent) {
      pollfd its = {handle, POLLIN, 0};
      constexpr int kLookEvery = 1000;  // ms, for a kernel without such handles
      poll(&its, handle >= 0 ? 1 : 0, handle >= 0 ? -1 : kLookEvery);
    }
    _exit(1);
  }).detach();
}

void served(std::int64_t began_ns, std::int64_t ended_ns, std::int64_t cpu_ns) {
  if (RemoteService* service = RemoteService::current()) service->tell(began_ns, ended_ns, cpu_ns);
}

void process_starting() {
  if (RemoteService* service = RemoteService::current()) service->starting();
}

void process_started() {
  if (RemoteService* service = RemoteService::current()) service->started();
}

}  // namespace

void add_process_channel(PyObject* object) {
  py::module_ module = py::reinterpret_borrow<py::module_>(object);
  py::class_<SlotLease>(module, "SlotLease", py::buffer_protocol()).def_buffer([](SlotLease& self) {
    return py::buffer_info(reinterpret_cast<std::uint8_t*>(self.data().data()), std::ssize(self.data()),
                           false);
  });
  py::class_<SlotWriter>(module, "SlotWriter",
                         "A claimed slot that is being filled; free again if destroyed without `sent`.")
      .def("write", &SlotWriter::write, py::arg("offset"), py::arg("source"))
      .def("sent", &SlotWriter::sent)
      .def_property_readonly("number", &SlotWriter::number)
      .def_property_readonly("descriptor", &SlotWriter::descriptor,
                             "To be sent along; -1 if the reader has it.")
      .def_property_readonly("is_lent", &SlotWriter::is_lent, "The reader has to copy its contents.");
  py::class_<SlotSender, std::shared_ptr<SlotSender>>(
      module, "SlotSender",
      "Shared memory that this process fills and one other reads, within ``most_bytes``.")
      .def(py::init<std::int64_t>(), py::arg("most_bytes"))
      .def(
          "claim",
          [](const std::shared_ptr<SlotSender>& self, std::int64_t size) {
            const LockReleased released;
            return std::make_unique<SlotWriter>(self->claim(size));
          },
          py::arg("size"))
      .def_property_readonly("bytes", &SlotSender::bytes);
  py::class_<SlotReceiver, std::shared_ptr<SlotReceiver>>(module, "SlotReceiver", "The reader's side.")
      .def(py::init<>())
      .def("add", on_shared(&SlotReceiver::add), py::arg("number"), py::arg("fd"),
           py::call_guard<LockReleased>())
      .def(
          "lease",
          [](SlotReceiver& self, std::uint32_t number) {
            return std::make_unique<SlotLease>(self.find(number));
          },
          py::arg("number"))
      .def_static(
          "borrow",
          [](int fd) {
            const LockReleased released;
            return std::make_unique<SlotLease>(SharedSlot::attach(fd));
          },
          py::arg("fd"));
  module.def("await_answer", &await_answer, py::arg("socket"), py::arg("process"),
             "Waits without the interpreter lock. 1: something can be read; 0: this thread's pass was "
             "stopped; -1: the process is gone and nothing is left to read.");
  module.def("end_with", &end_with, py::arg("parent"),
             "This process ends as soon as ``parent``, which started it, has ended.");
  module.def("served", &served, py::arg("began_ns"), py::arg("ended_ns"), py::arg("cpu_ns"),
             "In a body that waited for another process: when the work was done there.");
  module.def("process_starting", &process_starting);
  module.def("process_started", &process_started);
}

}  // namespace headrace::python
