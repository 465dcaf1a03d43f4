//! What kubectl shows and says, with both servers behind it.

use conformance::Story;

use crate::court::cases;

cases![
    kubectl_gets_hosts,
    kubectl_gets_in_many_formats,
    kubectl_selects_and_sorts,
    kubectl_watches,
    kubectl_describes_hosts,
    kubectl_describes_built_ins,
    kubectl_explains_hosts,
    kubectl_explains_recursively,
    kubectl_explains_built_ins,
    kubectl_applies_from_the_client,
    kubectl_applies_on_the_server,
    kubectl_applies_into_a_conflict,
    kubectl_moves_from_client_to_server,
    kubectl_diffs,
    kubectl_edits,
    kubectl_patches,
    kubectl_labels_and_annotates,
    kubectl_waits,
    kubectl_waits_in_vain,
    kubectl_deletes,
    kubectl_deletes_in_cascades,
    kubectl_creates,
    kubectl_creates_secrets,
    kubectl_creates_tokens,
    kubectl_runs_dry,
    kubectl_replaces,
    kubectl_scales,
    kubectl_lists_what_there_is,
    kubectl_knows_versions,
    kubectl_knows_who_asks,
    kubectl_shows_events,
    kubectl_complains,
    kubectl_refuses_bad_manifests,
    kubectl_applies_and_prunes,
];

const HOST: &str = "\
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PhysicalHost
metadata:
  name: server-01
  labels:
    rack: a
spec:
  redfishConnection:
    address: https://192.0.2.10
    credentialsSecretRef: bmc
";

const SECRET: &str = "\
apiVersion: v1
kind: Secret
metadata:
  name: bmc
stringData:
  username: root
  password: calvin
";

const WIDGET: &str = "\
apiVersion: suite.example.com/v1
kind: Widget
metadata:
  name: a
spec:
  size: 3
  tags: [round, soft]
  ports:
    - name: web
      number: 80
";

async fn with_host(s: &mut Story) {
    s.file("host.yaml", HOST);
    s.file("secret.yaml", SECRET);
    s.run("kubectl apply -f secret.yaml -f host.yaml")
        .await
        .ok()
        .prints("physicalhost.infrastructure.cluster.x-k8s.io/server-01 created");
    let status = r#"{"status":{"state":"Available","ready":true,"observedPowerState":"Off"}}"#;
    s.run(&format!("kubectl patch ph server-01 --subresource=status --type=merge -p '{status}'")).await.ok();
}

async fn with_widget(s: &mut Story) {
    s.file("widget.yaml", WIDGET);
    s.run("kubectl apply -f widget.yaml").await.ok();
}

async fn kubectl_gets_hosts(s: &mut Story) {
    s.run("kubectl get ph").await.ok().prints("No resources found in kubectl-gets-hosts namespace.");
    with_host(s).await;
    s.run("kubectl get ph").await.ok().prints("server-01");
    s.run("kubectl get physicalhosts -o wide").await.ok();
    s.run("kubectl get physicalhost server-01").await.ok();
    s.run("kubectl get physicalhosts.v1alpha1.infrastructure.cluster.x-k8s.io").await.ok();
    s.run("kubectl get ph/server-01 secret/bmc").await.ok();
    s.run("kubectl get beskar7").await.ok();
    s.run("kubectl get ph nobody").await.fails();
    s.run("kubectl get ph server-01 nobody").await.fails();
}

async fn kubectl_gets_in_many_formats(s: &mut Story) {
    with_host(s).await;
    s.run("kubectl get ph -o name").await.ok();
    s.run("kubectl get ph -o yaml").await.ok();
    s.run("kubectl get ph server-01 -o json --show-managed-fields").await.ok();
    s.run("kubectl get ph -o jsonpath='{.items[*].spec.redfishConnection.address}'").await.ok();
    s.run("kubectl get ph -o custom-columns=NAME:.metadata.name,STATE:.status.state").await.ok();
    s.run("kubectl get ph -o go-template='{{range .items}}{{.metadata.name}}{{end}}'").await.ok();
    s.run("kubectl get secret bmc -o jsonpath='{.data.username}'").await.ok();
    s.run("kubectl get ph --no-headers").await.ok();
    s.run("kubectl get --raw /readyz").await.ok();
}

