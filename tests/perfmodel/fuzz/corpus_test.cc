// The fuzzers' corpus, and random mutations of it, in the normal suite: what once broke stays mended.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "perfmodel/random.h"
#include "tests/perfmodel/fuzz/targets.h"

namespace commtune {
namespace {

struct Target {
  const char* name;
  void (*run)(std::string_view);
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

class Corpus : public testing::TestWithParam<Target> {
 protected:
  static std::vector<std::string> seeds() {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(COMMTUNE_FUZZ_CORPUS) / GetParam().name)) {
      paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> texts;
    for (const auto& path : paths) {
      std::ifstream file(path, std::ios::binary);
      texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return texts;
  }
};

/// The text with a few bytes changed, a part taken out, or a part doubled.
std::string mutated(std::string text, Random& random) {
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

TEST_P(Corpus, PassesThroughTheTarget) {
  const auto texts = seeds();
  ASSERT_FALSE(texts.empty());
  for (const std::string& text : texts) {
    GetParam().run(text);
  }
}

TEST_P(Corpus, PassesThroughTheTargetWhenMutated) {
  constexpr int kMutations = 200;
  Random random(1);
  for (const std::string& text : seeds()) {
    for (int i = 0; i < kMutations; ++i) {
      GetParam().run(mutated(text, random));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Corpus,
                         testing::Values(Target{"profile", fuzz::profile}, Target{"plan", fuzz::plan},
                                         Target{"cluster", fuzz::cluster},
                                         Target{"quantity", fuzz::quantity}),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace commtune
