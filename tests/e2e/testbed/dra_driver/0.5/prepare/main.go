// Prepare reads opaque parameters as the driver's kubelet plugin does before it shares a device: a JSON
// value per line in, an answer per line out, empty or the error. Arguments are the UUIDs of the
// devices that the parameters apply to. Both feature gates of sharing are on.
//
// With the argument "gates", each line is a map of feature gates that the driver starts with, or not.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	nvapi "sigs.k8s.io/dra-driver-nvidia-gpu/api/nvidia.com/resource/v1beta1"
	"sigs.k8s.io/dra-driver-nvidia-gpu/pkg/featuregates"
)

// prepare returns what stops the plugin. A panic is an error: it ends the plugin.
func prepare(raw []byte, devices []string) (err error) {
	defer func() {
		if found := recover(); found != nil {
			err = fmt.Errorf("panic: %v", found)
		}
	}()
	object, err := runtime.Decode(nvapi.StrictDecoder, raw)
	if err != nil {
		return err
	}
	config, ok := object.(nvapi.Interface)
	if !ok {
		return fmt.Errorf("no configuration: %T", object)
	}
	if err := config.Normalize(); err != nil {
		return err
	}
	if err := config.Validate(); err != nil {
		return err
	}
	switch config := object.(type) {
	case *nvapi.GpuConfig:
		if config.Sharing != nil {
			return share(config.Sharing, devices)
		}
	case *nvapi.MigDeviceConfig:
		if config.Sharing != nil {
			return share(config.Sharing, devices)
		}
	}
	return nil
}

// share returns what stops the plugin when it applies a strategy.
func share(sharing nvapi.Sharing, devices []string) error {
	if sharing.IsTimeSlicing() {
		_, err := sharing.GetTimeSlicingConfig()
		return err
	}
	config, err := sharing.GetMpsConfig()
	if err != nil || config == nil {
		return err
	}
	limits := config.DefaultPerDevicePinnedMemoryLimit
	_, err = limits.Normalize(devices, config.DefaultPinnedDeviceMemoryLimit)
	return err
}

// start returns why the driver does not start with feature gates. Gates that a line leaves out are
// as the line before has them.
func start(raw []byte) error {
	var gates map[string]bool
	if err := json.Unmarshal(raw, &gates); err != nil {
		log.Fatal(err)
	}
	if err := featuregates.FeatureGates().SetFromMap(gates); err != nil {
		return err
	}
	return featuregates.ValidateFeatureGates()
}

func main() {
	answer := func(raw []byte) error { return prepare(raw, os.Args[1:]) }
	if len(os.Args) == 2 && os.Args[1] == "gates" {
		answer = start
	} else if err := featuregates.FeatureGates().SetFromMap(map[string]bool{
		string(featuregates.TimeSlicingSettings): true,
		string(featuregates.MPSSupport):          true,
	}); err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		said := ""
		if err := answer(lines.Bytes()); err != nil {
			said = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Fprintln(out, said)
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}
