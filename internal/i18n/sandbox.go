package i18n

// sandboxTexts are the words of the kinds of sandbox and of tori sandbox.
func sandboxTexts() map[string]text {
	return map[string]text{
		"sandbox.unknown_kind": {
			en: "there is no kind of sandbox called %q: --kind, or sandbox.mode of the configuration, is bwrap, namespaces, landlock or container (which needs an engine)",
			ja: "%q という種類のサンドボックスはありません。--kind（設定では sandbox.mode）は bwrap、namespaces、landlock、container（エンジンの指定が必要）のいずれかです",
		},
		"sandbox.needs_engine": {
			en: "the sandbox container needs an engine: give --engine, or sandbox.engine in the configuration, as podman, docker or the path of one",
			ja: "サンドボックス container にはエンジンが必要です。--engine（設定では sandbox.engine）に podman、docker、またはそのパスを指定してください",
		},
		"sandbox.check.mode_none": {
			en: "sandbox.mode is none: commands run without a sandbox, and there is nothing to check; give --kind bwrap, namespaces, landlock or container to try one",
			ja: "sandbox.mode が none のため、コマンドはサンドボックスなしで実行され、検査するものがありません。--kind に bwrap、namespaces、landlock、container のいずれかを指定すると試せます",
		},
		"sandbox.no_kind": {
			en: "no sandbox works on this machine: %s",
			ja: "このマシンで使えるサンドボックスがありません: %s",
		},
		"sandbox.no_helper": {
			en: "the sandbox %s does not work here: %v",
			ja: "サンドボックス %s がこの環境では動きません: %v",
		},
		"sandbox.no_engine": {
			en: "the container engine %s cannot be used: %v. Set up rootless podman or docker, or leave the engine out",
			ja: "コンテナエンジン %s を使えません: %v。rootless の podman か docker を用意するか、エンジンの指定を外してください",
		},
		"sandbox.no_allow_list": {
			en: "the sandbox %s has no network at all and cannot be given single hosts; bwrap and namespaces can",
			ja: "サンドボックス %s はネットワークを一切使えず、特定のホストだけを許可できません。bwrap か namespaces なら可能です",
		},
		"sandbox.not_listed":    {"it is not on the list of allowed hosts", "許可されたホストの一覧にありません"},
		"sandbox.no_lookup":     {"its name was not resolved: %v", "名前を解決できません: %v"},
		"sandbox.no_address":    {"its name has no address", "名前に対応するアドレスがありません"},
		"sandbox.no_listener":   {"only programs that use the proxy reach it, for it cannot be listened for inside: %v", "サンドボックス内で待ち受けられないため、プロキシを使うプログラムからしか接続できません: %v"},
		"sandbox.no_connection": {"no connection: %v", "接続できません: %v"},
		"sandbox.not_public": {
			en: "its address %s is not a public one; an entry with the port (%s) allows one of your own network, and only an entry that is the address itself one of this machine",
			ja: "アドレス %s は公開アドレスではありません。社内ネットワークのアドレスはポート付きの項目（%s）で許可できます。このマシン自身のアドレスは、アドレスそのものを項目に書いた場合だけ許可されます",
		},
		"sandbox.ca_file":        {"sandbox.ca_file %s cannot be used: %v", "sandbox.ca_file の %s を使えません: %v"},
		"sandbox.no_certificate": {"it holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)", "PEM 形式の証明書（-----BEGIN CERTIFICATE-----）が含まれていません"},
		"sandbox.host_proxy":     {"the proxy of this machine (HTTPS_PROXY, HTTP_PROXY): %v", "このマシンのプロキシ（HTTPS_PROXY、HTTP_PROXY）: %v"},
		"sandbox.git_inside": {
			en: "the git directory %s lies in the workspace %s, where the sandbox landlock cannot protect it; keep it elsewhere",
			ja: "git ディレクトリ %s がワークスペース %s の中にあり、サンドボックス landlock では保護できません。別の場所に置いてください",
		},
		"sandbox.hide_inside": {
			en: "%s cannot be hidden inside %s by the sandbox landlock; move one of the two, or use another kind",
			ja: "サンドボックス landlock では %s を %s の中で隠せません。どちらかを移すか、別の種類を使ってください",
		},
		"sandbox.check.blocked":     {"blocked", "遮断"},
		"sandbox.check.contained":   {"contained", "封じ込め"},
		"sandbox.check.unavailable": {"unavailable", "該当なし"},
		"sandbox.check.escaped":     {"ESCAPED", "突破"},
		"sandbox.check.kind":        {"Sandbox: %s", "サンドボックス: %s"},
		"sandbox.check.none":        {"No command is run without a sandbox unless --allow-unsandboxed says so.", "--allow-unsandboxed がない限り、サンドボックスなしでコマンドは実行されません。"},
		"sandbox.check.comma":       {", ", "、"},
		"sandbox.check.watched": {
			en: "Limits that are watched and not kept by the kernel (they end a command up to 0.2 s late; disk and files later in large trees): %s.",
			ja: "カーネルではなく監視で守られる制限（超過から最大 0.2 秒後にコマンドを終了。ディスクとファイル数は大きなツリーではさらに遅れます）: %s。",
		},
		"sandbox.check.delegate": {
			en: "For memory and processes the kernel can keep them: delegate cgroup v2 to tori (systemd: Delegate=yes). Until then, memory that is in no process (buffers of sockets and pipes) has no limit of its own: all commands end when that of the machine is nearly taken.",
			ja: "メモリとプロセス数はカーネルに任せられます: cgroup v2 を tori に委譲してください（systemd: Delegate=yes）。委譲しない間、プロセスに属さないメモリ（ソケットやパイプのバッファ）には個別の制限がなく、マシンのメモリが残り少なくなると全コマンドを終了します。",
		},
		"sandbox.limit.cpu":       {"processor time", "CPU 時間"},
		"sandbox.limit.disk":      {"disk", "ディスク"},
		"sandbox.limit.files":     {"number of files", "ファイル数"},
		"sandbox.limit.memory":    {"memory of all commands together", "全コマンドの合計メモリ"},
		"sandbox.limit.processes": {"number of processes", "プロセス数"},
		"sandbox.check.sum": {
			en: "%d attempts: %d blocked, %d contained, %d not possible here, %d escaped",
			ja: "試行 %d 件: 遮断 %d、封じ込め %d、この環境では不可能 %d、突破 %d",
		},
		"sandbox.check.failed": {
			en: "%d attempts to break out of the sandbox %s succeeded; do not let it run what nobody vouches for",
			ja: "サンドボックス %[2]s からの脱出が %[1]d 件成功しました。信頼できないものを実行させないでください",
		},
		"cli.help.sandbox":        {"The wall around the commands of models and checks.", "モデルとチェックのコマンドを囲む壁。"},
		"cli.help.sandbox_check":  {"Try to break out of the sandbox in every known way and say what held.", "既知の方法で脱出を試み、何が防いだかを示す。"},
		"cli.help.sandbox_kind":   {"The kind to try: bwrap, namespaces, landlock or container; the one in use if left out.", "試す種類: bwrap、namespaces、landlock、container（省略時は使用中のもの）。"},
		"cli.help.sandbox_engine": {"The container engine, podman or docker; used where nothing else works, or with --kind container.", "コンテナエンジン（podman か docker）。ほかの種類が使えないとき、または --kind container で使う。"},
		"cli.help.sandbox_all":    {"Show every attempt, also the ones that were blocked.", "遮断されたものも含め、すべての試行を表示する。"},
	}
}
