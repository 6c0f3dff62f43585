/** Recognises names that other programs execute or obey wherever they lie; tools never write them, whether they exist yet or not. */

import { folded } from '../../kit/text.ts'

/**
 * Maps each reason to sequences of whole names in lower case; each sequence covers everything below it. File tools never write these names,
 * and the sandbox protects them in the workspace. The list includes files that take effect when a person enters a folder, opens it in an
 * editor, runs git status, commit or push, or starts a shell or another agent there. It excludes files that take effect only when the
 * person runs the project (package.json, Makefile).
 */
export const protectedNamesByReason: { readonly [reason: string]: string } = {
  'git settings': '.git .gitmodules .gitconfig .config/git',
  'other version control': '.hg .hgrc .jj .bzr .sl _darcs',
  'hooks of a commit':
    '.husky .githooks .lefthook .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml .overcommit.yml lefthook-local.yml lefthook-local.yaml .lefthook-local.yml .lefthook-local.yaml',
  'runs at a push':
    '.github/workflows .github/actions .gitlab-ci.yml .circleci .forgejo .gitea .travis.yml .drone.yml .woodpecker .woodpecker.yml .buildkite ' +
    '.cirrus.yml .appveyor.yml appveyor.yml azure-pipelines.yml bitbucket-pipelines.yml jenkinsfile .tekton .semaphore .teamcity .build.yml .builds buildspec.yml cloudbuild.yaml cloudbuild.yml',
  'runs at entering a folder':
    '.envrc .mise.toml mise.toml .mise .config/mise .autoenv .autoenv.zsh .shadowenv.d .config/direnv .direnvrc .envrc.local mise.local.toml .mise.local.toml mise/config.toml .rtx.toml .direnv',
  'agents: servers, hooks, permissions':
    '.braidclaw .mcp.json .claude .claude.json .cursor .codex .gemini .qwen .opencode opencode.json opencode.jsonc .windsurf .codeium .continue .cline ' +
    '.roo .kilocode .kiro .amazonq .aider.conf.yml .crush .crush.json crush.json .goose .factory .augment .trae .agents .junie .amp .copilot .grok .openhands .zencoder .tabnine .antigravity .warp .gptme gptme.toml .clinerules .windsurfrules .cursorrules',
  'editor tasks and settings':
    '.vscode .vscode-server .idea .vs .zed .fleet .nova .helix .theia .devcontainer .devcontainer.json .exrc _exrc .vimrc _vimrc .gvimrc .lvimrc .vim ' +
    '.nvimrc .nvim.lua .config/nvim .emacs .emacs.d .dir-locals.el .dir-locals-2.el .ycm_extra_conf.py',
  'start of a shell':
    '.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc ' +
    '.login .logout .inputrc .xonshrc .config/fish .config/zsh .config/nushell .config/powershell .bash_completion .config/starship.toml .config/xonsh .config/elvish .oh-my-zsh .cargo/env',
  'start of a terminal': '.screenrc .tmux.conf .config/tmux .wezterm.lua .config/wezterm .config/kitty .config/alacritty .config/ghostty',
  'start of a debugger or interpreter':
    '.gdbinit .lldbinit .pdbrc .pdbrc.py .irbrc .pryrc .rprofile .ghci .ocamlinit .iex.exs .psqlrc .sqliterc .renviron .erlang .octaverc .juliarc.jl .julia/config .ipython .jupyter .pythonrc .pythonrc.py .sbclrc .guile .swiplrc .perldb .ackrc',
  'start of a session':
    '.xinitrc .xsession .xprofile .pam_environment .config/autostart .config/environment.d .config/systemd .local/share/systemd .config/hypr .config/sway ' +
    '.config/i3 library/launchagents library/launchdaemons .config/plasma-workspace .local/share/applications .local/share/dbus-1 .forward .procmailrc .mailcap .rhosts .shosts',
  'keys and what is run for them':
    '.ssh .gnupg .netrc _netrc .pgpass .git-credentials .aws/config .aws/credentials .kube/config .docker/config.json .config/gh .config/gcloud .azure .vault-token .config/rclone .config/op .config/hub',
  'package managers and downloads: programs, registries, keys':
    '.npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pypirc .cargo/config .cargo/config.toml .cargo/credentials .cargo/credentials.toml .curlrc .wgetrc .condarc .gemrc .bundle/config pip.conf .config/pip .m2/settings.xml .gradle/init.d .gradle/init.gradle .terraformrc .config/containers',
}

export const protectedNames: readonly string[] = Object.values(protectedNamesByReason).flatMap((names) => names.split(' '))

/** Names that running programs (a prompt, an editor) watch all the time: in the workspace root they must not exist even for a moment. */
export const watchedNames: readonly string[] = ['.git', '.gitmodules', '.envrc', '.mcp.json', '.braidclaw', '.vscode', '.idea']

const rows: readonly (readonly string[])[] = protectedNames.map((name) => name.split('/'))
/** Most names start none of the rows, so this set avoids comparing the rows. */
const firsts: ReadonlySet<string> = new Set(rows.flatMap(([first = '']) => first))

/** True for the name itself and everything below it. Takes a normalised path, relative or absolute. */
export function isProtectedName(path: string): boolean {
  const names = spelt(path).split('/').filter(Boolean)
  return names.some((name, at) => firsts.has(name) && rows.some((row) => row.every((part, below) => names[at + below] === part)))
}

/** @returns the rows of protected names that begin with this name, in any spelling */
export function protectedRows(name: string): readonly (readonly string[])[] {
  const first = spelt(name)
  return firsts.has(first) ? rows.filter((row) => row[0] === first) : []
}

/** @returns the path in the list's spelling, without differences in case, invisible characters and Windows spellings */
export function spelt(path: string): string {
  return unified(folded(path))
}

/** Undoes the spellings that Windows opens as the same file: `.git:stream`, `a\\.git`, and its short names. git checks for these too. */
function unified(path: string): string {
  if (!/[:\\~]/.test(path)) return path
  return path
    .split(/[/\\]/)
    .map((name) => longName(name.replace(/(?<=.):.*/, '').replace(/[. ]+$/, '')))
    .join('/')
}

function longName(name: string): string {
  if (name === 'git~1') return '.git'
  return /^(?:gitmod~[1-4]|gi7eba~[1-9])$/.test(name) ? '.gitmodules' : name
}
