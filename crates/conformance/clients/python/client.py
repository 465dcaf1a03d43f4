"""A client as scripts are written in Python: list, watch, create, patch, a lease.

It prints one line for each thing that happens, so that what two servers make of it can be compared.
"""

import datetime
import os

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

namespace = os.environ["NAMESPACE"]
config.load_kube_config(os.environ["KUBECONFIG"])
api = client.ApiClient()
core = client.CoreV1Api(api)
custom = client.CustomObjectsApi(api)
leases = client.CoordinationV1Api(api)
WIDGETS = ("suite.example.com", "v1", namespace, "widgets")


def refused(what, call):
    try:
        call()
        print(what, "was not refused")
    except ApiException as error:
        print(what, "->", error.status, error.reason)


def config_maps():
    meta = client.V1ObjectMeta(name="one", labels={"client": "python"})
    made = core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=meta, data={"k": "v"}))
    print("created", made.metadata.name, made.data, made.metadata.creation_timestamp.tzinfo is not None)
    refused("a second one", lambda: core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=meta)))
    found = core.list_namespaced_config_map(namespace, label_selector="client=python")
    print("listed", [one.metadata.name for one in found.items], found.kind)
    since = found.metadata.resource_version
    patched = core.patch_namespaced_config_map("one", namespace, {"data": {"l": "w"}})
    print("patched", patched.data)
    patched.data = {"replaced": "yes"}
    print("replaced", core.replace_namespaced_config_map("one", namespace, patched).data)
    refused("a stale one", lambda: core.replace_namespaced_config_map("one", namespace, patched))
    print("deleted", core.delete_namespaced_config_map("one", namespace).status)
    refused("what is gone", lambda: core.read_namespaced_config_map("one", namespace))
    stream = watch.Watch()
    for event in stream.stream(
        core.list_namespaced_config_map, namespace, label_selector="client=python", resource_version=since, timeout_seconds=30
    ):
        print("watched", event["type"], event["object"].metadata.name, event["object"].data)
        if event["type"] == "DELETED":
            stream.stop()


def widgets():
    def widget(name, **spec):
        return {"apiVersion": "suite.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}

    for name in ["a", "b", "c"]:
        custom.create_namespaced_custom_object(*WIDGETS, widget(name, size=1))
    page = custom.list_namespaced_custom_object(*WIDGETS, limit=2)
    print("a page", [one["metadata"]["name"] for one in page["items"]], page["metadata"]["remainingItemCount"])
    rest = custom.list_namespaced_custom_object(*WIDGETS, limit=2, _continue=page["metadata"]["continue"])
    print("the rest", [one["metadata"]["name"] for one in rest["items"]])
    refused("too big", lambda: custom.create_namespaced_custom_object(*WIDGETS, widget("d", size=101)))
    patched = custom.patch_namespaced_custom_object(*WIDGETS, "a", {"spec": {"size": 2, "replicas": 3}})
    print("patched", patched["spec"], patched["metadata"]["generation"])
    status = custom.patch_namespaced_custom_object_status(*WIDGETS, "a", {"status": {"phase": "Up"}})
    print("status", status["status"])
    print("scale", custom.get_namespaced_custom_object_scale(*WIDGETS, "a")["spec"])
    resource = dynamic.DynamicClient(api).resources.get(api_version="suite.example.com/v1", kind="Widget")
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 4}]
    counted = resource.patch(body=operations, name="a", namespace=namespace, content_type="application/json-patch+json")
    print("json patch", counted.spec.to_dict())
    applied = resource.server_side_apply(
        body=widget("e", note="new"), name="e", namespace=namespace, field_manager="suite-python"
    )
    print("applied", applied.spec.to_dict(), applied.metadata.managedFields[0].manager)
    print("deleted", custom.delete_namespaced_custom_object(*WIDGETS, "a")["status"])
    # The real server answers zero from a cache that may lag behind.
    newest = custom.list_namespaced_custom_object(*WIDGETS)["metadata"]["resourceVersion"]
    custom.list_namespaced_custom_object(*WIDGETS, resource_version=newest)
    stream = watch.Watch()
    seen = []
    for event in stream.stream(custom.list_namespaced_custom_object, *WIDGETS, resource_version="0", timeout_seconds=30):
        seen.append((event["type"], event["object"]["metadata"]["name"]))
        if len(seen) == 3:
            stream.stop()
    print("watched", sorted(seen))


def a_lease():
    # The server wants the microseconds, and this client leaves them out when they are zero.
    now = datetime.datetime(2021, 1, 1, 0, 0, 0, 123456, tzinfo=datetime.timezone.utc)
    spec = client.V1LeaseSpec(holder_identity="python", lease_duration_seconds=15, acquire_time=now, renew_time=now)
    meta = client.V1ObjectMeta(name="suite-python")
    lease = leases.create_namespaced_lease(namespace, client.V1Lease(metadata=meta, spec=spec))
    print("a lease", lease.spec.holder_identity, lease.spec.renew_time.isoformat())
    lease.spec.renew_time = now + datetime.timedelta(seconds=5)
    renewed = leases.replace_namespaced_lease("suite-python", namespace, lease)
    print("renewed", renewed.spec.renew_time.isoformat())
    refused("renewed from an old state", lambda: leases.replace_namespaced_lease("suite-python", namespace, lease))


config_maps()
widgets()
a_lease()
