"""The Kubernetes manifests: valid by Kubernetes' schema, and in keeping with the daemon's flags, health and drain.

Needs PyYAML (python3-yaml); for the schema the package kubernetes-validate (PyPI), which works without a network; for
what kustomize makes of them kubectl. What is missing is skipped.
"""

import pathlib
import re
import shutil
import subprocess
import unittest

from manifests import ROOT, assembled, documents, of_kind, yaml

try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None

MANIFESTS = ROOT / "deploy/kubernetes"
FLEETS = [ROOT / "deploy/fleet" / name for name in ("kubernetes", "kubernetes-postgresql")]
SERVER = ROOT / "server"
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


def variants():
    """The manifests of a daemon by itself, and with tls.yaml, by name."""
    return {"plain": documents(MANIFESTS / "attuned.yaml"), "tls": assembled(MANIFESTS)}


def pod_of(manifests):
    return of_kind(manifests, "DaemonSet")["spec"]["template"]["spec"]


def daemon_of(manifests):
    (container,) = pod_of(manifests)["containers"]
    return container


def flags_of(manifests):
    """Flags by name: of the environment and, which win, of the flag file."""
    prefix = "ATTUNED_"
    flags = {
        variable["name"].removeprefix(prefix).lower(): variable["value"]
        for variable in daemon_of(manifests)["env"]
        if variable["name"].startswith(prefix)
    }
    for line in of_kind(manifests, "ConfigMap")["data"]["attuned.flags"].splitlines():
        name, _, value = line.removeprefix("--").partition("=")
        flags[name] = value
    return flags


def seconds(duration):
    (number,) = re.fullmatch(r"(\d+)s", duration).groups()
    return int(number)


