# CPack's Debian packages. Dependencies of the programs are found by dpkg-shlibdeps.
find_program(GZIP gzip)
set(debian ${CMAKE_CURRENT_SOURCE_DIR}/debian)

# Policy wants these compressed, without a name or time in them.
function(attune_install_compressed from name destination component)
  set(to ${CMAKE_CURRENT_BINARY_DIR}/${component}/${name}.gz)
  add_custom_command(OUTPUT ${to} COMMAND ${GZIP} -9nc ${from} > ${to} DEPENDS ${from} VERBATIM)
  set_property(TARGET attune_compressed APPEND PROPERTY SOURCES ${to})
  install(FILES ${to} DESTINATION ${destination} COMPONENT ${component} OPTIONAL)
endfunction()

# deploy/package says who builds, when, and the how manieth package of the version it is.
set(ATTUNE_PACKAGE_RELEASE 1 CACHE STRING "The packages' revision behind the version")
set(ATTUNE_PACKAGE_MAINTAINER "attune maintainers <root@localhost>" CACHE STRING "Who builds the packages")
set(ATTUNE_PACKAGE_DATE "Thu, 01 Jan 1970 00:00:00 +0000" CACHE STRING "When, as `date -R` says it")
configure_file(${debian}/changelog.in changelog @ONLY)

file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/daemon ${CMAKE_CURRENT_BINARY_DIR}/dev)
add_custom_target(attune_compressed)
foreach(pair daemon:attune dev:libattune-dev)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 component)
  list(GET pair 1 name)
  attune_install_compressed(${CMAKE_CURRENT_BINARY_DIR}/changelog changelog.Debian ${doc}/${name} ${component})
  attune_install_compressed(${CMAKE_SOURCE_DIR}/CHANGELOG.md changelog ${doc}/${name} ${component})
  install(FILES ${debian}/copyright DESTINATION ${doc}/${name} COMPONENT ${component})
  install(FILES ${debian}/${name}.lintian DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME ${name}
          COMPONENT ${component})
endforeach()

# A service's files are the package's alone: other prefixes get none outside of themselves.
option(ATTUNE_SERVICE "Install units, sysusers, tmpfiles and /etc/attune, as packages do" OFF)
if(ATTUNE_SERVICE)
  set(systemd ${CMAKE_SOURCE_DIR}/deploy/systemd)
  install(FILES ${systemd}/attuned.service ${systemd}/attune-sweep.service ${systemd}/attune-sweep.timer
                ${systemd}/attune-notify.service ${systemd}/attune-dashboard.service DESTINATION /lib/systemd/system COMPONENT daemon)
  install(FILES ${debian}/attune.sysusers DESTINATION /usr/lib/sysusers.d RENAME attune.conf COMPONENT daemon)
  install(FILES ${debian}/attune.tmpfiles DESTINATION /usr/lib/tmpfiles.d RENAME attune.conf COMPONENT daemon)
  install(FILES ${systemd}/attuned.flags ${systemd}/sweep.textproto DESTINATION /etc/attune COMPONENT daemon)
  install(DIRECTORY DESTINATION /etc/attune/notify.d COMPONENT daemon
          DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME attune)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${ATTUNE_PACKAGE_MAINTAINER})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/strip_libraries.cmake)
set(CPACK_COMPONENTS_ALL daemon dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${ATTUNE_PACKAGE_RELEASE})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_DAEMON_PACKAGE_NAME attune)
set(CPACK_DEBIAN_DAEMON_PACKAGE_SECTION science)
set(CPACK_DEBIAN_DAEMON_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS
    "systemd-standalone-sysusers | systemd-sysusers, systemd-standalone-tmpfiles | systemd-tmpfiles")
# Opened at run time: the CPU through OpenCL, and the linker that PoCL calls. A GPU's driver and NVRTC are the host's.
set(CPACK_DEBIAN_DAEMON_PACKAGE_RECOMMENDS "pocl-opencl-icd, ocl-icd-libopencl1, binutils")
set(CPACK_DEBIAN_DAEMON_PACKAGE_SUGGESTS "libattune-dev, python3")
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA
    ${debian}/conffiles ${debian}/postinst ${debian}/prerm ${debian}/postrm)
set(CPACK_COMPONENT_DAEMON_DESCRIPTION
"finds, proves and serves the fastest attention kernels
A daemon compiles parameterized kernel sources, checks every variant against
a reference, times those that are right, and keeps the results. Clients ask
for the best variant for a shape. Kernels run on NVIDIA GPUs through CUDA, or
on the CPU through OpenCL.

This package has the daemon, its kernels and the command line.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libattune-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
# The last: gRPC's own CMake package asks for its plugins.
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libgrpc++-dev, libprotobuf-dev, libabsl-dev, libssl-dev, protobuf-compiler-grpc")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS attune)
set(CPACK_COMPONENT_DEV_DESCRIPTION
"C++ client of attune (development files)
Headers and static libraries to ask an attune daemon for the best attention
kernel for a shape, and to launch it from C++ or C, with files for CMake's
find_package and for pkg-config, and the API's .proto files.")
include(CPack)
