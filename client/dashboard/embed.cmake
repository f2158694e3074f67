# Writes a source with the bytes of files: cmake -DOUT=embedded.cc -DFILES="a;b" -P embed.cmake
# Each is named by its last part. Every byte is an escape of its own, so that no file can end its literal.
set(entries "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(................................................)" "\\1\n" lines "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" lines "${lines}")
  string(REPLACE "\n" "\"\n    \"" lines "${lines}")
  string(APPEND entries "      {\"${name}\", {\"${lines}\", ${size}}},\n")
endforeach()
file(WRITE ${OUT} "// Written by client/dashboard/embed.cmake.
#include \"client/dashboard/pages.h\"

namespace attune::dashboard {

const std::vector<EmbeddedFile>& EmbeddedFiles() {
  static const std::vector<EmbeddedFile> files = {
${entries}  };
  return files;
}

}  // namespace attune::dashboard
")
