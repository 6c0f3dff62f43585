/** "Always allow" rules: one resolved executable and sub-command, never something that runs what its arguments say. */

import type { CommandVerdict } from './command/verdict.ts'

/** `subcommand` is empty for tools that have none. */
export type AlwaysRule = { readonly executable: string; readonly subcommand: string }

/** One line to store, list and revoke a rule by; neither part can hold a newline or be mistaken for the other. */
export function alwaysKey({ executable, subcommand }: AlwaysRule): string {
  return JSON.stringify(subcommand === '' ? [executable] : [executable, subcommand])
}

/** Wrappers, shells and interpreters: a yes to one would be a yes to everything. */
const runsOthers = new Set(
  `sh bash dash ash zsh fish ksh mksh csh tcsh pwsh rbash env command exec eval builtin nice nohup timeout stdbuf setsid ionice chrt taskset
  sudo doas su runuser pkexec xargs parallel find fd busybox toybox flock script watch time chroot unshare nsenter setarch ssh strace ltrace
  gdb systemd-run npx bunx uvx pipx node nodejs bun deno python pypy perl ruby irb php lua luajit tclsh wish expect awk gawk mawk nawk sed ed ex
  vi vim nvim emacs Rscript R julia ghci scala groovy jshell osascript guile racket sbcl erl elixir iex java make gmake ninja just task rake
  docker podman kubectl tmux screen entr direnv`.split(/\s+/),
)

/** Tools whose first word decides what they do; an option before it hides the word, so then there is no rule. */
const hasSubcommand = new Set(
  'git npm pnpm yarn cargo go pip pip3 apt apt-get dpkg systemctl gh brew gem bundle dotnet mvn gradle rustup hg svn jj'.split(' '),
)

/** Sub-commands that run whatever the next word names. */
const opensEnded = new Set([
  'run',
  'exec',
  'x',
  'dlx',
  'explore',
  'create',
  'init',
  'rebase',
  'bisect',
  'config',
  'filter-branch',
  'submodule',
  'foreach',
  'alias',
  'api',
  'generate',
  'tool',
  'start',
  'test',
])

/** What a lasting yes to this command would cover; undefined when only a single yes is possible. */
export function alwaysRuleFor(verdict: CommandVerdict): AlwaysRule | undefined {
  const { plan } = verdict
  if (verdict.verdict !== 'run' || verdict.risk !== 'medium' || plan?.kind !== 'argv' || verdict.executables.length !== 1) return
  const name = plan.executable.split('/').at(-1) ?? ''
  if (!plan.executable.startsWith('/') || runsOthers.has(name) || /^(python|perl|ruby|lua|php|node|pypy|tclsh)[\d.-]*$/.test(name)) return
  if (!hasSubcommand.has(name)) return { executable: plan.executable, subcommand: '' }
  const subcommand = plan.argv[1] ?? ''
  if (!/^[a-z][a-z\d-]*$/.test(subcommand) || opensEnded.has(subcommand)) return
  return { executable: plan.executable, subcommand }
}

/** A rule holds for a command whose own rule would be the same one. */
export function matchesAlways(rule: AlwaysRule, verdict: CommandVerdict): boolean {
  const own = alwaysRuleFor(verdict)
  return own !== undefined && alwaysKey(own) === alwaysKey(rule)
}