async fn kubectl_selects_and_sorts(s: &mut Story) {
    for (name, color, size) in [("a", "red", 3), ("b", "blue", 1), ("c", "red", 2)] {
        let manifest = WIDGET
            .replace("name: a\n", &format!("name: {name}\n  labels: {{color: {color}}}\n"))
            .replace("size: 3", &format!("size: {size}"));
        s.file("widget.yaml", &manifest);
        s.run("kubectl create -f widget.yaml").await.ok();
    }
    s.run("kubectl get wd -l color=red").await.ok();
    s.run("kubectl get wd -l 'color in (blue)' --show-labels").await.ok();
    s.run("kubectl get wd -L color").await.ok();
    s.run("kubectl get wd --field-selector metadata.name=b").await.ok();
    s.run("kubectl get wd --field-selector spec.color=red").await.ok();
    s.run("kubectl get wd --field-selector spec.size=1").await.fails();
    s.run("kubectl get wd --sort-by=.spec.size").await.ok();
    s.run("kubectl get wd --chunk-size=1").await.ok();
    s.run("kubectl get wd -l 'color==='").await.fails();
}

async fn kubectl_watches(s: &mut Story) {
    with_widget(s).await;
    let script = "\
: >out
lines() { until [ $(wc -l <out) -ge $1 ]; do sleep 0.05; done; }
kubectl get wd -w >out & watch=$!
lines 2
kubectl patch wd a --type=merge -p '{\"spec\":{\"size\":4}}'
lines 3
kubectl delete wd a --wait=false
lines 4
kill $watch
cat out";
    s.run(script).await.ok().prints("red  4");
    // Whoever watches from now on does not say when that is. By name it would be looked up first, and might not be there yet.
    let script = "\
: >out
kubectl get configmap --field-selector metadata.name=one -w --watch-only -o name >out & watch=$!
kubectl create configmap one
until [ -s out ]; do kubectl annotate configmap one --overwrite now=$(date +%s%N) >/dev/null; sleep 0.2; done
kill $watch
head -1 out";
    s.run(script).await;
}

async fn kubectl_describes_hosts(s: &mut Story) {
    with_host(s).await;
    s.run("kubectl describe ph server-01").await.ok().prints("Events:");
    s.run("kubectl describe ph").await.ok();
    s.run("kubectl describe ph nobody").await.fails();
}

async fn kubectl_describes_built_ins(s: &mut Story) {
    s.run("kubectl create configmap settings --from-literal=a=1 --from-literal=b=two").await.ok();
    s.run("kubectl describe configmap settings").await.ok();
    s.run("kubectl create secret generic pass --from-literal=a=1").await.ok();
    s.run("kubectl describe secret pass").await.ok();
    s.run("kubectl describe namespace {ns}").await.ok();
    s.run("kubectl create serviceaccount robot").await.ok();
    s.run("kubectl describe serviceaccount robot").await.ok();
    s.file("lease.yaml", "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: lock}\nspec: {holderIdentity: me, leaseDurationSeconds: 15}\n");
    s.run("kubectl apply -f lease.yaml").await.ok();
    s.run("kubectl describe lease lock").await.ok();
}

async fn kubectl_explains_hosts(s: &mut Story) {
    s.run("kubectl explain ph | grep -E '^[A-Z]+:|<.*>'").await.ok();
    s.run("kubectl explain ph.spec").await.ok();
    s.run("kubectl explain ph.spec.redfishConnection.address").await.ok();
    s.run("kubectl explain ph.spec.nothing").await.fails();
    s.run("kubectl explain widget.spec.ports").await.ok();
    s.run("kubectl explain widget.status.conditions.type").await.ok();
    s.run("kubectl explain nothing").await.fails();
    s.run("kubectl explain ph.spec --api-version=infrastructure.cluster.x-k8s.io/v1alpha1").await.ok();
}

