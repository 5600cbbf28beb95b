# SPDX-License-Identifier: MIT
# Headers, CMake package and pkg-config file. All of it is independent of the architecture, so it
# goes under share/, and the installed tree may be moved.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/subfed)
install(TARGETS subfed EXPORT subfed_targets FILE_SET HEADERS)
install(EXPORT subfed_targets
  FILE subfedTargets.cmake
  NAMESPACE subfed::
  DESTINATION ${package_dir})
configure_package_config_file(cmake/subfedConfig.cmake.in subfedConfig.cmake
  INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
# While the version is 0.x, a minor version may break what the one before promised.
write_basic_package_version_file(subfedConfigVersion.cmake
  COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/subfedConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/subfedConfigVersion.cmake
  DESTINATION ${package_dir})

set(pc_dir ${CMAKE_INSTALL_DATADIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR
  BASE_DIRECTORY ${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig
  OUTPUT_VARIABLE pc_to_include)
configure_file(cmake/subfed.pc.in subfed.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/subfed.pc DESTINATION ${pc_dir})
