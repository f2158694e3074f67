# CPack strips programs alone; static libraries keep what a linker needs.
file(GLOB_RECURSE libraries ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.a)
foreach(library ${libraries})
  execute_process(COMMAND strip --strip-debug --remove-section=.comment ${library} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
