# Writes a C++ source that holds the texts of JSON files.
# Usage: cmake -DOUTPUT=embedded_profiles.cc -DFILES=a.json,b.json -P embed_profiles.cmake
string(REPLACE "," ";" FILES "${FILES}")
set(entries "")
foreach(path IN LISTS FILES)
  get_filename_component(name "${path}" NAME_WE)
  file(READ "${path}" text)
  string(APPEND entries "    {\"${name}\", R\"json(${text})json\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Made by perfmodel/embed_profiles.cmake.
#include \"perfmodel/embedded_profiles.h\"

namespace commtune {

namespace {

constexpr EmbeddedProfile kProfiles[] = {
${entries}};

}  // namespace

std::span<const EmbeddedProfile> embedded_profiles() { return kProfiles; }

}  // namespace commtune
")
