# Writes a source that defines EmbeddedFiles(), with the bytes of files:
#   cmake -DOUT=embedded.cc -DHEADER=client/dashboard/pages.h -DNAMESPACE=attune::dashboard -DFILES="a;b" -P embed.cmake
# HEADER declares the function. Each file is named by its path below -DROOT, without that by its last part. Every byte is
# an escape of its own, so that no file can end its literal.
set(entries "")
foreach(file ${FILES})
  if(ROOT)
    file(RELATIVE_PATH name ${ROOT} ${file})
  else()
    get_filename_component(name ${file} NAME)
  endif()
  file(READ ${file} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(................................................)" "\\1\n" lines "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" lines "${lines}")
  string(REPLACE "\n" "\"\n    \"" lines "${lines}")
  string(APPEND entries "      {\"${name}\", {\"${lines}\", ${size}}},\n")
endforeach()
file(WRITE ${OUT} "// Written by client/embed.cmake.
#include \"${HEADER}\"

namespace ${NAMESPACE} {

const std::vector<EmbeddedFile>& EmbeddedFiles() {
  static const std::vector<EmbeddedFile> files = {
${entries}  };
  return files;
}

}  // namespace ${NAMESPACE}
")
