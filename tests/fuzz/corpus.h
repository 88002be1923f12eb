#pragma once
// A fuzzer's corpus, and random mutations of it, as tests of the normal suite: what once broke stays mended.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/base/random.h"

namespace commtune::fuzz {

struct Target {
  const char* name;  ///< of the folder in the corpus
  void (*run)(std::string_view);
  int mutations = 200;  ///< of each text
};

inline void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

/// The files of a folder, by name.
inline std::vector<std::string> texts_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

/// The text with a few bytes changed, a part taken out, or a part doubled.
inline std::string mutated(std::string text, Random& random) {
  static constexpr std::string_view kBytes = "0123456789-+.eE\"{}[],:nulltrefas \\\xff\x00\x7f";
  const std::size_t changes = 1 + random.below(4);
  for (std::size_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = random.below(text.size());
    const std::size_t length = std::min(1 + random.below(20), text.size() - at);
    switch (random.below(4)) {
      case 0:
        text[at] = kBytes[random.below(kBytes.size())];
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text.insert(at, 1, kBytes[random.below(kBytes.size())]);
    }
  }
  return text;
}

/// COMMTUNE_FUZZ_CORPUS is the folder of the suite that includes this.
class Corpus : public testing::TestWithParam<Target> {
 protected:
  static std::vector<std::string> seeds() {
    return texts_of(std::filesystem::path(COMMTUNE_FUZZ_CORPUS) / GetParam().name);
  }
};

TEST_P(Corpus, PassesThroughTheTarget) {
  const auto texts = seeds();
  ASSERT_FALSE(texts.empty());
  for (const std::string& text : texts) GetParam().run(text);
}

TEST_P(Corpus, PassesThroughTheTargetWhenMutated) {
  Random random(1);
  for (const std::string& text : seeds())
    for (int i = 0; i < GetParam().mutations; ++i) GetParam().run(mutated(text, random));
}

inline std::string name_of(const testing::TestParamInfo<Target>& target) { return target.param.name; }

}  // namespace commtune::fuzz