async fn kubectl_explains_recursively(s: &mut Story) {
    s.run("kubectl explain ph --recursive").await.ok();
    s.run("kubectl explain ph.status --recursive").await.ok();
    s.run("kubectl explain widgets --recursive").await.ok();
}

async fn kubectl_explains_built_ins(s: &mut Story) {
    for kind in ["configmap", "secret", "namespace", "lease", "serviceaccount", "event"] {
        s.run(&format!("kubectl explain {kind} --recursive | grep -E '^[A-Z]+:|<.*>'")).await.ok();
    }
}

async fn kubectl_applies_from_the_client(s: &mut Story) {
    with_widget(s).await;
    s.run("kubectl apply -f widget.yaml").await.ok();
    s.file("widget.yaml", &WIDGET.replace("size: 3", "size: 4").replace("  tags: [round, soft]\n", ""));
    s.run("kubectl apply -f widget.yaml").await.ok().prints("configured");
    s.run("kubectl get wd a -o yaml").await.ok();
    s.run("kubectl apply view-last-applied wd a").await.ok();
    s.file("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '1', b: '2'}\n");
    s.run("kubectl apply -f map.yaml").await.ok();
    s.run("kubectl patch configmap m --type=merge -p '{\"data\":{\"c\":\"3\"}}'").await.ok();
    s.file("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '9'}\n");
    s.run("kubectl apply -f map.yaml").await.ok();
    s.run("kubectl get configmap m -o jsonpath='{.data}'").await.ok();
}

async fn kubectl_applies_on_the_server(s: &mut Story) {
    s.file("widget.yaml", WIDGET);
    s.run("kubectl apply --server-side -f widget.yaml").await.ok().prints("serverside-applied");
    s.run("kubectl apply --server-side -f widget.yaml").await.ok();
    s.file("widget.yaml", &WIDGET.replace("size: 3", "size: 4"));
    s.run("kubectl apply --server-side --field-manager=other -f widget.yaml").await.fails();
    s.run("kubectl get wd a -o yaml --show-managed-fields").await.ok();
    s.file("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '1'}\n");
    s.run("kubectl apply --server-side -f map.yaml").await.ok();
    s.file("namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: '{ns}-2'}\n");
    s.run("kubectl apply --server-side -f namespace.yaml").await.ok();
}

async fn kubectl_applies_into_a_conflict(s: &mut Story) {
    s.file("one.yaml", WIDGET);
    s.file("two.yaml", &WIDGET.replace("size: 3", "size: 9").replace("number: 80", "number: 81"));
    s.run("kubectl apply --server-side --field-manager=one -f one.yaml").await.ok();
    s.run("kubectl apply --server-side --field-manager=two -f two.yaml").await.fails().prints("conflict");
    s.run("kubectl apply --server-side --field-manager=two --force-conflicts -f two.yaml").await.ok();
    s.run("kubectl get wd a -o jsonpath='{.spec.size} {.metadata.managedFields[*].manager}'").await.ok();
}

async fn kubectl_moves_from_client_to_server(s: &mut Story) {
    with_widget(s).await;
    s.file("widget.yaml", &WIDGET.replace("  tags: [round, soft]\n", ""));
    s.run("kubectl apply --server-side -f widget.yaml").await.ok();
    s.run("kubectl get wd a -o yaml --show-managed-fields").await.ok();
}

async fn kubectl_diffs(s: &mut Story) {
    s.file("widget.yaml", WIDGET);
    s.run("kubectl diff -f widget.yaml").await.fails().prints("+  name: a");
    s.run("kubectl apply -f widget.yaml").await.ok();
    s.run("kubectl diff -f widget.yaml").await.ok();
    s.file("widget.yaml", &WIDGET.replace("size: 3", "size: 4"));
    s.run("kubectl diff -f widget.yaml").await.fails().prints("+  size: 4");
    s.run("kubectl diff --server-side --force-conflicts -f widget.yaml").await.fails();
}

