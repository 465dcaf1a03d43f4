// A client as controllers are written in Go: informers, typed and dynamic clients, leader election.
//
// It prints one line for each thing that happens, in an order that does not depend on timing, so that what two servers
// make of it can be compared.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var widgets = schema.GroupVersionResource{Group: "suite.example.com", Version: "v1", Resource: "widgets"}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	namespace := os.Getenv("NAMESPACE")
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check("config", err)
	config.UserAgent = "suite-go/1"
	discover(config)
	watchMaps(ctx, config, namespace)
	watchWidgets(ctx, config, namespace)
	lead(ctx, config, namespace)
}

func check(what string, err error) {
	if err != nil {
		fmt.Printf("%s: %v\n", what, err)
		os.Exit(1)
	}
}

// told hands out what an informer says, in the order in which it says it.
type told chan string

func (t told) handler() cache.ResourceEventHandlerDetailedFuncs {
	name := func(obj any) string {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		return obj.(metav1.Object).GetName()
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) { t <- fmt.Sprintf("added %s, initially: %v", name(obj), initial) },
		UpdateFunc: func(before, after any) {
			if before.(metav1.Object).GetResourceVersion() != after.(metav1.Object).GetResourceVersion() {
				t <- "updated " + name(after)
			}
		},
		DeleteFunc: func(obj any) { t <- "deleted " + name(obj) },
	}
}

func (t told) expect(ctx context.Context, count int) {
	for range count {
		select {
		case line := <-t:
			fmt.Println("  informer:", line)
		case <-ctx.Done():
			check("informer", ctx.Err())
		}
	}
}

func discover(config *rest.Config) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	check("discovery client", err)
	_, lists, err := client.ServerGroupsAndResources()
	check("discovery", err)
	for _, list := range lists {
		if list.GroupVersion == "suite.example.com/v1" {
			for _, resource := range list.APIResources {
				fmt.Println("discovered", resource.Name, resource.Kind, resource.Namespaced, resource.Verbs)
			}
		}
	}
}

// Typed clients speak protobuf where the server does.
func watchMaps(ctx context.Context, config *rest.Config, namespace string) {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	check("typed client", err)
	maps := client.CoreV1().ConfigMaps(namespace)
	create := func(name string) *corev1.ConfigMap {
		labelled := metav1.ObjectMeta{Name: name, Labels: map[string]string{"client": "go"}}
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: labelled, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
		check("create", err)
		return made
	}
	one := create("one")
	// Informers begin at zero, which the real server answers from a cache that may lag behind.
	_, err = maps.List(ctx, metav1.ListOptions{ResourceVersion: one.ResourceVersion})
	check("list", err)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "client=go" }))
	informer := factory.Core().V1().ConfigMaps()
	events := make(told, 100)
	_, err = informer.Informer().AddEventHandler(events.handler())
	check("handler", err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	events.expect(ctx, 1)
	two := create("two")
	events.expect(ctx, 1)
	two.Data["k"] = "w"
	_, err = maps.Update(ctx, two, metav1.UpdateOptions{})
	check("update", err)
	events.expect(ctx, 1)
	_, err = maps.Update(ctx, two, metav1.UpdateOptions{})
	fmt.Println("a stale update is a conflict:", apierrors.IsConflict(err))
	_, err = maps.Patch(ctx, "one", types.StrategicMergePatchType, []byte(`{"data":{"l":"x"}}`), metav1.PatchOptions{})
	check("patch", err)
	events.expect(ctx, 1)
	check("delete", maps.Delete(ctx, "one", metav1.DeleteOptions{}))
	events.expect(ctx, 1)
	_, err = maps.Get(ctx, "one", metav1.GetOptions{})
	fmt.Println("what is gone is not found:", apierrors.IsNotFound(err), err)
	cached, err := informer.Lister().ConfigMaps(namespace).List(labels.Everything())
	check("lister", err)
	for _, one := range cached {
		fmt.Println("cached", one.Name, one.Data)
	}
}

