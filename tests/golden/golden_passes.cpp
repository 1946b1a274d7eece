// Golden tests: tests/golden/<pass>/<case>.txt holds a graph, a line `---`, and what the pass makes
// of it. WEFT_UPDATE_GOLDEN=1 writes the second part anew.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/arena.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "symbolic/simplify.h"

namespace weft {
namespace {

using PassFunction = std::function<UOp(UOp)>;
const std::map<std::string, PassFunction>& passes() {
  static const std::map<std::string, PassFunction> all = {
      {"simplify", [](UOp n) { return simplify(n); }},
  };
  return all;
}

std::vector<std::filesystem::path> cases() {
  std::vector<std::filesystem::path> out;
  for (const auto& [name, pass] : passes()) {
    const auto folder = std::filesystem::path(WEFT_SOURCE_DIR) / "tests/golden" / name;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      out.push_back(entry.path());
  }
  return out;
}

std::string read(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Golden : public testing::TestWithParam<std::filesystem::path> {};
INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(cases()), [](const auto& test) {
  return test.param.parent_path().filename().string() + "_" + test.param.stem().string();
});

TEST_P(Golden, Output) {
  const std::string text = read(GetParam());
  const size_t cut = text.find("---\n");
  ASSERT_NE(cut, std::string::npos) << "no line ---";
  const std::string input = text.substr(0, cut);
  Arena arena;
  const PassFunction& pass = passes().at(GetParam().parent_path().filename().string());
  const std::string output = print(pass(parse(arena, input)));
  if (std::getenv("WEFT_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(GetParam()) << input << "---\n" << output;
    return;
  }
  EXPECT_EQ(output, text.substr(cut + 4));
}

}  // namespace
}  // namespace weft
