"""A fleet's manifests and compose files: one database, one address, and whatever names something names it right."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from urllib.parse import parse_qs, urlsplit

from manifests import ROOT, assembled, documents, merged, of_kind

sys.path.insert(0, str(ROOT / "tests/e2e"))
import postgresql

FLEET = ROOT / "deploy/fleet"
CREATE_ROLE = FLEET / "kubernetes-postgresql/create-role.sh"
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
KNOWN_FLAGS = set(re.findall(r"ABSL_FLAG\(\s*[^;]*?,\s*(\w+),", (ROOT / "server/daemon/flags.cc").read_text()))


def pod_of(workload):
    return workload["spec"]["template"]["spec"]


def container_of(workload):
    (container,) = pod_of(workload)["containers"]
    return container


def environment_of(workload):
    return {variable["name"]: variable for variable in container_of(workload)["env"]}


def flags_of_file(manifests, name):
    lines = of_kind(manifests, "ConfigMap", name)["data"]["attuned.flags"].splitlines()
    return dict(line.removeprefix("--").split("=", 1) for line in lines)


def labels_of(workload):
    return workload["spec"]["template"]["metadata"]["labels"]


def secrets_of(workload):
    """What is wanted of which Secret: keys, or None for all that are in it."""
    wanted = {}
    for container in pod_of(workload).get("initContainers", []) + pod_of(workload)["containers"]:
        for variable in container.get("env", []):
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            if reference:
                wanted.setdefault(reference["name"], set()).add(reference["key"])
    for volume in pod_of(workload)["volumes"]:
        if "secret" in volume:
            items = volume["secret"].get("items", [])
            wanted.setdefault(volume["secret"]["secretName"], set()).update(item["key"] for item in items)
    return wanted


class KubernetesFleetTest(unittest.TestCase):
    def setUp(self):
        self.manifests = assembled(FLEET / "kubernetes-postgresql")
        self.host = of_kind(self.manifests, "DaemonSet", "attuned")
        self.gateway = of_kind(self.manifests, "StatefulSet", "attune-gateway")
        self.database = of_kind(self.manifests, "StatefulSet", "attune-postgresql")
        self.store = urlsplit(of_kind(self.manifests, "ConfigMap", "attune-store")["data"]["store"])

    def test_without_the_server_it_is_the_same_but_for_the_server(self):
        names = {(m["kind"], m["metadata"]["name"]) for m in self.manifests}
        outside = {(m["kind"], m["metadata"]["name"]) for m in assembled(FLEET / "kubernetes")}
        kinds = ("Service", "NetworkPolicy", "StatefulSet", "ConfigMap")
        self.assertEqual(names - outside, {(kind, "attune-postgresql") for kind in kinds})
        self.assertLess(outside, names)

    def test_hosts_and_gateways_have_one_database_and_its_password(self):
        for workload in (self.host, self.gateway):
            environment = environment_of(workload)
            reference = {"configMapKeyRef": {"name": "attune-store", "key": "store"}}
            self.assertEqual(environment["ATTUNED_STORE"]["valueFrom"], reference)
            password = {"secretKeyRef": {"name": "attune-database", "key": "password"}}
            self.assertEqual(environment["PGPASSWORD"]["valueFrom"], password)
        self.assertEqual(environment_of(self.database)["ATTUNE_DATABASE_PASSWORD"]["valueFrom"], password)
        self.assertEqual((self.store.username, self.store.password, self.store.path), ("attune", None, "/attune"))

    def test_the_database_is_where_they_look_for_it_and_lets_them_in_alone(self):
        service = of_kind(self.manifests, "Service", "attune-postgresql")
        self.assertEqual(self.store.hostname, "{name}.{namespace}.svc".format(**service["metadata"]))
        self.assertEqual(service["spec"]["selector"], labels_of(self.database))
        (port,) = service["spec"]["ports"]
        (listens,) = container_of(self.database)["ports"]
        self.assertEqual((port["port"], port["targetPort"]), (self.store.port or 5432, listens["name"]))
        policy = of_kind(self.manifests, "NetworkPolicy", "attune-postgresql")["spec"]
        self.assertEqual(policy["podSelector"]["matchLabels"], labels_of(self.database))
        (rule,) = policy["ingress"]
        (expression,) = rule["from"][0]["podSelector"]["matchExpressions"]
        daemons = {labels_of(workload)["app.kubernetes.io/name"] for workload in (self.host, self.gateway)}
        self.assertEqual((expression["operator"], set(expression["values"])), ("In", daemons))
        self.assertEqual([p["port"] for p in rule["ports"]], [listens["containerPort"]])

    def test_what_goes_to_the_database_is_encrypted_and_its_certificate_checked(self):
        options = parse_qs(self.store.query)
        self.assertEqual(options["sslmode"], ["verify-full"])
        (authority,) = options["sslrootcert"]
        for workload in (self.host, self.gateway):
            mounts = {mount["mountPath"]: mount["name"] for mount in container_of(workload)["volumeMounts"]}
            volumes = {volume["name"]: volume for volume in pod_of(workload)["volumes"]}
            secret = volumes[mounts[str(pathlib.Path(authority).parent)]]["secret"]
            self.assertIn({"key": pathlib.Path(authority).name, "path": pathlib.Path(authority).name}, secret["items"])
        arguments = container_of(self.database)["args"]
        mounts = [mount["mountPath"] for mount in container_of(self.database)["volumeMounts"]]
        self.assertIn("ssl=on", arguments)
        for argument in arguments:
            if argument.startswith(("ssl_cert_file=", "ssl_key_file=")):
                self.assertIn(str(pathlib.Path(argument.partition("=")[2]).parent), mounts)

    def test_flags_are_the_daemons(self):
        self.assertIn("store", KNOWN_FLAGS)
        for workload in (self.host, self.gateway):
            named = {n.removeprefix("ATTUNED_").lower() for n in environment_of(workload) if n.startswith("ATTUNED_")}
            self.assertIn("store", named)
            self.assertLessEqual(named, KNOWN_FLAGS)
        self.assertLessEqual(set(flags_of_file(self.manifests, "attune-gateway")), KNOWN_FLAGS)

    def test_the_limits_of_the_database_are_everybodys(self):
        host, gateway = (flags_of_file(self.manifests, name) for name in ("attuned", "attune-gateway"))
        self.assertEqual(host, gateway, "each keeps to its own")

    def test_a_gateway_has_no_device(self):
        self.assertNotIn("nvidia.com/gpu", container_of(self.gateway)["resources"]["limits"])
        self.assertIn("--devices=none", container_of(self.gateway)["command"])

    def test_one_address_is_both_gateways_and_one_may_go(self):
        self.assertGreaterEqual(self.gateway["spec"]["replicas"], 2)
        self.assertEqual(self.gateway["spec"]["selector"]["matchLabels"], labels_of(self.gateway))
        port = container_of(self.gateway)["ports"][0]
        addresses = flags_of_file(self.manifests, "attune-gateway")["listen"].split(",")
        self.assertIn(f"0.0.0.0:{port['containerPort']}", addresses)
        for name in ("attune-gateway", self.gateway["spec"]["serviceName"]):
            service = of_kind(self.manifests, "Service", name)["spec"]
            self.assertEqual(service["selector"], labels_of(self.gateway))
            self.assertEqual([p["targetPort"] for p in service["ports"]], [port["name"]])
        policy = of_kind(self.manifests, "NetworkPolicy", "attune-gateway")["spec"]
        self.assertEqual(policy["podSelector"]["matchLabels"], labels_of(self.gateway))
        self.assertEqual([p["port"] for p in policy["ingress"][0]["ports"]], [port["containerPort"]])
        budget = of_kind(self.manifests, "PodDisruptionBudget", "attune-gateway")["spec"]
        self.assertEqual(budget["selector"]["matchLabels"], labels_of(self.gateway))
        self.assertLess(budget["maxUnavailable"], self.gateway["spec"]["replicas"])

    def test_each_gateway_keeps_a_directory_of_its_own(self):
        data = flags_of_file(self.manifests, "attune-gateway")["data_dir"]
        claims = {claim["metadata"]["name"] for claim in self.gateway["spec"]["volumeClaimTemplates"]}
        mounts = {mount["mountPath"]: mount["name"] for mount in container_of(self.gateway)["volumeMounts"]}
        self.assertIn(mounts[data], claims)

    def test_mounts_have_volumes(self):
        for workload in (self.host, self.gateway, self.database):
            pod = pod_of(workload)
            volumes = {volume["name"] for volume in pod["volumes"]}
            volumes |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
            containers = pod.get("initContainers", []) + pod["containers"]
            self.assertEqual({m["name"] for each in containers for m in each["volumeMounts"]}, volumes)

    def test_probes_ask_where_the_gateway_listens(self):
        addresses = flags_of_file(self.manifests, "attune-gateway")["listen"].split(",")
        for probe in PROBES:
            probe = container_of(self.gateway)[probe]
            (server,) = re.findall(r"--server=(\S+)", " ".join(probe["exec"]["command"]))
            self.assertIn(server, addresses)
            (timeout,) = re.findall(r"--timeout=(\d+)s", " ".join(probe["exec"]["command"]))
            self.assertLess(int(timeout), probe["timeoutSeconds"])

    def test_the_grace_period_has_room_for_the_drain(self):
        pause = int(container_of(self.gateway)["lifecycle"]["preStop"]["exec"]["command"][1])
        drain = int(flags_of_file(self.manifests, "attune-gateway")["drain_timeout"].removesuffix("s"))
        self.assertGreater(pod_of(self.gateway)["terminationGracePeriodSeconds"], pause + drain + 5)

    def test_no_pod_has_a_privilege(self):
        wanted = {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        for workload in (self.gateway, self.database):
            pod = pod_of(workload)
            self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
            self.assertGreater(pod["securityContext"]["runAsUser"], 0)
            self.assertIs(pod["automountServiceAccountToken"], False)
            self.assertIs(pod["enableServiceLinks"], False, "its variables could be taken for flags")
            for container in pod.get("initContainers", []) + pod["containers"]:
                self.assertEqual(container["securityContext"], wanted)

    def test_the_document_has_every_secret_made(self):
        document = (ROOT / "docs/fleet.md").read_text()
        wanted = {}
        for workload in (self.host, self.gateway, self.database):
            for name, keys in secrets_of(workload).items():
                wanted.setdefault(name, set()).update(keys)
        self.assertEqual(wanted["attune-database"], {"password", "ca.crt"})
        for name, keys in wanted.items():
            made = [line for line in document.splitlines() if re.search(rf"create secret \w+ {name} ", line)]
            self.assertTrue(made, name)
            for key in keys:
                self.assertIn(f"--from-file={key}=", made[0])

    def test_gateways_begin_with_the_tokens_of_the_secret(self):
        (init,) = pod_of(self.gateway)["initContainers"]
        mounts = {mount["name"]: mount["mountPath"] for mount in init["volumeMounts"]}
        self.assertEqual(mounts["data"], flags_of_file(self.manifests, "attune-gateway")["data_dir"])
        with tempfile.TemporaryDirectory() as folder:
            places = {}
            for name in ("tokens", "data"):
                places[name] = pathlib.Path(folder) / name
                places[name].mkdir()
            script = init["command"][-1]
            for name, place in places.items():
                self.assertIn(mounts[name] + "/tokens.binpb", script)
                script = script.replace(mounts[name], str(place))
            command = [*init["command"][:-1], script]
            kept = places["data"] / "tokens.binpb"
            kept.write_text("its own")
            subprocess.run(command, check=True)
            self.assertEqual(kept.read_text(), "its own", "there is no Secret")
            (places["tokens"] / "tokens.binpb").write_text("everybody's")
            subprocess.run(command, check=True)
            self.assertEqual(kept.read_text(), "everybody's")
            self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
            self.assertEqual([file.name for file in places["data"].iterdir()], ["tokens.binpb"])


@unittest.skipUnless(postgresql.programs(), "no PostgreSQL server is installed (Debian's package: postgresql-15)")
class CreateRoleTest(unittest.TestCase):
    def setUp(self):
        self.server = postgresql.PostgresqlServer()
        self.addCleanup(self.server.close)
        # The image's superuser is postgres.
        self.server.execute("CREATE ROLE postgres SUPERUSER LOGIN")
        self.psql("postgres", "postgres", "ALTER ROLE attune RENAME TO the_tests")

    def psql(self, role, database, sql):
        command = [postgresql.programs() / "psql", "-X", "-h", self.server.directory, "-U", role, "-d", database]
        return subprocess.run([*command, "-v", "ON_ERROR_STOP=1", "-qtAc", sql], capture_output=True, text=True)

    def create(self, **environment):
        path = f"{postgresql.programs()}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PGHOST": str(self.server.directory), **environment}
        return subprocess.run([CREATE_ROLE], env=environment, capture_output=True, text=True)

    def test_the_role_may_make_its_tables_and_nothing_else(self):
        made = self.create(ATTUNE_DATABASE_PASSWORD="it's; a $secret\"")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(self.psql("attune", "attune", "CREATE TABLE hosts (id int)").returncode, 0)
        rights = "rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls"
        role = self.psql(
            "postgres", "postgres", f"SELECT {rights}, rolpassword FROM pg_authid WHERE rolname = 'attune'"
        )
        self.assertRegex(role.stdout, r"^f\|SCRAM-SHA-256\$")
        self.psql("postgres", "postgres", "CREATE ROLE somebody LOGIN")
        self.assertNotEqual(self.psql("somebody", "attune", "SELECT 1").returncode, 0)

    def test_there_is_no_role_without_a_password(self):
        environment = {"ATTUNE_DATABASE_PASSWORD": ""}
        self.assertNotEqual(self.create(**environment).returncode, 0)
        roles = self.psql("postgres", "postgres", "SELECT count(*) FROM pg_roles WHERE rolname = 'attune'")
        self.assertEqual(roles.stdout.strip(), "0")


def spelt_out(text, environment):
    """A value of a compose file with its variables in it; KeyError for one that must be set and is not."""

    def value(match):
        name, operator, otherwise = match.groups()
        if environment.get(name):
            return environment[name]
        if operator != ":-":
            raise KeyError(f"{name}: {otherwise}")
        return otherwise

    return re.sub(r"\$\{(\w+)(:-|:\?)([^}]*)\}", value, text)


def joined(service, change):
    """As compose puts a second file's service over the first's: mappings join, volumes add up, commands change."""
    result = merged(service, {key: part for key, part in change.items() if key != "volumes"})
    return {**result, "volumes": service.get("volumes", []) + change.get("volumes", [])}


class ComposeTest(unittest.TestCase):
    def setUp(self):
        (self.file,) = documents(FLEET / "compose.yaml")
        (self.change,) = documents(FLEET / "compose.tls.yaml")
        plain = self.file["services"]
        self.assertLessEqual(set(self.change["services"]), set(plain))
        tls = {name: joined(service, self.change["services"].get(name, {})) for name, service in plain.items()}
        self.variants = {"plain": plain, "tls": tls}
        self.environment = {"ATTUNE_DATABASE_PASSWORD": "secret", "ATTUNE_TLS": "/srv/tls"}

    def daemons(self, services):
        return {name: service for name, service in services.items() if name != "postgresql"}

    def flags(self, service):
        flags = {
            name.removeprefix("ATTUNED_").lower(): spelt_out(value, self.environment)
            for name, value in service["environment"].items()
            if name.startswith("ATTUNED_")
        }
        return {**flags, **dict(word.removeprefix("--").split("=", 1) for word in service["command"])}

    def test_a_database_a_gateway_and_hosts_with_a_gpu_each(self):
        for services in self.variants.values():
            self.assertEqual(set(services), {"postgresql", "gateway", "gpu0", "gpu1"})
            cards = []
            for name in ("gpu0", "gpu1"):
                (device,) = services[name]["deploy"]["resources"]["reservations"]["devices"]
                cards += [spelt_out(card, self.environment) for card in device["device_ids"]]
            self.assertEqual(cards, ["0", "1"])
            self.assertNotIn("deploy", services["gateway"])
            self.assertIn("--devices=none", services["gateway"]["command"])
            for name, service in self.daemons(services).items():
                self.assertEqual("OCL_ICD_VENDORS" in service["environment"], name != "gateway", "the image's CPU device")
                self.assertEqual(service["depends_on"], {"postgresql": {"condition": "service_healthy"}})

    def test_flags_are_the_daemons_and_all_have_one_store(self):
        for name, services in self.variants.items():
            stores = set()
            for service in self.daemons(services).values():
                flags = self.flags(service)
                self.assertLessEqual(set(flags), KNOWN_FLAGS)
                stores.add(flags["store"])
                self.assertEqual(spelt_out(service["environment"]["PGPASSWORD"], self.environment), "secret")
            (store,) = stores
            store = urlsplit(store)
            self.assertEqual((store.username, store.password, store.path), ("attune", None, "/attune"))
            self.assertIn(store.hostname, services)
            self.assertEqual(parse_qs(store.query).get("sslmode"), ["verify-full"] if name == "tls" else None)

    def test_there_is_no_fleet_without_a_password(self):
        for services in self.variants.values():
            for service in services.values():
                with self.assertRaises(KeyError):
                    [spelt_out(value, {}) for value in service["environment"].values()]

    def test_a_port_is_published_to_others_by_choice_and_encrypted_with_tls(self):
        for name, services in self.variants.items():
            flags = self.flags(services["gateway"])
            (published,) = services["gateway"]["ports"]
            self.assertEqual(spelt_out(published, self.environment), "127.0.0.1:7411:7411")
            self.assertIn("0.0.0.0:7411", flags["listen"].split(","))
            self.assertEqual(flags["insecure"] == "true", name == "plain")
            self.assertEqual("tls_cert" in flags and "tls_key" in flags, name == "tls")
            (published,) = services["postgresql"]["ports"]
            self.assertEqual(spelt_out(published, self.environment), "127.0.0.1:5432:5432")
            self.assertEqual("ssl=on" in services["postgresql"]["command"], name == "tls")

    def test_what_is_named_is_mounted(self):
        for services in self.variants.values():
            used = set()
            for service in services.values():
                volumes = [spelt_out(volume, self.environment).split(":") for volume in service["volumes"]]
                used |= {volume[0] for volume in volumes if not volume[0].startswith((".", "/"))}
                folders = [pathlib.Path(volume[1]) for volume in volumes]
                named = [*service["environment"].values(), *service["command"]]
                for text in (spelt_out(text, self.environment) for text in named):
                    for path in re.findall(r"/etc/[\w./-]+", text):
                        self.assertTrue(any(pathlib.Path(path).is_relative_to(folder) for folder in folders), path)
                for source in (volume[0] for volume in volumes if volume[0].startswith("./")):
                    if source != "./database-tls":  # the operator's
                        self.assertTrue((FLEET / source).exists(), source)
            self.assertEqual(used, set(self.file["volumes"]))

    def test_daemons_are_asked_where_they_listen_and_have_the_time_to_drain(self):
        for service in self.daemons(self.file["services"]).values():
            (server,) = re.findall(r"--server=(\S+)", " ".join(service["healthcheck"]["test"]))
            self.assertIn(server, self.flags(service)["listen"].split(","))
            self.assertGreater(int(service["stop_grace_period"].removesuffix("s")), 15 + 5)
            self.assertIn("gateway" if "ports" in service else "gpu", service["volumes"][0])


if __name__ == "__main__":
    unittest.main()
