// Pod-security-oracle evaluates pods as Pod Security admission does: one in JSON per line, one answer per line.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// An answer maps each level to the checks of the newest version that the pod fails.
func main() {
	checks := policy.DefaultChecks()
	evaluator, err := policy.NewEvaluator(checks, nil)
	if err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var pod corev1.Pod
		if err := json.Unmarshal(lines.Bytes(), &pod); err != nil {
			log.Fatal(err)
		}
		answer := map[api.Level][]policy.CheckID{}
		for _, level := range []api.Level{api.LevelBaseline, api.LevelRestricted} {
			answer[level] = failed(checks, level, &pod)
			newest := api.LevelVersion{Level: level, Version: api.LatestVersion()}
			results := evaluator.EvaluatePod(newest, &pod.ObjectMeta, &pod.Spec)
			if policy.AggregateCheckResults(results).Allowed != (len(answer[level]) == 0) {
				log.Fatalf("%s: the checks one by one and the evaluator disagree", level)
			}
		}
		if err := out.Encode(answer); err != nil {
			log.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

// The evaluator's results do not name their checks, so each check is made by itself.
func failed(checks []policy.Check, level api.Level, pod *corev1.Pod) []policy.CheckID {
	overridden := map[policy.CheckID]bool{}
	if level == api.LevelRestricted {
		for _, check := range checks {
			for _, id := range newest(check).OverrideCheckIDs {
				overridden[id] = true
			}
		}
	}
	names := []policy.CheckID{}
	for _, check := range checks {
		if check.Level != api.LevelBaseline && check.Level != level || overridden[check.ID] {
			continue
		}
		if !newest(check).CheckPod(&pod.ObjectMeta, &pod.Spec).Allowed {
			names = append(names, check.ID)
		}
	}
	return names
}

func newest(check policy.Check) policy.VersionedCheck {
	return check.Versions[len(check.Versions)-1]
}
