// A compiler that is missing, fails, hangs, dies or lies is a typed error that says so; it leaves
// no process and no file behind.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/child_process.h"
#include "base/config.h"
#include "base/error.h"
#include "runtime/cpu/compile_c.h"
#include "runtime/cpu/llvm_library.h"
#include "tests/unit/compile_helpers.h"
#include "tests/unit/tensor_helpers.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

class CompilersThatFail : public testing::Test {
 protected:
  CompilersThatFail() { fs::create_directory(temp_); }

  // A C compiler that is this shell script.
  std::string script(const std::string& body) {
    const std::string path = folder_.path() + "/cc";
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    chmod(path.c_str(), 0755);
    return path;
  }
  std::string message_of(const std::string& compiler) {
    const test::Setting cc(config().c_compiler, compiler);
    const test::Setting temp(config().temp_dir, temp_);
    return test::thrown<CompileError>([] { compile_c("int f(void) { return 1; }", "e_4"); });
  }
  void TearDown() override {
    EXPECT_TRUE(fs::is_empty(temp_)) << "files were left behind";
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD) << "a process was left behind";
  }

  TempFolder folder_;
  std::string temp_ = folder_.path() + "/temp";
};

TEST_F(CompilersThatFail, to_be_found) {
  const test::Setting cc(config().c_compiler, std::string("/nowhere/cc"));
  EXPECT_FALSE(has_c_compiler());
  EXPECT_EQ(test::thrown<DeviceError>([] { compile_c("", "e_4"); }),
            "[CPU:C] there is no C compiler CC=/nowhere/cc; install one (apt install gcc, or "
            "clang), or set CC");
  const test::Setting none(config().c_compiler, std::string());
  const test::Setting path(config().search_path, std::string("/nowhere"));
  EXPECT_EQ(test::thrown<DeviceError>([] { compile_c("", "e_4"); }),
            "[CPU:C] there is no C compiler; install one (apt install gcc, or clang), or set CC");
}

TEST_F(CompilersThatFail, say_why) {
  const std::string cc = script("echo 'kernel.c:1: no such thing' >&2; exit 3");
  EXPECT_EQ(message_of(cc),
            "[CPU:C] e_4: " + cc + " ended with status 3:\nkernel.c:1: no such thing\n");
}

TEST_F(CompilersThatFail, by_writing_nothing) {
  const std::string cc = script("exit 0");
  EXPECT_EQ(message_of(cc), "[CPU:C] e_4: " + cc + " wrote no object");
}

TEST_F(CompilersThatFail, by_dying) {
  const std::string cc = script("kill -SEGV $$");
  EXPECT_EQ(message_of(cc), "[CPU:C] e_4: " + cc + " ended by signal 11");
}

TEST_F(CompilersThatFail, to_start) {
  const std::string path = folder_.path() + "/cc";
  std::ofstream(path) << "\x7f no program";
  chmod(path.c_str(), 0755);
  EXPECT_EQ(message_of(path), "[CPU:C] e_4: cannot run " + path + ": Exec format error");
}

// With a child of its own that holds the pipe, and a file in TMPDIR.
TEST_F(CompilersThatFail, to_end) {
  const std::string cc = script("touch $TMPDIR/left; sleep 1000 & sleep 1000");
  const test::Setting limit(config().compile_seconds, 1);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(message_of(cc), "[CPU:C] e_4: " + cc + " was killed after 1 s (WEFT_COMPILE_SECONDS)");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(500));
}

