#include "arrow_stream.h"

#include <array>
#include <cerrno>
#include <new>
#include <utility>

// The layout and the names of these three are fixed by the Arrow C data interface.
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

namespace headrace::python {
namespace {

/// Data behind a schema or an array. A child may be moved out and released on its own, so each
/// owns the set.
template <class Struct>
struct Held {
  std::shared_ptr<const ColumnSet> columns;
  std::vector<Struct> children;
  std::vector<Struct*> child_pointers;
  Struct dictionary{};
  std::array<const void*, 3> buffers{};
};

template <class Struct>
void release(Struct* released) {
  auto* held = static_cast<Held<Struct>*>(released->private_data);
  for (Struct& child : held->children) {
    if (child.release != nullptr) child.release(&child);
  }
  if (held->dictionary.release != nullptr) held->dictionary.release(&held->dictionary);
  delete held;
  released->release = nullptr;
}

template <class Struct>
Held<Struct>& hold(Struct& of, const std::shared_ptr<const ColumnSet>& columns) {
  auto* held = new Held<Struct>();
  held->columns = columns;
  of.private_data = held;
  of.release = &release<Struct>;
  return *held;
}

template <class Struct>
void add_children(Struct& of, Held<Struct>& held) {
  for (Struct& child : held.children) held.child_pointers.push_back(&child);
  of.n_children = static_cast<std::int64_t>(held.children.size());
  of.children = held.child_pointers.data();
}

void describe(const std::shared_ptr<const ColumnSet>& columns, const ColumnView& column,
              ArrowSchema& schema) {
  schema = {};
  Held<ArrowSchema>& held = hold(schema, columns);
  schema.format = column.format.c_str();
  schema.name = column.name.c_str();
  if (column.dictionary == nullptr) return;
  describe(columns, *column.dictionary, held.dictionary);
  schema.dictionary = &held.dictionary;
}

void share(const std::shared_ptr<const ColumnSet>& columns, const ColumnView& column, ArrowArray& array) {
  static constexpr std::int64_t kNoOffsets = 0;
  static constexpr char kNothing = 0;
  array = {};
  Held<ArrowArray>& held = hold(array, columns);
  const void* data = column.data != nullptr ? column.data : &kNothing;
  if (column.offsets != nullptr || column.format == "U") {
    held.buffers = {nullptr, column.offsets != nullptr ? column.offsets : &kNoOffsets, data};
    array.n_buffers = 3;
  } else {
    held.buffers = {nullptr, data, nullptr};
    array.n_buffers = 2;
  }
  array.length = static_cast<std::int64_t>(column.rows);
  array.buffers = held.buffers.data();
  if (column.dictionary == nullptr) return;
  share(columns, *column.dictionary, held.dictionary);
  array.dictionary = &held.dictionary;
}

struct Stream {
  std::shared_ptr<const ColumnSet> columns;
  bool told = false;  ///< its one batch was taken
};

Stream& state_of(ArrowArrayStream* stream) { return *static_cast<Stream*>(stream->private_data); }

/// Runs `body`; the errors of the interface are numbers of errno.
template <class Body>
int guarded(Body&& body) noexcept {
  try {
    body();
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* schema) {
  return guarded([&] {
    const auto& columns = state_of(stream).columns;
    *schema = {};
    Held<ArrowSchema>& held = hold(*schema, columns);
    schema->format = "+s";
    schema->name = "";
    held.children.resize(columns->columns.size());
    for (std::size_t i = 0; i < held.children.size(); ++i)
      describe(columns, columns->columns[i], held.children[i]);
    add_children(*schema, held);
  });
}

int get_next(ArrowArrayStream* stream, ArrowArray* array) {
  return guarded([&] {
    *array = {};  // without a release: the end
    if (std::exchange(state_of(stream).told, true)) return;
    const auto& columns = state_of(stream).columns;
    Held<ArrowArray>& held = hold(*array, columns);
    array->length = static_cast<std::int64_t>(columns->rows());
    array->n_buffers = 1;
    array->buffers = held.buffers.data();
    held.children.resize(columns->columns.size());
    for (std::size_t i = 0; i < held.children.size(); ++i)
      share(columns, columns->columns[i], held.children[i]);
    add_children(*array, held);
  });
}

const char* get_last_error(ArrowArrayStream*) { return nullptr; }

void release_stream(ArrowArrayStream* stream) {
  delete static_cast<Stream*>(stream->private_data);
  stream->release = nullptr;
}

}  // namespace

ArrowArrayStream* make_arrow_stream(std::shared_ptr<const ColumnSet> columns) {
  auto state = std::make_unique<Stream>(Stream{std::move(columns)});
  auto stream = std::make_unique<ArrowArrayStream>();
  *stream = {&get_schema, &get_next, &get_last_error, &release_stream, state.release()};
  return stream.release();
}

void delete_arrow_stream(ArrowArrayStream* stream) noexcept {
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

}  // namespace headrace::python
