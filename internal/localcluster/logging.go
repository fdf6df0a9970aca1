package localcluster

import (
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapLogger sends etcd's warnings to l.
func zapLogger(l *slog.Logger) *zap.Logger {
	return zap.New(&zapToSlog{LevelEnabler: zapcore.WarnLevel, to: l.With("part", "etcd")})
}

type zapToSlog struct {
	zapcore.LevelEnabler
	to *slog.Logger
}

func (z *zapToSlog) With(fields []zapcore.Field) zapcore.Core {
	return &zapToSlog{LevelEnabler: z.LevelEnabler, to: z.to.With(attributes(fields)...)}
}

func (z *zapToSlog) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if z.Enabled(e.Level) {
		return c.AddCore(e, z)
	}
	return c
}

func (z *zapToSlog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	level := slog.LevelWarn
	if e.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	z.to.Log(nil, level, e.Message, attributes(fields)...) //nolint:staticcheck // slog takes a nil context
	return nil
}

func (z *zapToSlog) Sync() error { return nil }

func attributes(fields []zapcore.Field) []any {
	m := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(m)
	}
	all := make([]any, 0, 2*len(m.Fields))
	for k, v := range m.Fields {
		all = append(all, k, v)
	}
	return all
}