// The compiler has ended, and what it started holds the pipe: in its group, or in one of its own.
TEST_F(CompilersThatFail, without_waiting_for_what_they_started) {
  const auto start = std::chrono::steady_clock::now();
  const std::string cc = script("echo said; sleep 1000 & exit 3");
  EXPECT_EQ(message_of(cc), "[CPU:C] e_4: " + cc + " ended with status 3:\nsaid\n");
  const std::string apart = script("echo said; setsid sleep 5 & exit 3");
  EXPECT_EQ(message_of(apart), "[CPU:C] e_4: " + apart + " ended with status 3:\nsaid\n");
  const std::string loud = script("setsid timeout 5 yes & sleep 0.2; exit 3");
  EXPECT_EQ(message_of(loud).find("[CPU:C] e_4: " + loud + " ended with status 3:\ny\ny\n"), 0U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
}

// The output is the last argument but one.
TEST_F(CompilersThatFail, by_writing_what_is_no_file) {
  const std::string find = "while [ $# -gt 2 ]; do shift; done; ";
  const auto why = [&](const std::string& body) {
    const std::string cc = script(find + body);
    const std::string message = message_of(cc), begin = "[CPU:C] e_4: " + cc + " ";
    EXPECT_EQ(message.find(begin), 0U) << message;
    return message.substr(std::min(begin.size(), message.size()));
  };
  EXPECT_EQ(why("mkfifo $1"), "wrote no object: it is not a regular file");
  EXPECT_EQ(why("mkdir $1"), "wrote no object: it is not a regular file");
  EXPECT_EQ(why("ln -s /etc/passwd $1"), "wrote no object: it is a link");
  EXPECT_EQ(why("ln -s /dev/zero $1"), "wrote no object: it is a link");
  EXPECT_EQ(why("truncate -s 6442450944 $1"),
            "wrote an object of 6442450944 bytes; 268435456 are allowed");
  EXPECT_EQ(why(": > $1"), "wrote no object");
  EXPECT_EQ(why("yes | head -c 10000000; exit 1").find("ended with status 1:\ny\n"), 0U);
}

TEST_F(CompilersThatFail, on_bad_source_and_then_compile_good_source) {
  if (!has_c_compiler()) GTEST_SKIP() << "no C compiler";
  const std::string said =
      test::thrown<CompileError>([] { compile_c("void f( { nonsense", "e_4"); });
  EXPECT_EQ(said.find("[CPU:C] e_4: "), 0U) << said;
  EXPECT_NE(said.find("error"), std::string::npos) << said;
  test::expect_doubles(compile_c(test::kDoubleInC, "twice"));
}

TEST_F(CompilersThatFail, on_bad_ir_and_then_compile_good_ir) {
  if (!has_llvm()) GTEST_SKIP() << "no LLVM";
  std::string said =
      test::thrown<CompileError>([] { compile_llvm("define void @f() { ret i32 1 x }", "e_4"); });
  EXPECT_EQ(said.find("[CPU:LLVM] e_4: cannot parse: e_4:1:"), 0U) << said;
  // Parses, but a value is used before it is made.
  said = test::thrown<CompileError>([] {
    compile_llvm("define i32 @f() {\n  %b = add i32 %a, 1\n  %a = add i32 1, 1\n  ret i32 %b\n}",
                 "e_4");
  });
  EXPECT_EQ(said.find("[CPU:LLVM] e_4: is not legal: "), 0U) << said;
  test::expect_doubles(compile_llvm(test::kDoubleInLlvm, "twice"));
}

// LLVM's way to say so is to end the process.
TEST_F(CompilersThatFail, by_giving_up_and_then_compile_good_ir) {
  if (!has_llvm()) GTEST_SKIP() << "no LLVM";
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "what LLVM was at is lost, which is a leak";
#endif
  constexpr const char* text =
      "declare i64 @llvm.read_register.i64(metadata)\n"
      "define i64 @f() {\n"
      "  %r = call i64 @llvm.read_register.i64(metadata !0)\n"
      "  ret i64 %r\n"
      "}\n"
      "!0 = !{!\"nonsense\"}\n";
  for (int i = 0; i < 3; i++) {
    const std::string message = test::thrown<CompileError>([] { compile_llvm(text, "e_5"); });
    EXPECT_NE(message.find("e_5"), std::string::npos) << message;
    EXPECT_NE(message.find("gave up"), std::string::npos) << message;
    test::expect_doubles(compile_llvm(test::kDoubleInLlvm, "twice"));
  }
}

}  // namespace
}  // namespace weft
