package project

import (
	"path"
	"slices"
	"strings"
)

// class is whose a directory is.
type class int

const (
	own     class = iota
	bulk          // made, or there to be read by tests
	foreign       // somebody else's code: its rules and its tests are not the project's
)

// dirClasses are names of directories, in lower case, wherever they stand.
var dirClasses = map[string]class{
	"node_modules": foreign, "bower_components": foreign, "jspm_packages": foreign, "vendor": foreign, "third_party": foreign, "third-party": foreign,
	"thirdparty": foreign, "pods": foreign, "carthage": foreign, "site-packages": foreign, ".venv": foreign, "venv": foreign, ".yarn": foreign,
	"dist": bulk, "build": bulk, "out": bulk, "target": bulk, "coverage": bulk, "generated": bulk, "gen": bulk, "__generated__": bulk, "__pycache__": bulk,
	"__snapshots__": bulk, "testdata": bulk, "test-data": bulk, "test_data": bulk, "fixtures": bulk, "__fixtures__": bulk, "snapshots": bulk,
	"golden": bulk, "goldens": bulk, "cassettes": bulk, "locales": bulk, "locale": bulk, "translations": bulk, "__mocks__": bulk, ".next": bulk, ".idea": bulk, ".vscode": bulk,
}

// classOf is that of a path's most foreign directory.
func classOf(dir string) (c class) {
	for part := range strings.SplitSeq(dir, "/") {
		c = max(c, dirClass(part))
	}
	return c
}

func dirClass(name string) class { return dirClasses[strings.ToLower(name)] }

// dullNames and dullEnds tell files that hardly anybody reads: locks, binaries, what
// programs wrote, settings of tools.
var (
	dullNames = set("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock", "cargo.lock", "go.sum", "go.work.sum",
		"poetry.lock", "uv.lock", "pdm.lock", "pipfile.lock", "composer.lock", "gemfile.lock", "mix.lock", "pubspec.lock", "flake.lock", "packages.lock.json", "podfile.lock",
		"license")
	dullEnds = set("png", "jpg", "jpeg", "gif", "webp", "bmp", "ico", "icns", "svg", "pdf", "psd", "ttf", "otf", "woff", "woff2", "eot", "mp3", "mp4", "wav", "ogg", "webm", "mov", "avi",
		"zip", "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "tar", "jar", "war", "class", "dex", "apk", "exe", "dll", "so", "dylib", "a", "o", "obj", "lib", "pyc", "wasm", "bin",
		"dat", "db", "sqlite", "sqlite3", "parquet", "npy", "npz", "pt", "pth", "onnx", "safetensors", "gguf", "pickle", "pkl", "h5", "map", "snap", "golden", "keystore", "p12")
	dullTails = []string{".min.js", ".min.css", ".pb.go", "_pb2.py", "_pb2_grpc.py", ".pb.h", ".pb.cc", ".generated.cs", ".g.dart", ".freezed.dart", "_generated.go"}
)

func dull(name string) bool {
	low := strings.ToLower(name)
	return strings.HasPrefix(low, ".") || dullNames[low] || dullEnds[strings.TrimPrefix(path.Ext(low), ".")] || slices.ContainsFunc(dullTails, func(t string) bool { return strings.HasSuffix(low, t) })
}

func set(all ...string) map[string]bool {
	m := make(map[string]bool, len(all))
	for _, s := range all {
		m[s] = true
	}
	return m
}