async fn kubectl_edits(s: &mut Story) {
    with_widget(s).await;
    s.run("KUBE_EDITOR='sed -i s/size:.*3/size:\\ 5/' kubectl edit wd a").await.ok().prints("edited");
    s.run("KUBE_EDITOR=true kubectl edit wd a").await.ok().prints("Edit cancelled");
    s.run("KUBE_EDITOR='sed -i s/size:.*5/size:\\ 500/' kubectl edit wd a").await.fails();
    s.run("kubectl get wd a -o jsonpath='{.spec.size}'").await.ok();
    s.run("kubectl create configmap m --from-literal=a=1").await.ok();
    s.run("KUBE_EDITOR='sed -i s/.a:.*1./\\ a:\\ two/' kubectl edit configmap m").await.ok();
    s.run("KUBE_EDITOR='sed -i s/size:.*5/size:\\ 6/' kubectl edit wd a --subresource=status").await;
}

async fn kubectl_patches(s: &mut Story) {
    with_widget(s).await;
    s.run("kubectl patch wd a --type=merge -p '{\"spec\":{\"size\":4}}'").await.ok();
    s.run("kubectl patch wd a --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/tags\"}]'").await.ok();
    s.run("kubectl patch wd a -p '{\"spec\":{\"size\":5}}'").await.fails();
    s.run("kubectl patch wd a --type=merge -p '{\"spec\":{\"size\":4}}'").await.ok().prints("no change");
    s.run("kubectl patch wd a --type=merge -p '{\"spec\":{\"size\":400}}'").await.fails();
    s.run("kubectl patch wd a --type=merge -p 'spec: {size: 7}'").await.ok();
    s.run("kubectl create serviceaccount robot").await.ok();
    s.run("kubectl patch serviceaccount robot -p '{\"imagePullSecrets\":[{\"name\":\"x\"}]}'").await.ok();
    s.run("kubectl patch wd nobody --type=merge -p '{}'").await.fails();
    s.run("kubectl patch wd a --type=merge -p '{'").await.fails();
}

async fn kubectl_labels_and_annotates(s: &mut Story) {
    with_widget(s).await;
    s.run("kubectl label wd a tier=web env=prod").await.ok();
    s.run("kubectl label wd a tier=db").await.fails();
    s.run("kubectl label wd a tier=db --overwrite").await.ok();
    s.run("kubectl label wd a env-").await.ok();
    s.run("kubectl label wd a 'bad key=x'").await.fails();
    s.run("kubectl label wd --all color=blue").await.ok();
    s.run("kubectl annotate wd a example.com/note='two words'").await.ok();
    s.run("kubectl annotate wd a example.com/note-").await.ok();
    s.run("kubectl label namespace {ns} team=one").await.ok();
    s.run("kubectl get wd a -o jsonpath='{.metadata.labels}'").await.ok();
}

async fn kubectl_waits(s: &mut Story) {
    with_widget(s).await;
    s.run("kubectl wait wd/a --for=jsonpath='{.spec.size}'=3 --timeout=20s").await.ok();
    let status = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
    s.run(&format!("(kubectl wait wd/a --for=condition=Ready --timeout=20s; echo $?) >done & sleep 0.5; kubectl patch wd a --subresource=status --type=merge -p '{status}'; wait; cat done")).await.ok();
    s.run("kubectl wait wd --all --for=condition=Ready=True --timeout=20s").await.ok();
    // Nothing is printed about what is gone already, so the watch has to be there before.
    s.run("(kubectl wait wd/a --for=delete --timeout=20s -v=6; echo $?) >done 2>trace & for _ in {1..600}; do grep -qs watch=true trace && break; sleep 0.1; done; kubectl delete wd a >/dev/null; wait; cat done; cat trace >&2").await.ok();
    s.run("kubectl wait wd/a --for=delete --timeout=20s").await.ok();
    s.run("kubectl wait --for=create configmap/soon --timeout=20s & sleep 0.5; kubectl create configmap soon >/dev/null; wait").await;
}

