// oracle evaluates match conditions of webhooks with the code that kube-apiserver evaluates them with.
//
//	oracle configurations.json < reviews
//
// The file maps a name to the matchConditions of one webhook. A line of input is {"request": ...} as in
// an AdmissionReview; a line of output maps each name to {"sent", "costs", "errors", "microseconds"},
// costs and errors by condition.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

type answer struct {
	Sent         bool              `json:"sent"`
	Costs        map[string]int64  `json:"costs"`
	Errors       map[string]string `json:"errors"`
	Microseconds int64             `json:"microseconds"`
}

type condition struct {
	name      string
	evaluator plugincel.ConditionEvaluator
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "write oracle configurations.json < reviews")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string) error {
	webhooks, err := compiled(path)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return nil
		}
		attributes, request, err := read(line)
		if err != nil {
			return err
		}
		answers := map[string]answer{}
		for name, conditions := range webhooks {
			if answers[name], err = evaluate(conditions, attributes, request); err != nil {
				return err
			}
		}
		if err := out.Encode(answers); err != nil {
			return err
		}
	}
}

func compiled(path string) (map[string][]condition, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	given := map[string][]admissionregistrationv1.MatchCondition{}
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, err
	}
	environments := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	compiler := plugincel.NewConditionCompiler(environments)
	found := map[string][]condition{}
	for webhook, each := range given {
		found[webhook] = []condition{}
		for _, one := range each {
			accessor := matchconditions.MatchCondition(one)
			// What the API server compiles for a configuration that is written now.
			evaluator := compiler.CompileCondition(
				[]plugincel.ExpressionAccessor{&accessor},
				plugincel.OptionalVariableDeclarations{HasAuthorizer: true},
				environment.NewExpressions,
			)
			if errors := evaluator.CompilationErrors(); len(errors) > 0 {
				return nil, fmt.Errorf("%s: %s: %v", webhook, one.Name, errors)
			}
			found[webhook] = append(found[webhook], condition{one.Name, evaluator})
		}
	}
	return found, nil
}

func read(line []byte) (*admission.VersionedAttributes, *admissionv1.AdmissionRequest, error) {
	review := struct {
		Request struct {
			admissionv1.AdmissionRequest `json:",inline"`
			Object                       map[string]any `json:"object"`
			OldObject                    map[string]any `json:"oldObject"`
			Options                      map[string]any `json:"options"`
		} `json:"request"`
	}{}
	if err := json.Unmarshal(line, &review); err != nil {
		return nil, nil, err
	}
	given := review.Request
	object, old := object(given.Object), object(given.OldObject)
	kind := schema.GroupVersionKind(given.Kind)
	who := user.DefaultInfo{Name: given.UserInfo.Username, UID: given.UserInfo.UID, Groups: given.UserInfo.Groups}
	attributes := admission.NewAttributesRecord(
		object, old, kind, given.Namespace, given.Name, schema.GroupVersionResource(given.Resource),
		given.SubResource, admission.Operation(given.Operation), options(given.Options),
		given.DryRun != nil && *given.DryRun, &who,
	)
	versioned := &admission.VersionedAttributes{
		Attributes: attributes, VersionedKind: kind, VersionedObject: object, VersionedOldObject: old,
	}
	request := plugincel.CreateAdmissionRequest(attributes, given.Resource, given.Kind)
	return versioned, request, nil
}

func object(body map[string]any) runtime.Object {
	if body == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: integers(body).(map[string]any)}
}

func options(body map[string]any) runtime.Object {
	if body == nil {
		return nil
	}
	return &metav1.UpdateOptions{}
}

// integers makes of whole numbers what the API server's decoder makes of them.
func integers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, each := range value {
			value[key] = integers(each)
		}
	case []any:
		for index, each := range value {
			value[index] = integers(each)
		}
	case float64:
		if whole := int64(value); float64(whole) == value {
			return whole
		}
	}
	return value
}

func evaluate(conditions []condition, attributes *admission.VersionedAttributes, request *admissionv1.AdmissionRequest) (answer, error) {
	found := answer{Sent: true, Costs: map[string]int64{}, Errors: map[string]string{}}
	begin := time.Now()
	for _, each := range conditions {
		budget := int64(celconfig.RuntimeCELCostBudgetMatchConditions)
		results, left, err := each.evaluator.ForInput(
			context.Background(), attributes, request, plugincel.OptionalVariableBindings{}, nil, budget,
		)
		if err != nil {
			return found, err
		}
		found.Costs[each.name] = budget - left
		for _, result := range results {
			if result.Error != nil {
				found.Errors[each.name] = result.Error.Error()
			} else if result.EvalResult.Value() == false {
				found.Sent = false
			}
		}
	}
	found.Microseconds = time.Since(begin).Microseconds()
	return found, nil
}
