// Command collector is an OpenTelemetry collector: its OTLP receiver, and an exporter that prints
// the spans of each batch as a line of JSON.
//
//	collector --config=FILE
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
)

func main() {
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		Factories: factories,
		BuildInfo: component.BuildInfo{Command: "collector", Version: "test"},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()}, DefaultScheme: "file",
		}},
	})
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type empty struct{}

func noConfig() component.Config { return &empty{} }

func factories() (f otelcol.Factories, err error) {
	f.Telemetry = telemetry.NewFactory(noConfig)
	if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
		return f, err
	}
	f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](exporter.NewFactory(
		component.MustNewType("print"), noConfig, exporter.WithTraces(newPrinter, component.StabilityLevelDevelopment),
	))
	return f, err
}

// newPrinter returns an exporter that prints spans.
func newPrinter(ctx context.Context, s exporter.Settings, c component.Config) (exporter.Traces, error) {
	return exporterhelper.NewTraces(ctx, s, c, func(_ context.Context, t ptrace.Traces) error {
		text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(t)
		if err == nil {
			_, err = fmt.Printf("%s\n", text)
		}
		return err
	}, exporterhelper.WithCapabilities(consumer.Capabilities{}))
}