async fn kubectl_waits_in_vain(s: &mut Story) {
    with_widget(s).await;
    s.run("kubectl wait wd/a --for=condition=Ready --timeout=1s").await.fails().prints("timed out");
    s.run("kubectl wait wd/a --for=delete --timeout=1s").await.fails();
    s.run("kubectl wait wd/nobody --for=condition=Ready --timeout=1s").await.fails();
    s.run("kubectl wait wd/a --for=jsonpath='{.spec.size}'=9 --timeout=1s").await.fails();
}

async fn kubectl_deletes(s: &mut Story) {
    with_widget(s).await;
    s.run("kubectl delete -f widget.yaml").await.ok().prints("deleted");
    s.run("kubectl delete -f widget.yaml").await.fails();
    s.run("kubectl delete -f widget.yaml --ignore-not-found").await.ok();
    with_widget(s).await;
    s.run("kubectl delete wd a --dry-run=server").await.ok();
    s.run("kubectl delete wd -l nothing=here").await.ok();
    s.run("kubectl delete wd --all").await.ok();
    s.run("kubectl create configmap m; kubectl delete configmap m --now; kubectl create configmap m; kubectl delete cm m --grace-period=0 --force").await;
    with_widget(s).await;
    s.run("kubectl patch wd a --type=merge -p '{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}'").await.ok();
    s.run("kubectl delete wd a --wait=false").await.ok();
    s.run("kubectl delete wd a --timeout=2s").await.fails();
    s.run("kubectl get wd a -o jsonpath='{.metadata.finalizers}'").await.ok();
    s.run("kubectl patch wd a --type=merge -p '{\"metadata\":{\"finalizers\":null}}'").await.ok();
}

const CHILD: &str = "\
kubectl create -f - <<END
apiVersion: v1
kind: ConfigMap
metadata:
  name: child
  ownerReferences:
    - apiVersion: v1
      kind: ConfigMap
      name: owner
      uid: $(kubectl get configmap owner -o jsonpath='{.metadata.uid}')
      blockOwnerDeletion: true
END
";

async fn kubectl_deletes_in_cascades(s: &mut Story) {
    for mode in ["background", "foreground", "orphan"] {
        s.run("kubectl create configmap owner").await.ok();
        s.run(CHILD).await.ok();
        s.run(&format!("kubectl delete configmap owner --cascade={mode}")).await.ok();
        let end = if mode == "orphan" {
            "kubectl get configmap child -o jsonpath='{.metadata.ownerReferences}' && kubectl delete configmap child"
        } else {
            // Nothing is printed about a child that is gone already.
            "kubectl wait --for=delete configmap/child --timeout=30s >/dev/null; kubectl get configmap child"
        };
        s.run(end).await;
    }
}

async fn kubectl_creates(s: &mut Story) {
    s.run("kubectl create namespace {ns}-2").await.ok();
    s.run("kubectl create namespace {ns}-2").await.fails();
    s.run("kubectl create namespace Bad_Name").await.fails();
    s.run("echo content >file.txt; kubectl create configmap m --from-literal=a=1 --from-file=file.txt").await.ok();
    s.run("kubectl get configmap m -o jsonpath='{.data}'").await.ok();
    s.run("kubectl create configmap m").await.fails();
    s.run("kubectl create serviceaccount robot").await.ok();
    s.run("kubectl get serviceaccount robot").await.ok();
    s.file("widget.yaml", WIDGET);
    s.run("kubectl create -f widget.yaml").await.ok();
    s.run("kubectl create -f widget.yaml").await.fails();
    s.run("kubectl create configmap n --from-literal=bad/key=1").await.fails();
}

