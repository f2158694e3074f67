"""tests/lint/includes finds what leaves the order, and lets the rest be."""

import importlib.machinery
import importlib.util
import pathlib
import tempfile
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).parent
loader = importlib.machinery.SourceFileLoader("includes", str(HERE / "includes"))
includes = importlib.util.module_from_spec(importlib.util.spec_from_loader("includes", loader))
loader.exec_module(includes)


class IncludesTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)

    def mistakes(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return list(includes.mistakes_in(self.root))

    def assert_refused(self, name, text, why):
        mistakes = self.mistakes(name, text)
        self.assertEqual(len(mistakes), 1, mistakes)
        self.assertIn(why, mistakes[0])

    def test_an_include_that_points_up_is_refused(self):
        self.assert_refused(
            "server/trials/a.cc", '#include "server/jobs/tuner.h"\n', "server/trials may not see server/jobs"
        )

    def test_an_include_that_points_sideways_is_refused(self):
        self.assert_refused(
            "server/supervisor/a.h", '#include "server/worker/session.h"\n', "may not see server/worker"
        )

    def test_clients_see_nothing_of_the_server(self):
        self.assert_refused("client/cpp/a.cc", '#include "server/base/log.h"\n', "client/cpp may not see server/base")

    def test_the_launcher_sees_devices_and_no_more_of_the_server(self):
        text = '#include "server/device/cuda/driver_api.h"\n#include "client/cpp/client.h"\n'
        self.assertEqual(self.mistakes("client/cpp/launch/a.cc", text), [])
        self.assert_refused(
            "client/cpp/launch/b.cc", '#include "server/store/store.h"\n', "client/cpp/launch may not see server/store"
        )

    def test_the_worker_knows_no_grpc(self):
        self.assert_refused("server/worker/a.cc", "#include <grpcpp/grpcpp.h>\n", "knows no gRPC")
        self.assert_refused("server/worker/a.cc", '#include "attune/v1/service.grpc.pb.h"\n', "knows no gRPC")

    def test_a_folder_without_a_place_is_refused(self):
        self.assert_refused("server/attic/a.cc", "", "has no place")

    def test_a_folder_of_more_than_40_files_is_refused(self):
        for number in range(39):
            self.assertEqual(self.mistakes(f"server/jobs/file_{number}.cc", ""), [])
        self.assertEqual(self.mistakes("server/jobs/file_0_test.cc", ""), [])
        self.assertEqual(self.mistakes("server/jobs/testing/fake.h", ""), [])
        self.assertEqual(self.mistakes("server/jobs/inner/file.cc", ""), [])
        self.assertEqual(self.mistakes("server/jobs/file_39.h", ""), [])
        self.assert_refused("server/jobs/file_40.cc", "", "server/jobs: 41 files")

    def test_a_library_that_points_up_is_refused(self):
        text = "attune_library(store\n  SOURCES a.cc\n  LINK attune_base attune_catalog)\nattune_test(store LINK attune_jobs)\n"
        self.assert_refused("server/store/CMakeLists.txt", text, "links attune_catalog")

    def test_what_points_down_is_let_be(self):
        text = '#include <map>\n#include "absl/strings/str_cat.h"\n#include "server/store/store.h"\n#include "attune/v1/trial.pb.h"\n'
        self.assertEqual(self.mistakes("server/catalog/a.cc", text), [])

    def test_tests_and_fakes_may_look_anywhere(self):
        self.assertEqual(self.mistakes("server/store/a_test.cc", '#include "server/jobs/tuner.h"\n'), [])
        self.assertEqual(self.mistakes("server/store/testing/a.h", '#include "server/jobs/tuner.h"\n'), [])

    def test_a_worker_that_needs_grpc_is_refused(self):
        def mistakes(needed):
            ldd = unittest.mock.Mock(stdout=needed)
            with unittest.mock.patch.object(includes.subprocess, "run", return_value=ldd):
                return list(includes.mistakes_in_worker("attune-worker"))

        self.assertEqual(mistakes("libprotobuf.so.32 => /usr/lib/libprotobuf.so.32"), [])
        self.assertIn("libgrpc++.so.1.51", mistakes("libgrpc++.so.1.51 => /usr/lib/libgrpc++.so.1.51")[0])


if __name__ == "__main__":
    unittest.main()