func watchWidgets(ctx context.Context, config *rest.Config, namespace string) {
	client, err := dynamic.NewForConfig(config)
	check("dynamic client", err)
	objects := client.Resource(widgets).Namespace(namespace)
	widget := func(name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "suite.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}, "spec": spec,
		}}
	}
	newest := ""
	for _, name := range []string{"a", "b", "c"} {
		made, err := objects.Create(ctx, widget(name, map[string]any{"size": int64(1)}), metav1.CreateOptions{})
		check("create", err)
		newest = made.GetResourceVersion()
	}
	page, err := objects.List(ctx, metav1.ListOptions{Limit: 2})
	check("list", err)
	fmt.Println("a page of", len(page.Items), "and there is more:", page.GetContinue() != "", *page.GetRemainingItemCount())
	rest, err := objects.List(ctx, metav1.ListOptions{Limit: 2, Continue: page.GetContinue()})
	check("list", err)
	fmt.Println("the rest of", len(rest.Items))

	// As for maps.
	_, err = objects.List(ctx, metav1.ListOptions{ResourceVersion: newest})
	check("list", err)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace,
		func(options *metav1.ListOptions) { options.FieldSelector = "metadata.name!=c" })
	events := make(told, 100)
	_, err = factory.ForResource(widgets).Informer().AddEventHandler(events.handler())
	check("handler", err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	// The two come in any order.
	first, second := <-events, <-events
	fmt.Println("  informer:", min(first, second), "and", max(first, second))
	patched, err := objects.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":2}}`), metav1.PatchOptions{})
	check("patch", err)
	fmt.Println("generation", patched.GetGeneration())
	events.expect(ctx, 1)
	applied, err := objects.Apply(ctx, "d", widget("d", map[string]any{"note": "new"}), metav1.ApplyOptions{FieldManager: "suite-go"})
	check("apply", err)
	fmt.Println("applied by", applied.GetManagedFields()[0].Manager, applied.GetManagedFields()[0].Operation)
	events.expect(ctx, 1)
	_, err = objects.Apply(ctx, "a", widget("a", map[string]any{"size": int64(9)}), metav1.ApplyOptions{FieldManager: "other"})
	fmt.Println("a conflict:", apierrors.IsConflict(err), err)
	_, err = objects.Patch(ctx, "a", types.MergePatchType, []byte(`{"status":{"phase":"Up"}}`), metav1.PatchOptions{}, "status")
	check("status", err)
	events.expect(ctx, 1)
	_, err = objects.Create(ctx, widget("e", map[string]any{"size": int64(101)}), metav1.CreateOptions{})
	fmt.Println("invalid:", apierrors.IsInvalid(err), err)
	check("delete collection", objects.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=b"}))
	events.expect(ctx, 1)
	check("delete", objects.Delete(ctx, "a", metav1.DeleteOptions{}))
	events.expect(ctx, 1)
}

func lead(ctx context.Context, config *rest.Config, namespace string) {
	client, err := kubernetes.NewForConfig(config)
	check("typed client", err)
	for _, identity := range []string{"first", "second"} {
		ctx, stop := context.WithCancel(ctx)
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "suite-go", Namespace: namespace},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true,
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 4 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {
					fmt.Println(identity, "leads")
					// Whoever stops in the middle of a renewal cannot release: its lease is not what it last saw.
					waitForRenewal(ctx, client, namespace)
					stop()
				},
				OnStoppedLeading: func() { fmt.Println(identity, "leads no more") },
			},
		})
		stop()
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "suite-go", metav1.GetOptions{})
	check("lease", err)
	fmt.Println("the lease is free:", *lease.Spec.HolderIdentity == "", "after transitions:", *lease.Spec.LeaseTransitions)
}

// waitForRenewal returns right after the lease was renewed: the next renewal is a retry period away.
func waitForRenewal(ctx context.Context, client kubernetes.Interface, namespace string) {
	var first time.Time
	for {
		lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "suite-go", metav1.GetOptions{})
		check("lease", err)
		renewed := lease.Spec.RenewTime.Time
		if first.IsZero() {
			first = renewed
		}
		if renewed.After(first) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
