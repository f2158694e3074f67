"""What the hash of a source does not depend on, and what it does."""

import unittest

from uncommented import uncommented


class UncommentedTest(unittest.TestCase):
    def same(self, one, other, suffix=".cc"):
        self.assertEqual(uncommented(one, suffix), uncommented(other, suffix))

    def different(self, one, other, suffix=".cc"):
        self.assertNotEqual(uncommented(one, suffix), uncommented(other, suffix))

    def test_comments_and_empty_lines_do_not_count(self):
        self.same("int a;  // one\nint b;\n", "int a;\n\n// other\n// lines\nint b;")
        self.same("f(/*count=*/1);\n", "f(/*number=*/1);\n")
        self.same("/* a\n   b */\nint c;\n", "int c;\n")
        self.same("// it's \\\n continued\nint a;\n", "int a;\n")

    def test_code_counts(self):
        self.different("int a = 1;\n", "int a = 2;\n")
        self.different("int a;\n", "// int a;\n")
        self.different("a / b;\n", "a;\n")
        self.different("int a, /**/ b;\n", "int a;\n")
        self.different("a/**/b", "ab")

    def test_what_looks_like_a_comment_in_a_literal_counts(self):
        for literal in ('"a //{} b"', '"\\"//{}"', "R\"(\n// {}\n)\"", 'R"x(/*{}*/ )" )x"', "'{}'"):
            self.different(f"f({literal.format(1)});\n", f"f({literal.format(2)});\n")

    def test_a_digits_separator_opens_no_literal(self):
        self.same("f(1'000);  // isn't\n", "f(1'000);\n")
        self.different("f(1'000, \"it's // 1\");\n", "f(1'000, \"it's // 2\");\n")

    def test_manifests_have_comments_of_their_own(self):
        self.same('name: "a"  # first\n', 'name: "a"\n', ".textproto")
        self.different('name: "a # 1"\n', 'name: "a # 2"\n', ".textproto")

    def test_other_files_count_as_they_are(self):
        self.different("# one\n", "# other\n", ".py")


if __name__ == "__main__":
    unittest.main()