async fn kubectl_creates_secrets(s: &mut Story) {
    s.run("kubectl create secret generic pass --from-literal=user=root --from-literal=password=calvin").await.ok();
    s.run("kubectl get secret pass -o yaml").await.ok();
    s.run("kubectl create secret docker-registry pull --docker-server=example.com --docker-username=u --docker-password=p").await.ok();
    s.run("kubectl get secret").await.ok();
    s.run("kubectl create secret generic pass").await.fails();
    s.run("kubectl create secret generic typed --type=example.com/kind --from-literal=a=1").await.ok();
}

async fn kubectl_creates_tokens(s: &mut Story) {
    s.run("kubectl create serviceaccount robot").await.ok();
    s.run("kubectl create token robot --duration=10m | awk -F. '{print NF}'").await.ok().prints("3");
    s.run("kubectl create token nobody").await.fails();
    s.run("token=$(kubectl create token robot); kubectl --kubeconfig=/dev/null --server=$(kubectl config view -o jsonpath='{.clusters[0].cluster.server}') --insecure-skip-tls-verify --token=$token auth whoami -o jsonpath='{.status.userInfo.username}'").await.ok();
    s.run("kubectl create token robot --duration=1s").await.fails();
}

async fn kubectl_runs_dry(s: &mut Story) {
    s.file("widget.yaml", WIDGET);
    s.run("kubectl apply -f widget.yaml --dry-run=server").await.ok().prints("server dry run");
    s.run("kubectl apply -f widget.yaml --dry-run=client").await.ok();
    s.run("kubectl create -f widget.yaml --dry-run=server -o yaml").await.ok();
    s.run("kubectl create configmap m --dry-run=server").await.ok();
    s.run("kubectl create namespace x --dry-run=server").await.ok();
    s.run("kubectl get wd,configmap m").await.fails();
    s.run("kubectl apply --server-side --dry-run=server -f widget.yaml").await.ok();
}

async fn kubectl_replaces(s: &mut Story) {
    with_widget(s).await;
    s.file("widget.yaml", &WIDGET.replace("size: 3", "size: 8"));
    s.run("kubectl replace -f widget.yaml").await.ok();
    s.run("kubectl replace --force -f widget.yaml").await.ok();
    s.run("kubectl get wd a -o jsonpath='{.spec.size}'").await.ok();
    s.run("kubectl delete wd a; kubectl replace -f widget.yaml").await.fails();
}

async fn kubectl_scales(s: &mut Story) {
    s.file("widget.yaml", &WIDGET.replace("  size: 3", "  size: 3\n  replicas: 1"));
    s.run("kubectl apply -f widget.yaml").await.ok();
    s.run("kubectl scale wd a --replicas=4").await.ok();
    s.run("kubectl scale wd a --replicas=5 --current-replicas=1").await.fails();
    s.run("kubectl get wd a -o jsonpath='{.spec.replicas}'").await.ok();
    s.run("kubectl get wd a --subresource=scale").await.ok();
    s.run("kubectl get wd a --subresource=status").await.ok();
}

async fn kubectl_lists_what_there_is(s: &mut Story) {
    s.run("kubectl api-resources --api-group=infrastructure.cluster.x-k8s.io").await.ok();
    s.run("kubectl api-resources --api-group=suite.example.com -o wide").await.ok();
    s.run("kubectl api-resources --api-group=coordination.k8s.io | grep -v candidates").await.ok();
    s.run("kubectl api-resources --api-group=events.k8s.io").await.ok();
    s.run("kubectl api-resources --api-group=apiextensions.k8s.io").await.ok();
    s.run("kubectl api-resources --api-group='' | grep -E '^(NAME|configmaps|events|namespaces|secrets|serviceaccounts) '").await.ok();
    s.run("kubectl api-resources --categories=beskar7").await.ok();
    s.run("kubectl api-versions | grep -E '^(v1|(apiextensions|coordination|events|authentication|authorization).k8s.io/v1|infrastructure.*|suite.*)$'").await.ok();
}

async fn kubectl_knows_versions(s: &mut Story) {
    s.run("kubectl version | sed s/v1.33.*/v1.33/").await.ok().prints("Server Version: v1.33");
}

