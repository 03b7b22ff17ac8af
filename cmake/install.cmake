# `cmake --install`: the public headers, the static libraries, and a package for find_package(headrace).
include(CMakePackageConfigHelpers)

# What a program includes (docs/reference.md). These and what they include are installed, no other header.
set(headrace_public_headers
  analysis/cluster/heat_map.h
  analysis/cluster/slow_ranks.h
  analysis/verdict/diagnose.h
  analysis/job/simulation.h
  analysis/step_trace.h
  pipeline/pipeline.h
  pipeline/producer.h
  pipeline/recorded_loop.h
  profile/annotation.h
  profile/current.h
  profile/probes.h
  profile/profile_json.h
  profile/snapshot.h
  profile/step.h
  queues/adaptive_recorder.h
  queues/blocking_queue.h
  queues/bounded_queue.h
  queues/mpmc_ring.h
  queues/reorder_buffer.h
  queues/spsc_queue.h
  queues/tbb_queue.h
  report/json.h
  report/page.h
  report/text.h
  timeline/device_profile.h
  timeline/merge.h
  timeline/trace_with_counters.h
  trace/trace.h
  transport/device.h
  transport/device_array.h
  transport/dlpack.h)
file(GLOB device_tables RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/include/headrace CONFIGURE_DEPENDS
  include/headrace/analysis/device/*.h include/headrace/analysis/device_memory/*.h)
list(APPEND headrace_public_headers ${device_tables})

set(pending ${headrace_public_headers})
set(headrace_public_headers)
while(pending)
  list(POP_FRONT pending header)
  if(header IN_LIST headrace_public_headers)
    continue()
  endif()
  list(APPEND headrace_public_headers ${header})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/headrace/${header})
  file(STRINGS include/headrace/${header} includes REGEX "^#include \"headrace/.*\"")
  list(TRANSFORM includes REPLACE "#include \"headrace/(.*)\"" "\\1")
  list(APPEND pending ${includes})
endwhile()

set(headrace_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/headrace)

install(TARGETS headrace headrace_profiler EXPORT headrace-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(header IN LISTS headrace_public_headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES include/headrace/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headrace/${folder})
endforeach()
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/include/headrace/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headrace)
install(EXPORT headrace-targets NAMESPACE headrace:: DESTINATION ${headrace_package_dir})

configure_package_config_file(cmake/headrace-config.cmake.in headrace-config.cmake
  INSTALL_DESTINATION ${headrace_package_dir})
write_basic_package_version_file(headrace-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    ${CMAKE_CURRENT_BINARY_DIR}/headrace-config.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/headrace-config-version.cmake
  DESTINATION ${headrace_package_dir})
