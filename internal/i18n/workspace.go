package i18n

// workspaceTexts are the words of sandbox, workspace and forge/folder.
func workspaceTexts() map[string]text {
	return map[string]text{
		"sandbox.missing": {
			en: "no sandbox: bwrap was not found. Install the package bubblewrap",
			ja: "サンドボックスがありません: bwrap が見つかりません。bubblewrap パッケージをインストールしてください",
		},
		"sandbox.broken": {
			en: "no sandbox: %s does not work here: %v. Allow user namespaces (on Ubuntu: an AppArmor profile for bwrap; in a container: let it create user namespaces), or reinstall the package bubblewrap",
			ja: "サンドボックスがありません: %s がこの環境では動きません: %v。ユーザー名前空間を許可するか（Ubuntu では bwrap の AppArmor プロファイル、コンテナでは名前空間の作成許可）、bubblewrap パッケージを入れ直してください",
		},
		"workspace.no_git": {
			en: "git was not found; install git and make sure that it is on PATH",
			ja: "git が見つかりません。git をインストールし、PATH に入れてください",
		},
		"workspace.linked": {
			en: "%s is no plain file or directory: git would read, write or wait elsewhere. Put what it leads to in its place, or clone the repository anew",
			ja: "%s は通常のファイルやディレクトリではありません。git が別の場所を読み書きしたり、待ち続けたりします。リンク先の実体に置き換えるか、リポジトリを clone し直してください",
		},
		"workspace.foreign_git": {
			en: "the .git of %s leads to %s, which does not name this checkout back, and may be another one's history. If it is yours, run git worktree repair, or say so there: git --git-dir=%[2]s config core.worktree %[3]s",
			ja: "%s の .git は %s を指していますが、そのリポジトリはこのチェックアウトを記録しておらず、別の履歴かもしれません。正しければ git worktree repair を実行するか、git --git-dir=%[2]s config core.worktree %[3]s と記録してください",
		},
		"workspace.extension": {
			en: "%s says %s = %s, a format of repositories that this version does not know: update tori, or clone the repository anew",
			ja: "%s に %s = %s とあります。この版の知らないリポジトリ形式です。tori を更新するか、リポジトリを clone し直してください",
		},
		"workspace.no_objects": {
			en: "the repository borrows objects from %s, which is no directory of git objects (%s lies there): clone it anew without objects/info/alternates",
			ja: "リポジトリが借用しているオブジェクトの場所 %s は git のオブジェクトディレクトリではありません（%s があります）。objects/info/alternates のない形で clone し直してください",
		},
		"workspace.no_index": {
			en: "%s is no index of git's: it is a file of mode %s and %d bytes, where a plain one without holes of at most %d is expected. Remove it and run git reset",
			ja: "%s は git のインデックスではありません。モード %s、%d バイトのファイルですが、穴のない最大 %d バイトの通常ファイルのはずです。削除して git reset を実行してください",
		},
		"workspace.gitlink": {
			en: "%s is a git repository of its own, which somebody makes and takes away while the work is recorded: end what does, or remove it",
			ja: "%s は独立した git リポジトリで、作業を記録している間に作られたり消されたりしています。その処理を止めるか、リポジトリを削除してください",
		},
		"workspace.git_time": {
			en: "git %s was ended after %s, many times what a tree of this size needs. It is probably patterns of many * in a .gitignore or .gitattributes of the tree, or a change of very large files: make them simpler, or remove them",
			ja: "git %s は %s を過ぎたため打ち切られました。この大きさのツリーに必要な時間の何倍にもなります。おそらくツリー内の .gitignore か .gitattributes にある * の多いパターン、または非常に大きなファイルの変更が原因です。パターンを単純にするか、削除してください",
		},
		"workspace.too_many_changes": {
			en: "more files are changed than can be kept track of: %d so far, and then %s. Remove what is no part of the work, or have .gitignore name it",
			ja: "変更されたファイルが多すぎて扱えません（ここまでに %d 個、次は %s）。作業の成果でないものは削除するか、.gitignore に書いてください",
		},
		"workspace.too_many_apart": {
			en: "the workspace has %d files of more than %d MiB and git repositories of their own, which no commit holds. That is too many; the first of them is %s: remove them, or make them outside of the workspace",
			ja: "作業場所に、コミットに入らないもの（%[2]d MiB を超えるファイルや独立した git リポジトリ）が %[1]d 個あり、多すぎます。最初は %[3]s です。削除するか、作業場所の外に作ってください",
		},
		"workspace.unreadable_dir": {
			en: "%s in the workspace cannot be read: %v. What is in it would be missing from the work unsaid: make it readable (chmod u+rwx) or remove it",
			ja: "作業場所の %s を読めません: %v。このままでは中身が成果から黙って抜け落ちます。読めるようにするか（chmod u+rwx）、削除してください",
		},
		"workspace.not_found": {
			en: "%s does not exist; check the path of the repository",
			ja: "%s は存在しません。リポジトリのパスを確認してください",
		},
		"workspace.not_directory": {
			en: "%s is not a directory; give the directory of a git repository",
			ja: "%s はディレクトリではありません。git リポジトリのディレクトリを指定してください",
		},
		"workspace.not_git": {
			en: "%s is not a git repository; give one, or make it one with git init and a first commit",
			ja: "%s は git リポジトリではありません。リポジトリを指定するか、git init して最初のコミットを作ってください",
		},
		"workspace.no_commits": {
			en: "the repository %s has no commit yet; work starts from a commit, so make a first one",
			ja: "リポジトリ %s にはまだコミットがありません。作業はコミットから始まります。最初のコミットを作ってください",
		},
		"workspace.damaged": {
			en: "%s looks like a git repository, but git does not take it for one: its HEAD, objects or refs are missing or damaged. Mend it or clone it anew",
			ja: "%s は git リポジトリのように見えますが、git はリポジトリと認めません。HEAD・objects・refs のいずれかが欠けているか壊れています。修復するか、クローンし直してください",
		},
		"workspace.lost_commit": {
			en: "%s of the repository %s stands at %s, and there is no such commit: the repository is damaged. See what git fsck says, mend it or clone it anew",
			ja: "リポジトリ %[2]s の %[1]s は %[3]s を指していますが、そのコミットがありません。リポジトリが壊れています。git fsck で確認し、修復するかクローンし直してください",
		},
		"workspace.broken_ref": {
			en: "%s of the repository %s cannot be read: %s holds no commit's id. The repository is damaged; put the id of its last commit there (git reflog), or clone it anew",
			ja: "リポジトリ %[2]s の %[1]s を読めません。%[3]s にコミットの ID がありません。リポジトリが壊れています。最後のコミットの ID（git reflog）に戻すか、クローンし直してください",
		},
		"workspace.head_elsewhere": {
			en: "HEAD of the repository %[2]s names the branch %[1]s, which does not exist, though there are others, such as %[3]s. Check one out, or in a bare repository: git symbolic-ref HEAD refs/heads/%[3]s",
			ja: "リポジトリ %[2]s の HEAD はブランチ %[1]s を指していますが、そのブランチはありません（%[3]s などはあります）。ブランチをチェックアウトするか、ベアリポジトリなら git symbolic-ref HEAD refs/heads/%[3]s を実行してください",
		},
		"workspace.unreadable": {
			en: "the repository %s cannot be read: %v",
			ja: "リポジトリ %s を読めません: %v",
		},
		"workspace.dirty": {
			en: "%s has changes that are not committed: %s. Commit or stash them, or pass --allow-dirty to start from the last commit without them",
			ja: "%s にコミットされていない変更があります: %s。コミットするか stash してください。変更を含めず最後のコミットから始めるなら --allow-dirty を付けてください",
		},
		"workspace.newer": {
			en: "the workspace %s was made by a newer version (format %d); update tori",
			ja: "作業場所 %s は新しい版で作られています（形式 %d）。tori を更新してください",
		},
		"workspace.branch_differs": {
			en: "branch %s in %s has commits that are not part of this work; nothing was overwritten. Rename or delete that branch and deliver again",
			ja: "ブランチ %s が %s にもあり、この作業にないコミットを含んでいます。上書きはしていません。そのブランチの名前を変えるか削除してから、もう一度渡してください",
		},
		"workspace.branch_checked_out": {
			en: "branch %s is checked out in %s, so it was not moved. Switch to another branch there and deliver again",
			ja: "ブランチ %s は %s でチェックアウトされているため、動かしていません。別のブランチに切り替えてから、もう一度渡してください",
		},
		"folder.missing": {
			en: "the issue file %s does not exist; check its path",
			ja: "課題ファイル %s は存在しません。パスを確認してください",
		},
		"folder.not_file": {
			en: "%s is not a plain file; an issue is a Markdown file",
			ja: "%s は通常のファイルではありません。課題は Markdown ファイルで書いてください",
		},
		"folder.is_comments": {
			en: "%s holds the comments of an issue; give the issue's own file",
			ja: "%s は課題のコメントのファイルです。課題そのもののファイルを指定してください",
		},
		"folder.unreadable": {
			en: "%s cannot be read: %v",
			ja: "%s を読めません: %v",
		},
		"folder.unwritable": {
			en: "the comment could not be written to %s: %v",
			ja: "コメントを %s に書けませんでした: %v",
		},
		"folder.empty": {
			en: "the issue file %s has no text; write what is to be done",
			ja: "課題ファイル %s に本文がありません。してほしいことを書いてください",
		},
		"folder.not_utf8": {
			en: "%s is not UTF-8 text; save it as UTF-8",
			ja: "%s は UTF-8 のテキストではありません。UTF-8 で保存し直してください",
		},
		"folder.comments_too_large": {
			en: "it is larger than %d MiB; move what is old out of it",
			ja: "%d MiB を超えています。古い内容を別のファイルに移してください",
		},
		"folder.too_large": {
			en: "%s is larger than %d MiB; shorten it or move the details into files of the repository",
			ja: "%s が %d MiB を超えています。短くするか、詳細をリポジトリ内のファイルに移してください",
		},
		"folder.front_matter": {
			en: "front matter of %s, line %d: %v",
			ja: "%s の front matter（%d 行目）: %v",
		},
		"folder.fm_open": {
			en: "it begins with --- and is never closed; add a line --- after it",
			ja: "--- で始まっていますが、閉じられていません。終わりに --- の行を加えてください",
		},
		"folder.fm_yaml": {
			en: "not valid YAML: %s",
			ja: "YAML として正しくありません: %s",
		},
		"folder.fm_large": {
			en: "it is longer than %d KiB; it holds id, title, author and labels, and the text comes below it",
			ja: "%d KiB を超えています。書けるのは id、title、author、labels です。本文はその下に書いてください",
		},
		"folder.fm_mapping": {
			en: "expected lines of the form key: value",
			ja: "「キー: 値」の形で書いてください",
		},
		"folder.fm_twice": {
			en: "the key %q stands twice; keep one",
			ja: "キー %q が二度あります。一つにしてください",
		},
		"folder.fm_key": {
			en: "unknown key %q; known are id, title, author and labels",
			ja: "キー %q は使えません。使えるのは id, title, author, labels です",
		},
		"folder.fm_type": {
			en: "%s must be %v",
			ja: "%s は%vで書いてください",
		},
		"folder.type_id":   {en: "a whole number or a text", ja: "整数か文字列"},
		"folder.type_text": {en: "a text (quote it if it looks like a number)", ja: "文字列（数に見えるものは引用符で囲む）"},
		"folder.type_list": {en: "a list of texts, e.g. [bug, ui]", ja: "文字列のリスト（例: [bug, ui]）"},
	}
}
