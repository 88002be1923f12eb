# `cpack` in a build folder makes a Debian package: both programs, the library and its header, the unit of the service, the manual.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME commtune)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "the maintainers of commtune <root@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "tunes the communication of distributed training jobs")
set(CPACK_PACKAGE_DESCRIPTION
  "Measures a cluster, ranks the ways in which a job's gradients can travel (parameter servers, all-reduce,
 fused, cut, reordered), says how far the best one is from a lower bound on what was measured, and replays it. With a service for job schedulers.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "openmpi-bin, openssh-client, passwd, init-system-helpers")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openssh-server, python3")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_CURRENT_LIST_DIR}/postinst ${CMAKE_CURRENT_LIST_DIR}/prerm ${CMAKE_CURRENT_LIST_DIR}/postrm)
include(CPack)
