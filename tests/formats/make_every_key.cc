// Writes what every_key.h makes up into a new folder: once for each state of the formats, before anything is
// changed.

#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>

#include "tests/formats/every_key.h"

namespace {

void write(const std::filesystem::path& path, const nlohmann::json& document) {
  std::ofstream out(path, std::ios::binary);
  out.exceptions(std::ios::badbit | std::ios::failbit);
  out << document.dump(1) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs(
        "usage: commtune-make-every-key FOLDER    (a new one: what was stored once is never made again)\n",
        stderr);
    return 2;
  }
  try {
    const std::filesystem::path folder = argv[1];
    if (!std::filesystem::create_directory(folder))
      throw std::runtime_error(folder.string() + " is there already");
    for (const auto& [name, document] : commtune::tests::every_document())
      write(folder / (name + ".json"), document);
    write(folder / "digests.json", commtune::tests::every_digest());
    commtune::tests::make_database(folder / "store.db");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "commtune-make-every-key: %s\n", error.what());
    return 1;
  }
  return 0;
}