class KubernetesTest(unittest.TestCase):
    @unittest.skipIf(kubernetes_validate is None, "kubernetes-validate is not installed (PyPI)")
    def test_the_schema_takes_every_manifest(self):
        for manifests in [*variants().values(), *map(assembled, FLEETS)]:
            for manifest in manifests:
                for version in ("1.27", kubernetes_validate.latest_version()):
                    kubernetes_validate.validate(manifest, version, strict=True)

    @unittest.skipIf(kubernetes_validate is None, "kubernetes-validate is not installed (PyPI)")
    def test_the_schema_finds_a_misspelt_field(self):
        manifest = of_kind(documents(MANIFESTS / "attuned.yaml"), "DaemonSet")
        manifest["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)

    @unittest.skipIf(shutil.which("kubectl") is None, "kubectl is not installed")
    def test_kustomize_makes_what_is_checked_here(self):
        def sorted_lists(value):
            if isinstance(value, dict):
                return {key: sorted_lists(part) for key, part in sorted(value.items())}
            return sorted(map(sorted_lists, value), key=repr) if isinstance(value, list) else value

        def by_name(manifests):
            return {f"{each['kind']} {each['metadata']['name']}": sorted_lists(each) for each in manifests}

        for folder in (MANIFESTS, *FLEETS):
            made = subprocess.run(["kubectl", "kustomize", folder], check=True, capture_output=True, text=True).stdout
            self.assertEqual(by_name(yaml.safe_load_all(made)), by_name(assembled(folder)))

    def test_flags_are_the_daemons(self):
        known = set(re.findall(r"ABSL_FLAG\(\s*[^;]*?,\s*(\w+),", (SERVER / "daemon/flags.cc").read_text()))
        self.assertIn("drain_timeout", known)
        for manifests in variants().values():
            self.assertLessEqual(set(flags_of(manifests)), known)
            command = daemon_of(manifests)["command"]
            self.assertEqual(command, ["attuned", "--flagfile=/etc/attune/attuned.flags"])

    def test_a_port_of_all_addresses_is_either_encrypted_or_said_to_be_open(self):
        for manifests in variants().values():
            flags = flags_of(manifests)
            self.assertIn("0.0.0.0:7411", flags["listen"].split(","))
            # The daemon refuses both, and neither.
            self.assertNotEqual(flags["insecure"] == "true", "tls_cert" in flags)
            self.assertEqual("tls_cert" in flags, "tls_key" in flags)

    def test_grpc_probes_ask_for_what_the_health_service_knows(self):
        source = (SERVER / "service/principal_server.cc").read_text()
        known = {"", *re.findall(r'kTuningHealth\[\] = "([^"]+)"', source)}
        self.assertEqual(known, {"", "attune.tuning"})
        manifests = variants()["plain"]
        asked = {probe: daemon_of(manifests)[probe]["grpc"]["service"] for probe in PROBES}
        self.assertLessEqual(set(asked.values()), known)
        # No device is no reason to restart: that would end a daemon that answers.
        self.assertEqual((asked["startupProbe"], asked["livenessProbe"]), ("", ""))
        self.assertEqual(asked["readinessProbe"], "attune.tuning")
        port = flags_of(manifests)["listen"].rpartition(":")[2]
        self.assertEqual({str(daemon_of(manifests)[probe]["grpc"]["port"]) for probe in PROBES}, {port})

    def test_with_tls_no_probe_speaks_in_clear_to_the_port(self):
        manifests = variants()["tls"]
        listens = flags_of(manifests)["listen"].split(",")
        for probe in PROBES:
            self.assertNotIn("grpc", daemon_of(manifests)[probe])
            command = " ".join(daemon_of(manifests)[probe]["exec"]["command"])
            (server,) = re.findall(r"--server=(\S+)", command)
            self.assertIn(server, listens)
            (timeout,) = re.findall(r"--timeout=(\S+)", command)
            self.assertLess(seconds(timeout), daemon_of(manifests)[probe]["timeoutSeconds"])

    def test_the_grace_period_has_room_for_the_drain(self):
        for manifests in variants().values():
            command, pause = daemon_of(manifests)["lifecycle"]["preStop"]["exec"]["command"]
            self.assertEqual(command, "sleep")
            drained = int(pause) + seconds(flags_of(manifests)["drain_timeout"]) + 5
            self.assertGreater(pod_of(manifests)["terminationGracePeriodSeconds"], drained)

    def test_the_daemon_has_no_privilege_and_one_gpu(self):
        for manifests in variants().values():
            pod, container = pod_of(manifests), daemon_of(manifests)
            self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
            self.assertGreater(pod["securityContext"]["runAsUser"], 0)
            self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & set(pod))
            wanted = {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            self.assertEqual(container["securityContext"], wanted)
            self.assertEqual(container["resources"]["limits"]["nvidia.com/gpu"], 1)

    def test_no_pod_is_ready_for_its_cpu(self):
        for manifests in variants().values():
            daemon = daemon_of(manifests)
            environment = {variable["name"]: variable["value"] for variable in daemon["env"]}
            for name in ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"):
                self.assertIn(environment[name], [mount["mountPath"] for mount in daemon["volumeMounts"]])

    def test_what_the_daemon_writes_is_a_volume_that_can_be_written(self):
        for manifests in variants().values():
            mounts = {mount["mountPath"]: mount for mount in daemon_of(manifests)["volumeMounts"]}
            volumes = {volume["name"] for volume in pod_of(manifests)["volumes"]}
            self.assertEqual({mount["name"] for mount in mounts.values()}, volumes)
            flags, environment = flags_of(manifests), daemon_of(manifests)["env"]
            written = ["/tmp", flags["data_dir"], flags["lock_dir"]]
            written += [v["value"] for v in environment if v["name"] == "CUDA_CACHE_PATH"]
            written += [a.removeprefix("unix:") for a in flags["listen"].split(",") if a.startswith("unix:")]
            self.assertEqual(len(written), 5)
            for path in written:
                above = [mount for mount in mounts if pathlib.Path(path).is_relative_to(mount)]
                self.assertTrue(above, path)
                self.assertNotIn("readOnly", mounts[above[0]], path)
            for name in ("tls_cert", "tls_key"):
                if name in flags:
                    self.assertIn(str(pathlib.Path(flags[name]).parent), mounts)

    def test_names_fit_together(self):
        for manifests in variants().values():
            template = of_kind(manifests, "DaemonSet")["spec"]["template"]
            labels = template["metadata"]["labels"]
            self.assertEqual(of_kind(manifests, "DaemonSet")["spec"]["selector"]["matchLabels"], labels)
            self.assertEqual(of_kind(manifests, "Service")["spec"]["selector"], labels)
            self.assertEqual(of_kind(manifests, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"], labels)
            accounts = of_kind(manifests, "ServiceAccount")
            self.assertEqual(template["spec"]["serviceAccountName"], accounts["metadata"]["name"])
            space = of_kind(manifests, "Namespace")["metadata"]["name"]
            spaces = {each["metadata"].get("namespace") for each in manifests if each["kind"] != "Namespace"}
            self.assertEqual(spaces, {space})


if __name__ == "__main__":
    unittest.main()