async fn kubectl_knows_who_asks(s: &mut Story) {
    s.run("kubectl auth whoami -o jsonpath='{.status.userInfo.groups}'").await.ok().prints("system:masters");
    s.run("kubectl auth can-i create ph").await.ok().prints("yes");
    s.run("kubectl auth can-i '*' '*' --all-namespaces").await.ok();
    s.run("kubectl auth can-i get /metrics").await.ok();
    s.run("kubectl auth can-i create nothings").await;
}

async fn kubectl_shows_events(s: &mut Story) {
    with_host(s).await;
    s.file("event.yaml", "\
apiVersion: v1
kind: Event
metadata: {name: one, namespace: '{ns}'}
type: Normal
reason: Registered
message: The server is known.
count: 2
involvedObject: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PhysicalHost, name: server-01, namespace: '{ns}'}
source: {component: beskar7}
firstTimestamp: 2021-01-01T00:00:00Z
lastTimestamp: 2021-01-01T00:00:00Z
");
    s.run("kubectl create -f event.yaml").await.ok();
    s.run("kubectl get events").await.ok();
    s.run("kubectl get events --field-selector involvedObject.name=server-01 -o name").await.ok();
    s.run("kubectl events --for ph/server-01").await.ok();
    s.run("kubectl events --types=Warning").await.ok();
    s.run("kubectl get events.events.k8s.io").await.ok();
    s.run("kubectl describe ph server-01 | sed -n '/Events/,$p'").await.ok();
}

async fn kubectl_complains(s: &mut Story) {
    s.run("kubectl get nothings").await.fails();
    s.run("kubectl get configmap nobody").await.fails();
    s.run("kubectl get wd -n no-such-namespace").await.ok();
    s.run("kubectl create configmap m -n no-such-namespace").await.fails();
    s.run("kubectl delete namespace no-such-namespace").await.fails();
    s.run("kubectl delete namespace kube-system").await.fails();
    s.run("kubectl get --raw /nothing").await.fails();
    s.run("kubectl --token=wrong --kubeconfig=/dev/null --insecure-skip-tls-verify --server=$(kubectl config view -o jsonpath='{.clusters[0].cluster.server}') get configmaps").await.fails();
}

async fn kubectl_refuses_bad_manifests(s: &mut Story) {
    for manifest in [
        WIDGET.replace("size: 3", "size: 300"),
        WIDGET.replace("size: 3", "size: big"),
        WIDGET.replace("size: 3", "sise: 3"),
        WIDGET.replace("name: a\n", "name: Bad_Name\n"),
        WIDGET.replace("kind: Widget", "kind: Gadget"),
        WIDGET.replace("suite.example.com/v1", "suite.example.com/v7"),
        WIDGET.replace("spec:", "spec: ["),
        HOST.replace("    address: https://192.0.2.10\n", ""),
        HOST.replace("https://192.0.2.10", "https://root:calvin@192.0.2.10"),
        HOST.replace("  labels:\n    rack: a\n", "  labels: {rack: a b}\n"),
    ] {
        s.file("bad.yaml", &manifest);
        s.run("kubectl apply -f bad.yaml").await.fails();
    }
    s.file("bad.yaml", &WIDGET.replace("size: 3", "sise: 3"));
    s.run("kubectl apply -f bad.yaml --validate=warn").await.ok();
    s.run("kubectl apply -f bad.yaml --validate=false").await.ok();
    s.run("kubectl apply --server-side -f bad.yaml").await.fails();
}

async fn kubectl_applies_and_prunes(s: &mut Story) {
    s.file(
        "all.yaml",
        "\
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {app: x}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, labels: {app: x}}
",
    );
    s.run("kubectl apply -f all.yaml").await.ok();
    s.file("all.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {app: x}}\n");
    s.run("kubectl apply -f all.yaml --prune -l app=x --prune-allowlist=core/v1/ConfigMap").await;
    s.run("kubectl get configmap -l app=x -o name").await.ok();
}
