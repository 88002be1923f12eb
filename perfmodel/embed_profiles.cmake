# Writes a C++ source that holds the texts of JSON files, in parts: compilers need not take a literal above 64 KiB.
# Usage: cmake -DOUTPUT=embedded_profiles.cc -DFILES=a.json,b.json -P embed_profiles.cmake
set(part_length 16000)
string(REPLACE "," ";" FILES "${FILES}")
set(parts "")
set(entries "")
foreach(path IN LISTS FILES)
  get_filename_component(name "${path}" NAME_WE)
  file(READ "${path}" text)
  string(APPEND parts "constexpr std::string_view ${name}_parts[] = {\n")
  string(LENGTH "${text}" left)
  while(left GREATER 0)
    # Up to the last line that ends within a part's length, so that no character is cut in two.
    string(SUBSTRING "${text}" 0 ${part_length} part)
    string(FIND "${part}" "\n" end REVERSE)
    math(EXPR end "${end} + 1")
    if(end EQUAL 0)
      message(FATAL_ERROR "${path}: a line is longer than ${part_length} bytes, or the last one has no end")
    endif()
    string(SUBSTRING "${text}" 0 ${end} part)
    string(SUBSTRING "${text}" ${end} -1 text)
    string(LENGTH "${text}" left)
    string(APPEND parts "    R\"json(${part})json\",\n")
  endwhile()
  string(APPEND parts "};\n")
  string(APPEND entries "    {\"${name}\", ${name}_parts},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Made by perfmodel/embed_profiles.cmake.
#include \"perfmodel/embedded_profiles.h\"

namespace commtune {

namespace {

${parts}
constexpr EmbeddedProfile kProfiles[] = {
${entries}};

}  // namespace

std::span<const EmbeddedProfile> embedded_profiles() { return kProfiles; }

}  // namespace commtune
")
