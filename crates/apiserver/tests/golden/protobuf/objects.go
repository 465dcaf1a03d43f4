// Prints objects as Kubernetes' Go clients send them, with the JSON that Go makes of them, one per line: each kind
// filled to the last field, and with nothing but pointers to zero.
//
// To make objects.jsonl again, put this file into a module that requires k8s.io/api v0.33, and go run it.
package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

var moment = time.Date(2026, 3, 1, 12, 34, 56, 789012000, time.UTC)
var count int64 = 300

func fill(v reflect.Value, name string) {
	switch v.Type() {
	case reflect.TypeOf(metav1.TypeMeta{}):
		return
	case reflect.TypeOf(metav1.Time{}):
		v.Set(reflect.ValueOf(metav1.Time{Time: moment.Truncate(time.Second)}))
		return
	case reflect.TypeOf(metav1.MicroTime{}):
		v.Set(reflect.ValueOf(metav1.MicroTime{Time: moment}))
		return
	case reflect.TypeOf(metav1.FieldsV1{}):
		v.Set(reflect.ValueOf(metav1.FieldsV1{Raw: []byte(`{"f:data":{".":{},"f:a":{}}}`)}))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			fill(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.String:
		v.SetString("a " + name + " é")
	case reflect.Int32, reflect.Int64:
		count++
		v.SetInt(count)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{0, 1, 0xfe, 0xff})
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), name)
		fill(v.Index(1), name)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"one", "two/x"} {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(value, name)
			v.SetMapIndex(reflect.ValueOf(key), value)
		}
	default:
		panic(v.Type().String())
	}
}

// Pointers to zero values, nothing else: what tells "unset" from "zero".
func zero(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if k := v.Type().Elem().Kind(); k != reflect.Struct {
			v.Set(reflect.New(v.Type().Elem()))
		}
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			zero(v.Field(i))
		}
	}
}

func write(name string, object runtime.Object, gvk schema.GroupVersionKind) {
	object.GetObjectKind().SetGroupVersionKind(gvk)
	var body bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(object, &body); err != nil {
		panic(err)
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	goldens = append(goldens, golden{name, body.Bytes(), text})
}

type golden struct {
	Name string          `json:"name"`
	Body []byte          `json:"body"`
	JSON json.RawMessage `json:"json"`
}

var goldens []golden

func main() {
	type kind struct {
		group, version, kind, name string
		object                     func() runtime.Object
	}
	for _, k := range []kind{
		{"", "v1", "Namespace", "namespace", func() runtime.Object { return &corev1.Namespace{} }},
		{"", "v1", "Secret", "secret", func() runtime.Object { return &corev1.Secret{} }},
		{"", "v1", "ConfigMap", "configmap", func() runtime.Object { return &corev1.ConfigMap{} }},
		{"", "v1", "ServiceAccount", "serviceaccount", func() runtime.Object { return &corev1.ServiceAccount{} }},
		{"", "v1", "Event", "event", func() runtime.Object { return &corev1.Event{} }},
		{"events.k8s.io", "v1", "Event", "event-events", func() runtime.Object { return &eventsv1.Event{} }},
		{"coordination.k8s.io", "v1", "Lease", "lease", func() runtime.Object { return &coordinationv1.Lease{} }},
		{"autoscaling", "v1", "Scale", "scale", func() runtime.Object { return &autoscalingv1.Scale{} }},
		{"meta.k8s.io", "v1", "DeleteOptions", "deleteoptions", func() runtime.Object { return &metav1.DeleteOptions{} }},
		{"authentication.k8s.io", "v1", "TokenRequest", "tokenrequest", func() runtime.Object { return &authenticationv1.TokenRequest{} }},
		{"authentication.k8s.io", "v1", "TokenReview", "tokenreview", func() runtime.Object { return &authenticationv1.TokenReview{} }},
		{"authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreview", func() runtime.Object { return &authenticationv1.SelfSubjectReview{} }},
		{"authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreview", func() runtime.Object { return &authorizationv1.SelfSubjectAccessReview{} }},
		{"authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreview", func() runtime.Object { return &authorizationv1.SubjectAccessReview{} }},
		{"authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreview", func() runtime.Object { return &authorizationv1.LocalSubjectAccessReview{} }},
		{"authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreview", func() runtime.Object { return &authorizationv1.SelfSubjectRulesReview{} }},
	} {
		gvk := schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.kind}
		full := k.object()
		fill(reflect.ValueOf(full).Elem(), "")
		if rules, ok := full.(*authorizationv1.SelfSubjectRulesReview); ok {
			// Nobody sends an answer.
			rules.Status = authorizationv1.SubjectRulesReviewStatus{}
		}
		write(k.name+"-full", full, gvk)
		bare := k.object()
		zero(reflect.ValueOf(bare).Elem())
		write(k.name+"-zero", bare, gvk)
	}
	out := json.NewEncoder(os.Stdout)
	for _, one := range goldens {
		if err := out.Encode(one); err != nil {
			panic(err)
		}
	}
}
