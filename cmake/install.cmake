# `cmake --install`: headers, the static library, and a package for find_package(headrace).
include(CMakePackageConfigHelpers)

set(headrace_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/headrace)

install(TARGETS headrace EXPORT headrace-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/headrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
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
